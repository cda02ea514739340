"""DescribeQuorum: one controller, seen as Kafka would show it."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create


def describe(
    driver: Driver, *topics: tuple[str, tuple[int, ...]], version: int = 2
) -> DescribeQuorumResponse:
    request = DescribeQuorumRequest(
        topics=tuple(
            TopicData(
                topic_name=name,
                partitions=tuple(PartitionData(partition_index=index) for index in indexes),
            )
            for name, indexes in topics
        )
    )
    response = driver.ask(2, "describe_quorum", version, request)
    assert isinstance(response, DescribeQuorumResponse)
    return response


@pytest.mark.parametrize("version", versions("describe_quorum"))
def test_the_controller_leads_and_the_other_brokers_observe(version: int) -> None:
    driver = Driver(3)
    answer = describe(driver, ("__cluster_metadata", (0,)), version=version)
    ((partition,),) = (topic.partitions for topic in answer.topics)
    assert (answer.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [observer.replica_id for observer in partition.observers] == [2, 3]
    now_ms = driver.clock.now_ms() if version >= 1 else -1
    seen = {r.last_caught_up_timestamp for r in (*partition.current_voters, *partition.observers)}
    assert seen == {now_ms}
    assert [node.node_id for node in answer.nodes] == ([1] if version >= 2 else [])


def test_controllers_with_ids_of_their_own_vote_and_every_broker_observes() -> None:
    driver = Driver(broker_ids=[0, 1, 2], controller_ids=[3001, 3000])
    answer = describe(driver, ("__cluster_metadata", (0,)))
    ((partition,),) = (topic.partitions for topic in answer.topics)
    assert partition.leader_id == 3001
    assert [voter.replica_id for voter in partition.current_voters] == [3001, 3000]
    assert [observer.replica_id for observer in partition.observers] == [0, 1, 2]
    assert [node.node_id for node in answer.nodes] == [3001, 3000]


@pytest.mark.parametrize("level", [0, 1])
def test_voters_have_directory_ids_with_kraft_version_1(level: int) -> None:
    driver = Driver(2, controller_ids=[3000, 3001], features={"kraft.version": level})
    ((partition,),) = (t.partitions for t in describe(driver, ("__cluster_metadata", (0,))).topics)
    voters = [each.replica_directory_id is not None for each in partition.current_voters]
    assert voters == [level == 1] * 2
    assert all(each.replica_directory_id is not None for each in partition.observers)


def test_a_controller_with_a_brokers_id_is_that_broker() -> None:
    driver = Driver(broker_ids=[0, 1, 2], controller_ids=[0, 1])
    ((partition,),) = (t.partitions for t in describe(driver, ("__cluster_metadata", (0,))).topics)
    assert [voter.replica_id for voter in partition.current_voters] == [0, 1]
    assert [observer.replica_id for observer in partition.observers] == [2]


def test_the_log_of_the_controller_grows_with_every_change() -> None:
    driver = Driver(2)

    def ends() -> list[int]:
        ((partition,),) = (
            t.partitions for t in describe(driver, ("__cluster_metadata", (0,))).topics
        )
        replicas = (*partition.current_voters, *partition.observers)
        return [partition.high_watermark, *(replica.log_end_offset for replica in replicas)]

    before = ends()
    assert len(set(before)) == 1
    create(driver, "t")
    assert ends() == [before[0] + 1] * 3


@pytest.mark.parametrize(
    "topics",
    [
        [("nope", (0,))],
        [("__cluster_metadata", (1,))],
        [("__cluster_metadata", (0, 1))],
        [("__cluster_metadata", (0, 0))],
        [("nope", (0,)), ("__cluster_metadata", (0,))],
    ],
)
def test_any_other_question_is_refused_for_all_that_it_names(
    topics: list[tuple[str, tuple[int, ...]]],
) -> None:
    answer = describe(Driver(2), *topics)
    assert answer.error_code == ErrorCode.NONE
    assert [(t.topic_name, len(t.partitions)) for t in answer.topics] == [
        (name, len(indexes)) for name, indexes in topics
    ]
    assert {(p.error_code, p.error_message) for t in answer.topics for p in t.partitions} == {
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        )
    }
    assert answer.nodes == ()
