"""What is not there again, because it was deleted, wiped or moved away; and what is put aside."""

from __future__ import annotations

from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.storage.formats.checkpoints import decode_offsets
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DIR, DurableDriver, content


def test_a_deleted_topics_files_go() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    lasting.driver.cluster.controller.delete_topics(["t"])
    assert lasting.names(1) == {"u-0"}
    lasting.kill()
    assert "t" not in lasting.begin().cluster.controller.image.topics


def test_checkpoints_do_not_go_on_naming_what_a_killed_process_deleted() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    produce(lasting.driver, "u", b"a")
    lasting.stop()
    lasting.begin().cluster.controller.delete_topics(["t"])
    lasting.kill()
    lasting.begin()
    lasting.stop()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        offsets = decode_offsets(lasting.files.read(DIR / "broker-2" / name))
        assert set(offsets) == {("u", 0)}


def test_a_topic_that_was_deleted_while_a_broker_was_down_goes_there_too() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    operator_actions.kill(lasting.driver.cluster, 3)
    operator_actions.stop(lasting.driver.cluster, 2)
    lasting.driver.cluster.controller.delete_topics(["t"])
    assert lasting.names(2) == lasting.names(3) == {"t-0", "u-0"}
    operator_actions.start(lasting.driver.cluster, 2)
    assert lasting.names(2) == {"u-0"}
    lasting.kill()
    driver = lasting.begin()
    assert lasting.names(3) == {"u-0"}, "the process that ended did not get to it"
    assert set(driver.partition("u").isr) == {1, 2, 3}


def test_a_topic_of_the_same_name_begins_empty() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    operator_actions.stop(lasting.driver.cluster, 3)
    lasting.driver.cluster.controller.delete_topics(["t"])
    create(lasting.driver, "t", [(1, 2, 3)])
    operator_actions.start(lasting.driver.cluster, 3)
    lasting.kill()
    driver = lasting.begin()
    assert content(driver) == []
    assert driver.replica(3, "t").log.log_end_offset == 0


def test_a_log_of_no_topic_is_put_aside_and_kept() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    registry = lasting.files.read(DIR / "registry.log")
    create(lasting.driver, "lost", [(1, 2, 3)])
    produce(lasting.driver, "lost", b"a")
    lasting.kill()
    lasting.files.write_atomic(DIR / "registry.log", registry, sync=True)
    lasting.begin()
    assert lasting.persistence.recovery_report is not None
    assert lasting.persistence.recovery_report.strays == ("lost-0",) * 3
    (stray,) = lasting.names(1) - {"t-0"}
    assert stray.startswith("lost-0.")
    assert stray.endswith("-stray")
    assert lasting.files.size(DIR / "broker-1" / stray / f"{0:020d}.log") > 0


def test_a_log_that_does_not_say_whose_it_is_is_that_of_its_name() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    for broker_id in (1, 2, 3):
        lasting.files.remove(lasting.path(broker_id, "t") / "partition.metadata")
    driver = lasting.begin()
    assert content(driver) == [b"a"]
    operator_actions.stop(driver.cluster, 2)
    lasting.files.remove(lasting.path(2, "t") / "partition.metadata")
    operator_actions.start(driver.cluster, 2)
    assert lasting.files.exists(lasting.path(2, "t") / "partition.metadata")
    assert lasting.log_dir(2).clean
    assert lasting.log_dir(2).recoveries == []


def test_a_reset_leaves_nothing() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    operator_actions.stop(lasting.driver.cluster, 2)
    operator_actions.restore(lasting.driver.cluster)
    lasting.driver.cluster.reset()
    assert [lasting.names(b) for b in (1, 2, 3)] == [set(), set(), set()]
    lasting.kill()
    assert not lasting.begin().cluster.controller.image.topics


def test_a_wiped_replica_starts_with_empty_files() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.driver.hold(2)
    operator_actions.wipe(lasting.driver.cluster, "t", 0, 2)
    assert lasting.files.size(lasting.path(2, "t") / f"{0:020d}.log") == 0
    assert lasting.names(2) == {"t-0"}
    lasting.driver.release(2)
    assert lasting.driver.replica(2, "t").log.log_end_offset == 1


def test_a_replica_that_moved_away_leaves_no_files() -> None:
    lasting = DurableDriver()
    create(lasting.driver, "t", [(1, 2)])
    controller = lasting.driver.cluster.controller
    partition = replace(lasting.driver.partition("t"), replicas=(1,), isr=(1,), partition_epoch=9)
    controller.update_partitions({("t", 0): partition})
    lasting.driver.cluster.scheduler.run_due()
    assert lasting.names(2) == set()
