"""Metadata: as the asked broker sees the cluster."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.broker.controller import Fence
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create


def ask(
    driver: Driver,
    *names: str | UUID,
    version: int = 13,
    broker_id: int = 1,
    create_missing: bool = False,
) -> MetadataResponse:
    """Of topics by name or id; of all where none is named."""
    topics = tuple(
        MetadataRequestTopic(topic_id=name)
        if isinstance(name, UUID)
        else MetadataRequestTopic(name=name)
        for name in names
    )
    request = MetadataRequest(
        topics=topics or (() if version == 0 else None),
        allow_auto_topic_creation=create_missing,
    )
    response = driver.ask(broker_id, "metadata", version, request)
    assert isinstance(response, MetadataResponse)
    return response


@pytest.mark.parametrize("version", versions("metadata"))
def test_every_version_tells_brokers_topics_and_leaders(version: int) -> None:
    driver = Driver(3)
    topic_id = create(driver, "t", [(2, 3), (3, 1)])
    for names in ((), ("t",)):
        answer = ask(driver, *names, version=version)
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
            (n, f"broker-{n}", 9091 + n) for n in (1, 2, 3)
        ]
        (topic,) = answer.topics
        assert (topic.name, topic.topic_id) == ("t", topic_id if version >= 10 else None)
        assert [(p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
            (2, (2, 3), (2, 3)),
            (3, (3, 1), (3, 1)),
        ]


def test_an_election_shows_in_leader_and_epoch() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    for broker_id in (1, 2):
        (topic,) = ask(driver, "t", broker_id=broker_id).topics
        assert (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch) == (2, 1)


def test_a_broker_that_heard_of_nothing_tells_what_it_knew() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    stale = driver.broker(2).view
    driver.elect("t", 0, 2)
    driver.broker(2).view = stale
    (topic,) = ask(driver, "t", broker_id=2).topics
    assert (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch) == (1, 0)


def test_by_id_from_v12() -> None:
    driver = Driver(1)
    topic_id, unknown = create(driver, "t"), UUID(int=5)
    found, missing = ask(driver, topic_id, unknown, version=12).topics
    assert (found.error_code, found.name) == (ErrorCode.NONE, "t")
    assert (missing.error_code, missing.name, missing.topic_id) == (
        ErrorCode.UNKNOWN_TOPIC_ID,
        None,
        unknown,
    )


@pytest.mark.parametrize("version", [10, 11])
def test_an_id_before_v12_fails_the_request(version: int) -> None:
    driver = Driver(1)
    topic_id = create(driver, "t")
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t", topic_id=topic_id),))
    answer = driver.ask(1, "metadata", version, request)
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REQUEST]
    assert (answer.brokers, answer.controller_id, answer.cluster_id) == ((), -1, None)
    nameless = MetadataRequest(topics=(MetadataRequestTopic(name=None),))
    answer = driver.ask(1, "metadata", version, nameless)
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_names_count_for_nothing_beside_ids() -> None:
    driver = Driver(1)
    topic_id = create(driver, "t")
    create(driver, "u")
    assert [topic.name for topic in ask(driver, "u", topic_id).topics] == ["t"]
    (unknown,) = ask(driver, "u", UUID(int=7)).topics
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topics_are_created_when_request_and_broker_allow_it() -> None:
    driver = Driver(3, {"num.partitions": "4", "default.replication.factor": "2"})
    (refused,) = ask(driver, "t").topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (not_yet,) = ask(driver, "t", create_missing=True).topics
    assert not_yet.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = ask(driver, "t").topics
    assert (created.error_code, len(created.partitions)) == (ErrorCode.NONE, 4)
    assert {len(p.replica_nodes) for p in created.partitions} == {2}
    (illegal,) = ask(driver, "a b", create_missing=True).topics
    assert illegal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_a_client_may_do_is_said_of_an_unknown_topic_as_well() -> None:
    driver = Driver(1)
    create(driver, "t")
    topics = tuple(MetadataRequestTopic(name=name) for name in ("t", "nope", "a b"))
    request = MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    known, unknown, illegal = driver.ask(1, "metadata", 12, request).topics
    assert known.topic_authorized_operations > 0
    assert unknown.topic_authorized_operations == known.topic_authorized_operations
    assert illegal.topic_authorized_operations == known.topic_authorized_operations


def test_a_broker_may_create_nothing() -> None:
    driver = Driver(1, {"auto.create.topics.enable": "false"})
    (answer,) = ask(driver, "t", create_missing=True).topics
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not driver.broker(1).view.topics


def test_too_few_brokers_for_the_default_factor_create_nothing() -> None:
    driver = Driver(1, {"default.replication.factor": "3"})
    (answer,) = ask(driver, "t", create_missing=True).topics
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not driver.broker(1).view.topics


def test_kafkas_own_topics_are_created_as_they_should_be() -> None:
    driver = Driver(2, {"offsets.topic.num.partitions": "5"})
    ask(driver, "__consumer_offsets", create_missing=True)
    (topic,) = ask(driver, "__consumer_offsets").topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 5)
    configs = driver.broker(1).view.configs_of("__consumer_offsets")
    assert configs["cleanup.policy"] == "compact"


def test_fenced_brokers_are_not_told_and_those_without_an_address_are_where_one_got() -> None:
    driver = Driver(3)
    brokers = driver.broker(1).view.brokers
    driver.cluster.controller.register(replace(brokers[2], fenced=True))
    driver.cluster.controller.register(replace(brokers[3], host=""))
    told = [(b.node_id, b.host) for b in ask(driver).brokers]
    assert told == [(1, "broker-1"), (3, "203.0.113.7")]


def test_a_partition_without_a_leader() -> None:
    driver = Driver(1)
    create(driver, "t")
    topic = driver.cluster.controller.image.topics["t"]
    headless = replace(topic.partitions[0], leader=-1, leader_epoch=1)
    driver.cluster.controller.update_topics([replace(topic, partitions=(headless,))])
    (found,) = ask(driver, "t").topics
    assert found.error_code == ErrorCode.NONE
    assert (found.partitions[0].error_code, found.partitions[0].leader_id) == (
        ErrorCode.LEADER_NOT_AVAILABLE,
        -1,
    )


Told = tuple[ErrorCode, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def told(driver: Driver, topic: str, version: int, broker_id: int = 1) -> Told:
    """Error, leader, replicas, ISR and offline replicas of a topic's only partition."""
    (found,) = ask(driver, topic, version=version, broker_id=broker_id).topics
    (p,) = found.partitions
    nodes = (p.replica_nodes, p.isr_nodes, p.offline_replicas)
    return (ErrorCode(p.error_code), p.leader_id, *nodes)


