"""What survives the process: topics, records, epochs, ids."""

from __future__ import annotations

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.node import operator_actions
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, ENDS, DurableDriver, End, content
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request as request
from tests.harness.typed_requests import produced


@ENDS
def test_topics_records_and_high_watermarks_are_there_again(end: End) -> None:
    lasting = DurableDriver()
    driver = lasting.driver
    topic_id = create(driver, "t", [(1, 2, 3), (2, 3, 1)], retention_ms="5000")
    produce(driver, "t", b"a", b"b")
    produce(driver, "t", b"c", index=1)
    before = driver.cluster.controller.image
    end(lasting)
    driver = lasting.begin()
    after = driver.cluster.controller.image
    assert after.cluster_id == before.cluster_id
    assert after.topics["t"].topic_id == topic_id
    assert after.names == {topic_id: "t"}
    assert after.configs_of("t") == {"retention.ms": "5000"}
    assert [p.replicas for p in after.topics["t"].partitions] == [(1, 2, 3), (2, 3, 1)]
    assert [p.isr for p in after.topics["t"].partitions] == [(1, 2, 3), (2, 3, 1)]
    assert [p.leader for p in after.topics["t"].partitions] == [1, 2]
    assert content(driver) == [b"a", b"b"]
    assert content(driver, index=1) == [b"c"]
    assert {driver.replica(b, "t").high_watermark for b in (1, 2, 3)} == {2}
    produce(driver, "t", b"d")
    assert content(driver) == [b"a", b"b", b"d"]


@ENDS
def test_every_partition_gets_a_leader_epoch_that_was_never_used(end: End) -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    used = set()
    for _ in range(3):
        produce(lasting.driver, "t", b"x")
        lasting.driver.elect("t", 0, 2)
        produce(lasting.driver, "t", b"x")
        used.add(lasting.driver.partition("t").leader_epoch)
        end(lasting)
        driver = lasting.begin()
        epoch = driver.partition("t").leader_epoch
        assert epoch > max(used)
        assert driver.partition("t").leader == 2, "who led goes on leading"
        assert driver.leader("t").log.latest_epoch == epoch
        used.add(epoch)


def test_an_election_that_the_registry_has_lost_is_known_to_the_logs() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    registry = lasting.files.read(DIR / "registry.log")
    for leader in (2, 3, 2):
        lasting.driver.elect("t", 0, leader)
    lasting.driver.hold(1, 3)
    operator_actions.hold(lasting.driver.cluster, "t", 0, 1, leave_isr=True)
    produce(lasting.driver, "t", b"b", acks=1)
    used = lasting.driver.partition("t").leader_epoch
    lasting.kill()
    lasting.files.write_atomic(DIR / "registry.log", registry, sync=True)
    driver = lasting.begin()
    assert driver.partition("t").leader_epoch > used
    assert driver.partition("t").leader == 2
    assert content(driver) == [b"a", b"b"]


def test_what_only_the_leader_had_is_not_lost() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    lasting.driver.hold(2, 3)
    produce(lasting.driver, "t", b"a", acks=1)
    lasting.kill()
    driver = lasting.begin()
    assert content(driver) == [b"a"]
    assert {driver.replica(b, "t").log.log_end_offset for b in (1, 2, 3)} == {1}


@pytest.mark.parametrize("seed", range(20))
def test_with_fsync_what_was_acknowledged_outlives_the_machine(seed: int) -> None:
    lasting = DurableDriver(sync=True)
    create(lasting.driver, "t", [(1, 2, 3)])
    acknowledged = []
    for number in range(5):
        assert produce(lasting.driver, "t", b"%d" % number).error_code == 0
        acknowledged.append(b"%d" % number)
    lasting.driver.elect("t", 0, 3)
    epoch = lasting.driver.partition("t").leader_epoch
    lasting.lose_power(seed)
    driver = lasting.begin()
    assert content(driver) == acknowledged
    assert driver.partition("t").leader_epoch > epoch
    assert driver.partition("t").leader == 3


@ENDS
def test_a_batch_that_is_sent_again_is_known_to_be_there(end: End) -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    sent = request(("t", 0, batch(b"a", producer=(7, 0, 0))))
    assert produced(lasting.driver.ask(1, "produce", 12, sent)).base_offset == 0
    end(lasting)
    driver = lasting.begin()
    again = produced(driver.ask(1, "produce", 12, sent))
    assert (again.error_code, again.base_offset) == (0, 0)
    assert content(driver) == [b"a"]


@ENDS
def test_producer_ids_and_topic_ids_are_given_once(end: End) -> None:
    lasting = DurableDriver()
    ids, topic_ids = set(), set()
    for process in range(3):
        given = lasting.driver.broker(1).producer_ids.generate_producer_id()
        assert given is not None
        assert given not in ids
        ids.add(given)
        topic_id = create(lasting.driver, f"t{process}")
        assert topic_id not in topic_ids
        topic_ids.add(topic_id)
        end(lasting)
        lasting.begin()


def test_dynamic_configs_and_features_are_there_again() -> None:
    lasting = DurableDriver()
    controller = lasting.driver.cluster.controller
    controller.set_broker_configs(None, {"log.retention.ms": "77"})
    controller.set_broker_configs(2, {"message.max.bytes": "999"})
    controller.set_group_configs("g", {"consumer.session.timeout.ms": "50000"})
    controller.set_client_metrics_configs("s", {"metrics": "*"})
    controller.set_client_metrics_configs("gone", {"metrics": "*"})
    controller.set_client_metrics_configs("gone", {})
    controller.update_features({"metadata.version": 29})
    version = controller.image.version
    lasting.kill()
    image = lasting.begin().cluster.controller.image
    assert image.broker_configs == {
        None: {"log.retention.ms": "77", "min.insync.replicas": "1"},
        2: {"message.max.bytes": "999"},
    }
    assert image.group_configs == {"g": {"consumer.session.timeout.ms": "50000"}}
    assert image.client_metrics_configs == {"s": {"metrics": "*"}}
    assert image.features["metadata.version"] == 29
    assert image.version > version, "clients tell features apart by it"
    assert lasting.driver.broker(2).configs.log_config("t").max_message_bytes == 999


def test_a_topic_to_create_at_the_start_may_be_there() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    new = [
        NewTopic(name=name, partitions=5, replication_factor=1, configs={}) for name in ("t", "u")
    ]
    driver = lasting.begin(topics=new)
    assert len(driver.cluster.controller.image.topics["t"].partitions) == 1
    assert len(driver.cluster.controller.image.topics["u"].partitions) == 5
    assert content(driver) == [b"a"]


def test_more_brokers_than_before_have_nothing_yet() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    driver = lasting.begin(3)
    assert content(driver) == [b"a"]
    create(driver, "u", [(3, 2, 1)])
    produce(driver, "u", b"b")
    assert content(driver, "u") == [b"b"]
    lasting.stop()
    with pytest.raises(
        DataDirUnusable, match=r"brokers 1 to 3, and .* are to be 1, 2: .*--brokers 3"
    ):
        lasting.begin(2)
