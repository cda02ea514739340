"""A whole cluster: views, resets, and that a seed is all there is of chance."""

from __future__ import annotations

import re

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address, ClusterImage
from fencepost.broker.node.cluster import Cluster, ClusterOptions, Conformance
from fencepost.broker.replication.replica_manager import NEW_AT_ONCE, OPENED_IN_A_TURN
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, fetch, produce, send_produce
from tests.harness.records import batch
from tests.harness.typed_requests import (
    fetch_request,
    fetched,
    from_offset,
    produce_request,
    produced,
    values,
)


def cluster(seed: int = 0, topics: tuple[NewTopic, ...] = (), count: int = 3) -> Cluster:
    addresses = tuple(
        Address(host="127.0.0.1", port=n, advertised_host="h") for n in range(1, count + 1)
    )
    return Cluster(ClusterOptions(addresses=addresses, topics=topics, seed=seed), ManualClock())


def test_brokers_are_numbered_from_one_and_see_the_same() -> None:
    made = cluster()
    assert list(made.brokers) == [1, 2, 3]
    assert len({id(broker.view) for broker in made.brokers.values()}) == 1
    assert made.brokers[1].view.controller_id == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_cluster_id_looks_like_kafkas(seed: int) -> None:
    cluster_id = cluster(seed, count=1).controller.image.cluster_id
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id)


def test_the_same_seed_makes_the_same_cluster_and_another_one_another() -> None:
    topics = (NewTopic(name="t", partitions=8, replication_factor=2, configs={}),)
    first, same, other = (cluster(seed, topics).controller.image for seed in (1, 1, 2))
    assert first == same
    assert first.cluster_id != other.cluster_id
    assert first.topics["t"].topic_id != other.topics["t"].topic_id


def test_first_topics_are_there_from_the_start() -> None:
    made = cluster(topics=(NewTopic(name="t", partitions=3, configs={"segment.ms": "5"}),))
    held = [key for broker in made.brokers.values() for key in broker.replicas]
    assert sorted(held) == [("t", 0), ("t", 1), ("t", 2)]
    assert made.controller.image.configs_of("t") == {"segment.ms": "5"}


def test_very_many_first_partitions_are_there_from_the_start_and_after_a_reset() -> None:
    many = NEW_AT_ONCE + OPENED_IN_A_TURN + 1
    made = cluster(topics=(NewTopic(name="t", partitions=many, configs={}),))
    for _ in range(2):
        leaders = [r for b in made.brokers.values() for r in b.replicas.values() if r.is_leader]
        assert len(leaders) == many
        made.reset()


def test_a_reset_leaves_nothing_but_what_the_cluster_started_with() -> None:
    made = cluster(topics=(NewTopic(name="first", configs={}),))
    before = made.controller.image
    made.controller.create_topic(NewTopic(name="other", configs={}))
    made.controller.set_broker_configs(None, {"log.retention.ms": "5"})
    made.reset()
    after = made.controller.image
    assert set(after.topics) == {"first"}
    assert after.topics["first"].topic_id != before.topics["first"].topic_id
    assert (after.cluster_id, after.brokers) == (before.cluster_id, before.brokers)
    assert after.broker_configs == before.broker_configs
    for broker in made.brokers.values():
        assert {name for name, _ in broker.replicas} <= {"first"}
        assert broker.configs.log_config("first").retention_ms != 5


def test_a_reset_forgets_records_and_sessions_and_answers_who_waited() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"old")
    session = driver.ask(1, "fetch", 12, fetch_request(("t", from_offset(1)), session=(0, 0)))
    waiting = driver.send(1, "fetch", 12, fetch_request(("t", from_offset(1)), max_wait_ms=60_000))
    driver.hold(2)
    unacknowledged = send_produce(driver, "t", b"late")
    driver.release()
    driver.cluster.reset()
    assert fetched(waiting.response).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produced(unacknowledged.response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    unknown = driver.ask(1, "fetch", 12, fetch_request(session=(session.session_id, 1)))
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    create(driver, "t", [(1,)])
    assert values(fetch(driver, "t", 0)) == []


def test_a_reset_cluster_replicates_as_a_new_one_does() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"old", b"older")
    driver.cluster.reset()
    create(driver, "t", [(3, 1, 2)])
    assert produce(driver, "t", b"new").base_offset == 0
    assert [driver.replica(n, "t").high_watermark for n in (1, 2, 3)] == [1, 1, 1]


def test_what_a_broker_does_from_time_to_time_begins_anew_with_a_reset() -> None:
    driver = Driver(1)
    interval_ms = 300_000
    driver.advance(interval_ms - 1)
    driver.cluster.reset()
    create(driver, "t", [(1,)])
    old = batch(b"old", timestamp=1)
    assert not produced(driver.ask(1, "produce", 12, produce_request(("t", 0, old)))).error_code
    driver.advance(interval_ms - 1)
    assert driver.replica(1, "t").log.log_start_offset == 0
    driver.advance(1)
    assert driver.replica(1, "t").log.log_start_offset == 1


def test_a_broker_that_missed_a_deletion_does_not_mistake_the_successor_for_the_topic() -> None:
    driver = Driver(2)
    create(driver, "t", [(2, 1)])
    produce(driver, "t", b"old")
    late, missed = driver.broker(2), list[ClusterImage]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late, "apply", lambda image, _changed: missed.append(image))
        driver.cluster.controller.delete_topics(["t"])
        driver.cluster.controller.create_topic(
            NewTopic(name="t", assignments=((2, 1),), configs={})
        )
    assert values(fetch(driver, "t", 0)) == [b"old"]
    late.apply(missed[-1], frozenset({"t"}))
    assert values(fetch(driver, "t", 0)) == []
    assert produce(driver, "t", b"new").base_offset == 0


def test_retention_deletes_old_segments_while_time_passes() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)], retention_ms="3600000", segment_ms="600000")
    produce(driver, "t", b"old")
    driver.advance(10 * 3_600_000)
    for broker_id in (1, 2):
        log = driver.replica(broker_id, "t").log
        assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert produce(driver, "t", b"new").base_offset == 1


def test_changed_configs_reach_the_logs_of_every_broker() -> None:
    driver = Driver(2, {"min.insync.replicas": "1"})
    create(driver, "t", [(1, 2)])
    driver.cluster.controller.set_broker_configs(None, {"log.retention.ms": "77"})
    driver.cluster.controller.set_topic_configs("t", {"min.insync.replicas": "2"})
    for broker_id in (1, 2):
        replica = driver.replica(broker_id, "t")
        assert replica.log.config.retention_ms == 77
        assert replica.min_insync_replicas == 2


@pytest.mark.parametrize(
    ("conformance", "code"),
    [(Conformance.KIP, ErrorCode.NONE), (Conformance.APACHE, ErrorCode.INVALID_RECORD)],
)
def test_base_offsets_of_producers_are_refused_where_apache_refuses_them(
    conformance: Conformance, code: ErrorCode
) -> None:
    driver = Driver(1, conformance=conformance)
    create(driver, "t")
    numbered = batch((1, None, b"v"), base_offset=5)
    response = driver.ask(1, "produce", 12, produce_request(("t", 0, numbered)))
    assert produced(response).error_code == code