@pytest.mark.parametrize("version", versions("metadata", first=1))
def test_replicas_of_a_dead_broker_are_offline_from_v5(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(3, 1, 2)])
    create(driver, "alone", [(3,)])
    operator_actions.kill(driver.cluster, 3)
    offline = (3,) if version >= 5 else ()
    assert told(driver, "t", version) == (ErrorCode.NONE, 1, (3, 1, 2), (1, 2), offline)
    # The last of an ISR leaves it too, since there are eligible leaders outside it (KIP-966).
    no_leader: Told = (ErrorCode.LEADER_NOT_AVAILABLE, -1, (3,), (), offline)
    assert told(driver, "alone", version) == no_leader
    assert [b.node_id for b in ask(driver, version=version).brokers] == [1, 2]
    operator_actions.start(driver.cluster, 3)
    assert told(driver, "t", version) == (ErrorCode.NONE, 1, (3, 1, 2), (1, 2, 3), ())
    assert told(driver, "alone", version) == (ErrorCode.NONE, 3, (3,), (3,), ())


def test_v0_leaves_out_what_is_offline() -> None:
    driver = Driver(3)
    create(driver, "t", [(3, 1, 2)])
    create(driver, "alone", [(3,)])
    assert told(driver, "t", 0) == (ErrorCode.NONE, 3, (3, 1, 2), (3, 1, 2), ())
    operator_actions.kill(driver.cluster, 3)
    assert told(driver, "t", 0) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, (1, 2), (1, 2), ())
    assert told(driver, "alone", 0) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, (), (), ())


def test_a_zombie_tells_what_it_knew_and_the_others_that_it_is_offline() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    operator_actions.isolate(driver.cluster, 1, from_controller=True)
    knew: Told = (ErrorCode.NONE, 1, (1, 2, 3), (1, 2, 3), ())
    assert told(driver, "t", 13, broker_id=1) == knew
    assert told(driver, "t", 13, broker_id=2) == (ErrorCode.NONE, 2, (1, 2, 3), (2, 3), (1,))


def test_a_killed_broker_that_the_controller_believes_in_is_not_offline() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    operator_actions.kill(driver.cluster, 1, Fence.NEVER)
    assert told(driver, "t", 13, broker_id=2) == (ErrorCode.NONE, 1, (1, 2), (1, 2), ())
