from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fencepost.client.consumer.errors import CommitFailedError, RequestRefused
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_commit import OffsetCommitResponse
from fencepost.protocol.messages.offset_fetch import OffsetFetchResponse
from tests.client.consumer.driven import TP, DrivenConsumer, cluster, start, write
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create

AT = OffsetAndMetadata(offset=3, leader_epoch=2, metadata="noted")
OTHER = Partition(topic="u", index=1)


def member(driver: Driver) -> DrivenConsumer:
    return DrivenConsumer(driver, group_id="g")


def committed(driver: Driver, partition: Partition = TP) -> OffsetAndMetadata | None:
    consumer = member(driver)
    return consumer.result(consumer.core.committed([partition]))[partition]


def commit_error(code: int) -> tuple[str, Callable[[OffsetCommitResponse], object]]:
    def alter(response: OffsetCommitResponse) -> object:
        topic = response.topics[0]
        part = replace(topic.partitions[0], error_code=code)
        return replace(response, topics=(replace(topic, partitions=(part,)),))

    return "offset_commit", alter


def two_topics(**api_max: int) -> Driver:
    driver = Driver(3, api_max=api_max)
    create(driver, "t", ((1, 2, 3),))
    create(driver, "u", ((1, 2, 3), (2, 3, 1)))
    return driver


@pytest.mark.parametrize("version", versions("offset_commit"))
def test_every_version_of_offset_commit_will_do(version: int) -> None:
    driver = two_topics(offset_commit=version)
    consumer = member(driver)
    consumer.result(consumer.core.commit({TP: AT, OTHER: replace(AT, offset=7)}))
    assert consumer.requests("offset_commit")[-1].version == version
    expected = AT if version >= 6 else replace(AT, leader_epoch=None)
    assert committed(driver) == expected
    assert committed(driver, OTHER) == replace(expected, offset=7)


@pytest.mark.parametrize("version", versions("offset_fetch"))
def test_every_version_of_offset_fetch_will_do(version: int) -> None:
    driver = two_topics(offset_fetch=version)
    consumer = member(driver)
    consumer.result(consumer.core.find_offsets({TP: -1, OTHER: -1}))  # now topic ids are known
    consumer.result(consumer.core.commit({OTHER: AT}))
    found = consumer.result(consumer.core.committed([TP, OTHER]))
    assert found == {TP: None, OTHER: AT if version >= 5 else replace(AT, leader_epoch=None)}
    assert consumer.requests("offset_fetch")[-1].version == version
    assert consumer.requests("offset_fetch")[-1].message.require_stable


def test_topics_are_named_where_their_ids_are_not_known() -> None:
    driver = two_topics(metadata=9)
    consumer = member(driver)
    consumer.result(consumer.core.commit({TP: AT}))
    assert consumer.requests("offset_commit")[-1].version == 9
    assert committed(driver) == AT


def test_the_positions_are_committed_unless_others_are_named() -> None:
    driver = cluster()
    write(driver, "a", 3)
    consumer = start(driver, group_id="g")
    consumer.read(3)
    consumer.result(consumer.core.commit())
    assert committed(driver) == OffsetAndMetadata(offset=3, leader_epoch=0)


def test_a_partition_without_a_valid_position_is_not_committed() -> None:
    driver = cluster()
    consumer = start(driver, None, group_id="g")
    consumer.core.commit().result()
    assert consumer.sent == []


def test_nothing_is_fetched_for_no_partition() -> None:
    assert member(cluster()).core.committed([]).result() == {}


def test_without_a_group_there_is_nothing_to_commit_to() -> None:
    consumer = DrivenConsumer(cluster())
    with pytest.raises(ValueError, match="the consumer has no group_id"):
        consumer.core.commit({TP: AT})
    with pytest.raises(ValueError, match="the consumer has no group_id"):
        consumer.core.committed([TP])
    with pytest.raises(ValueError, match="the consumer has no group_id"):
        consumer.core.subscribe(["t"])
    assert consumer.core.leave().done


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT],
)
def test_a_lost_coordinator_is_looked_for_again(code: ErrorCode) -> None:
    driver = cluster()
    consumer = member(driver)
    consumer.result(consumer.core.commit({TP: AT}))
    looked = len(consumer.requests("find_coordinator"))
    consumer.alters = [commit_error(code)]
    consumer.result(consumer.core.commit({TP: replace(AT, offset=4)}))
    assert len(consumer.requests("find_coordinator")) == looked + 1
    assert committed(driver) == replace(AT, offset=4)


def test_a_coordinator_that_loads_is_waited_for() -> None:
    driver = cluster()
    consumer = member(driver)
    consumer.alters = [commit_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    operation = consumer.core.commit({TP: AT})
    consumer.run(lambda: operation.reason == "COORDINATOR_LOAD_IN_PROGRESS")
    consumer.result(operation)
    assert committed(driver) == AT


def test_a_lost_commit_is_sent_again() -> None:
    driver = cluster()
    consumer = member(driver)
    consumer.loses = {"offset_commit", "offset_fetch"}
    commit = consumer.core.commit({TP: AT})
    fetch = consumer.core.committed([TP])
    consumer.run(lambda: commit.reason == fetch.reason == "the test lost it")
    consumer.loses = set()
    consumer.result(commit)
    consumer.result(fetch)
    assert committed(driver) == AT


def test_offsets_that_a_transaction_is_committing_are_waited_for() -> None:
    driver = cluster()
    consumer = member(driver)

    def unstable(response: OffsetFetchResponse) -> object:
        (group,) = response.groups
        (topic,) = group.topics
        part = replace(topic.partitions[0], error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        topic = replace(topic, partitions=(part,))
        return replace(response, groups=(replace(group, topics=(topic,)),))

    consumer.alters = [("offset_fetch", unstable)]
    assert consumer.result(consumer.core.committed([TP])) == {TP: None}
    assert len(consumer.requests("offset_fetch")) == 2


def test_a_refused_commit_says_why() -> None:
    consumer = member(cluster())
    consumer.alters = [commit_error(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    with pytest.raises(RequestRefused, match="OffsetCommit of g: GROUP_AUTHORIZATION_FAILED"):
        consumer.result(consumer.core.commit({TP: AT}))


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_of_another_generation_fails(code: ErrorCode) -> None:
    consumer = member(cluster())
    consumer.alters = [commit_error(code)]
    with pytest.raises(CommitFailedError, match=code.name):
        consumer.result(consumer.core.commit({TP: AT}))
