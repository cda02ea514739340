"""What is there again after the process: topics, records, epochs; and what a start refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

import pytest

from fencepost.broker import registry_file, steering
from fencepost.broker.data_dir import open_data_dir
from fencepost.broker.refusals import DataDirUnusable
from fencepost.broker.registry_records import Known
from fencepost.broker.topic_plans import NewTopic
from fencepost.storage.files.failing import FailingFiles
from fencepost.storage.files.log import FileLog
from fencepost.storage.files.machine import Operation
from tests.broker.driver import Driver
from tests.broker.lasting import DIR, Lasting
from tests.broker.talk import batch, create, fetch, list_offset, produce, produced, values
from tests.broker.talk import produce_request as request

End = Callable[[Lasting], None]
ENDS = pytest.mark.parametrize("end", [Lasting.stop, Lasting.kill])


def content(driver: Driver, topic: str = "t", index: int = 0) -> list[bytes | None]:
    start = driver.leader(topic, index).log.log_start_offset
    return values(fetch(driver, topic, start, index=index))


@ENDS
def test_topics_records_and_high_watermarks_are_there_again(end: End) -> None:
    lasting = Lasting()
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
    lasting = Lasting()
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
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    registry = lasting.files.read(DIR / "registry.log")
    for leader in (2, 3, 2):
        lasting.driver.elect("t", 0, leader)
    lasting.driver.hold(1, 3)
    steering.hold(lasting.driver.cluster, "t", 0, 1, leave_isr=True)
    produce(lasting.driver, "t", b"b", acks=1)
    used = lasting.driver.partition("t").leader_epoch
    lasting.kill()
    lasting.files.write_aside(DIR / "registry.log", registry, sync=True)
    driver = lasting.begin()
    assert driver.partition("t").leader_epoch > used
    assert driver.partition("t").leader == 2
    assert content(driver) == [b"a", b"b"]


def test_what_only_the_leader_had_is_not_lost() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    lasting.driver.hold(2, 3)
    produce(lasting.driver, "t", b"a", acks=1)
    lasting.kill()
    driver = lasting.begin()
    assert content(driver) == [b"a"]
    assert {driver.replica(b, "t").log.log_end_offset for b in (1, 2, 3)} == {1}


@pytest.mark.parametrize("seed", range(20))
def test_with_fsync_what_was_acknowledged_outlives_the_machine(seed: int) -> None:
    lasting = Lasting(sync=True)
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
    lasting = Lasting()
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
    lasting = Lasting()
    ids, topic_ids = set(), set()
    for process in range(3):
        given = lasting.driver.broker(1).producer_ids.next()
        assert given is not None
        assert given not in ids
        ids.add(given)
        topic_id = create(lasting.driver, f"t{process}")
        assert topic_id not in topic_ids
        topic_ids.add(topic_id)
        end(lasting)
        lasting.begin()


def test_dynamic_broker_configs_and_features_are_there_again() -> None:
    lasting = Lasting()
    controller = lasting.driver.cluster.controller
    controller.set_broker_configs(None, {"log.retention.ms": "77"})
    controller.set_broker_configs(2, {"message.max.bytes": "999"})
    controller.update_features({"metadata.version": 29})
    version = controller.image.version
    lasting.kill()
    image = lasting.begin().cluster.controller.image
    assert image.broker_configs == {
        None: {"log.retention.ms": "77"},
        2: {"message.max.bytes": "999"},
    }
    assert image.features["metadata.version"] == 29
    assert image.version > version, "clients tell features apart by it"
    assert lasting.driver.broker(2).configs.log_config("t").max_message_bytes == 999


def test_a_topic_to_create_at_the_start_may_be_there() -> None:
    lasting = Lasting()
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
    lasting = Lasting(1)
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    driver = lasting.begin(3)
    assert content(driver) == [b"a"]
    create(driver, "u", [(3, 2, 1)])
    produce(driver, "u", b"b")
    assert content(driver, "u") == [b"b"]
    lasting.stop()
    with pytest.raises(DataDirUnusable, match=r"brokers up to 3.*there are to be 2.*--brokers 3"):
        lasting.begin(2)


# -- what goes ----------------------------------------------------------------------------------


def test_a_deleted_topics_files_go() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    lasting.driver.cluster.controller.delete_topics(["t"])
    assert lasting.names(1) == {"u-0"}
    lasting.kill()
    assert "t" not in lasting.begin().cluster.controller.image.topics


def test_a_topic_that_was_deleted_while_a_broker_was_down_goes_there_too() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    create(lasting.driver, "u", [(1, 2, 3)])
    steering.kill(lasting.driver.cluster, 3)
    steering.stop(lasting.driver.cluster, 2)
    lasting.driver.cluster.controller.delete_topics(["t"])
    assert lasting.names(2) == lasting.names(3) == {"t-0", "u-0"}
    steering.start(lasting.driver.cluster, 2)
    assert lasting.names(2) == {"u-0"}
    lasting.kill()
    driver = lasting.begin()
    assert lasting.names(3) == {"u-0"}, "the process that ended did not get to it"
    assert set(driver.partition("u").isr) == {1, 2, 3}


def test_a_topic_of_the_same_name_begins_empty() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    steering.stop(lasting.driver.cluster, 3)
    lasting.driver.cluster.controller.delete_topics(["t"])
    create(lasting.driver, "t", [(1, 2, 3)])
    steering.start(lasting.driver.cluster, 3)
    lasting.kill()
    driver = lasting.begin()
    assert content(driver) == []
    assert driver.replica(3, "t").log.log_end_offset == 0


def test_a_log_of_no_topic_is_put_aside_and_kept() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    registry = lasting.files.read(DIR / "registry.log")
    create(lasting.driver, "lost", [(1, 2, 3)])
    produce(lasting.driver, "lost", b"a")
    lasting.kill()
    lasting.files.write_aside(DIR / "registry.log", registry, sync=True)
    lasting.begin()
    assert lasting.persistence.found is not None
    assert lasting.persistence.found.strays == ("lost-0",) * 3
    (stray,) = lasting.names(1) - {"t-0"}
    assert stray.startswith("lost-0.")
    assert stray.endswith("-stray")
    assert lasting.files.size(DIR / "broker-1" / stray / f"{0:020d}.log") > 0


def test_a_log_that_does_not_say_whose_it_is_is_that_of_its_name() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    for broker_id in (1, 2, 3):
        lasting.files.remove(lasting.path(broker_id, "t") / "partition.metadata")
    driver = lasting.begin()
    assert content(driver) == [b"a"]
    steering.stop(driver.cluster, 2)
    lasting.files.remove(lasting.path(2, "t") / "partition.metadata")
    steering.start(driver.cluster, 2)
    assert lasting.files.exists(lasting.path(2, "t") / "partition.metadata")
    assert lasting.log_dir(2).clean
    assert lasting.log_dir(2).recoveries == []


def test_a_reset_leaves_nothing() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    steering.stop(lasting.driver.cluster, 2)
    steering.restore(lasting.driver.cluster)
    lasting.driver.cluster.reset()
    assert [lasting.names(b) for b in (1, 2, 3)] == [set(), set(), set()]
    lasting.kill()
    assert not lasting.begin().cluster.controller.image.topics


def test_a_wiped_replica_starts_with_empty_files() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.driver.hold(2)
    steering.wipe(lasting.driver.cluster, "t", 0, 2)
    assert lasting.files.size(lasting.path(2, "t") / f"{0:020d}.log") == 0
    assert lasting.names(2) == {"t-0"}
    lasting.driver.release(2)
    assert lasting.driver.replica(2, "t").log.log_end_offset == 1


def test_a_replica_that_moved_away_leaves_no_files() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2)])
    controller = lasting.driver.cluster.controller
    partition = replace(lasting.driver.partition("t"), replicas=(1,), isr=(1,), partition_epoch=9)
    controller.update_partitions({("t", 0): partition})
    lasting.driver.cluster.scheduler.run_due()
    assert lasting.names(2) == set()


# -- one broker's life --------------------------------------------------------------------------


def test_a_broker_that_stops_writes_everything_and_looks_at_nothing_when_it_starts() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    steering.stop(lasting.driver.cluster, 2)
    home = DIR / "broker-2"
    assert lasting.files.exists(home / ".kafka_cleanshutdown")
    for name in ("recovery-point", "replication"):
        text = lasting.files.read(home / f"{name}-offset-checkpoint").decode()
        assert text == "0\n1\nt 0 2\n", name
    look = lasting.driver.broker(2).disk.look("t", 0)
    assert look is not None
    assert look.log_end_offset == 2
    steering.start(lasting.driver.cluster, 2)
    assert not lasting.files.exists(home / ".kafka_cleanshutdown"), "the next end is to come"
    assert lasting.log_dir(2).clean
    assert lasting.log_dir(2).recoveries == []
    assert set(lasting.driver.partition("t").isr) == {1, 2, 3}


def test_after_an_orderly_end_no_closed_segment_is_looked_at() -> None:
    lasting = Lasting(1)
    create(lasting.driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(lasting.driver, "t", value)
        steering.roll(lasting.driver.cluster, "t", 0)
    lasting.stop()
    for offset in (0, 1, 2):
        log = lasting.path(1, "t") / f"{offset:020d}.log"
        lasting.files.fail(Operation.READ, times=None, under=log)
    driver = lasting.begin()
    assert driver.leader("t").high_watermark == 3
    produce(driver, "t", b"d")
    lasting.files.heal()
    assert content(driver)[:1] == [b"a"]


def test_what_was_closed_in_order_outlives_the_machine() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    lasting.driver.cluster.close()
    lasting.lose_power(3)
    driver = lasting.begin()
    assert content(driver) == [b"a", b"b"]
    assert lasting.persistence.found is not None
    assert lasting.persistence.found.clean


def test_a_broker_that_is_killed_recovers_its_logs() -> None:
    lasting = Lasting()
    create(lasting.driver, "t", [(1, 2, 3)])
    produce(lasting.driver, "t", b"a", b"b")
    steering.kill(lasting.driver.cluster, 2)
    assert not lasting.files.exists(DIR / "broker-2" / ".kafka_cleanshutdown")
    log = lasting.path(2, "t") / f"{0:020d}.log"
    file = lasting.files.open(log)
    whole = file.size
    file.append([b"torn"])
    file.close()
    steering.start(lasting.driver.cluster, 2)
    ((name, recovery),) = lasting.log_dir(2).recoveries
    assert name == "t-0"
    assert [(cut.position, cut.size, cut.offset) for cut in recovery.cut] == [(whole, 4, 2)]
    assert set(lasting.driver.partition("t").isr) == {1, 2, 3}
    produce(lasting.driver, "t", b"c")
    assert lasting.driver.replica(2, "t").log.log_end_offset == 3


def test_checkpoints_are_written_as_often_as_configs_say() -> None:
    lasting = Lasting(
        replica_high_watermark_checkpoint_interval_ms="1000",
        log_flush_offset_checkpoint_interval_ms="3000",
        log_flush_start_offset_checkpoint_interval_ms="2000",
    )
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)], flush_messages="1")
    produce(driver, "t", b"a", b"b")
    driver.leader("t").delete_records(1)
    driver.cluster.scheduler.run_due()

    def said(name: str) -> str | None:
        path = DIR / "broker-1" / f"{name}-offset-checkpoint"
        return lasting.files.read(path).decode() if lasting.files.exists(path) else None

    driver.advance(999)
    assert said("replication") is None
    driver.advance(1)
    assert said("replication") == "0\n1\nt 0 2\n"
    assert said("log-start") is None
    driver.advance(1000)
    assert said("log-start") == "0\n1\nt 0 1\n"
    assert said("recovery-point") is None
    driver.advance(1000)
    assert said("recovery-point") == "0\n1\nt 0 2\n"
    lasting.kill()
    assert lasting.begin().leader("t").log.log_start_offset == 1


def test_a_checkpoint_that_says_nothing_new_is_not_written() -> None:
    lasting = Lasting(1, replica_high_watermark_checkpoint_interval_ms="1000")
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    lasting.driver.advance(1000)
    path = DIR / "broker-1" / "replication-offset-checkpoint"
    lasting.files.remove(path)
    lasting.driver.advance(5000)
    assert not lasting.files.exists(path)
    produce(lasting.driver, "t", b"b")
    lasting.driver.advance(1000)
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"


def test_records_are_flushed_when_they_have_waited() -> None:
    lasting = Lasting(1, log_flush_scheduler_interval_ms="100", log_flush_interval_ms="1000")
    create(lasting.driver, "t", [(1,)])
    produce(lasting.driver, "t", b"a")
    log = lasting.driver.replica(1, "t").log
    assert isinstance(log, FileLog)
    lasting.driver.advance(900)
    assert log.recovery_point == 0
    lasting.driver.advance(200)
    assert log.recovery_point == 1


def test_closed_segments_are_synced_and_need_no_recovery() -> None:
    lasting = Lasting(1, log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1,)])
    for value in (b"a", b"b", b"c"):
        produce(driver, "t", value)
        if value != b"c":
            steering.roll(driver.cluster, "t", 0)
    first, *others = [each.size_bytes for each in driver.replica(1, "t").log.segments()]
    driver.advance(1000)
    path = DIR / "broker-1" / "recovery-point-offset-checkpoint"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"
    lasting.kill()
    lasting.begin()
    ((_, recovery),) = lasting.log_dir(1).recoveries
    assert first > 0
    assert recovery.checked_bytes == sum(others), "the one before is looked at for its indexes"
    assert lasting.driver.replica(1, "t").log.log_end_offset == 3


def test_what_is_synced_elsewhere_counts_when_it_is_done() -> None:
    lasting = Lasting(1, log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1,)])
    log = driver.replica(1, "t").log
    assert isinstance(log, FileLog)
    waiting: list[tuple[Callable[[], None], Callable[[OSError | None], None]]] = []
    lasting.log_dir(1).elsewhere = lambda work, then: waiting.append((work, then))
    produce(driver, "t", b"a")
    steering.roll(driver.cluster, "t", 0)
    driver.advance(3000)
    ((work, then),) = waiting  # one at a time
    work()
    assert log.recovery_point == 0
    then(None)
    assert log.recovery_point == 1
    produce(driver, "t", b"b")
    steering.roll(driver.cluster, "t", 0)
    driver.advance(1000)
    waiting[1][1](OSError(5, "Input/output error"))
    assert ("t", 0) in driver.cluster.brokers[1].offline


def test_a_recovery_point_that_falls_is_written_at_once() -> None:
    lasting = Lasting(log_flush_offset_checkpoint_interval_ms="1000")
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)], flush_messages="1")
    driver.hold(2, 3)
    produce(driver, "t", b"a", b"b", acks=1)
    driver.advance(1000)
    path = DIR / "broker-1" / "recovery-point-offset-checkpoint"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 2\n"
    driver.cluster.controller.elect("t", 0, 2)
    driver.cluster.scheduler.run_due()
    assert driver.replica(1, "t").log.log_end_offset == 0, "it was truncated"
    assert lasting.files.read(path).decode() == "0\n1\nt 0 0\n"


# -- what a start refuses -----------------------------------------------------------------------


def refusal(files: FailingFiles, path: PurePath = DIR, brokers: int = 1) -> str:
    def start() -> None:
        Driver(brokers, data_dir=open_data_dir(files, path, brokers=brokers, sync=False))

    with pytest.raises(DataDirUnusable) as caught:
        start()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_no_data_directory() -> None:
    files = FailingFiles()
    files.write_aside(DIR, b"", sync=False)
    assert refusal(files) == "/data is not a directory"


def test_a_directory_has_one_process() -> None:
    files = FailingFiles()
    first = open_data_dir(files, DIR, brokers=1, sync=False)
    assert refusal(files) == "/data is in use by another process that runs"
    first.close()
    open_data_dir(files, DIR, brokers=1, sync=False)


def test_a_newer_layout_is_refused() -> None:
    lasting = Lasting(1)
    lasting.stop()
    registry_file.begin(
        lasting.files, DIR / "registry.log", Known(cluster_id="c", layout=2), sync=False
    )
    assert "made by a newer fencepost" in refusal(lasting.files)
    assert "made by a newer fencepost" in refusal(lasting.files), "and the lock is given back"


def test_logs_without_a_registry_are_refused() -> None:
    lasting = Lasting(1)
    lasting.stop()
    lasting.files.remove(DIR / "registry.log")
    assert refusal(lasting.files) == (
        "/data has broker-1, and no registry.log that says what is in it"
    )


def test_another_clusters_log_directory_is_refused() -> None:
    lasting = Lasting(1)
    lasting.stop()
    path = DIR / "broker-1" / "meta.properties"
    text = lasting.files.read(path).decode()
    lasting.files.write_aside(path, text.replace("node.id=1", "node.id=2").encode(), sync=False)
    assert refusal(lasting.files) == (
        "/data/broker-1/meta.properties says node.id=2, and it is to be 1"
    )


# -- the log directory of a real Kafka ----------------------------------------------------------


def as_kafkas(lasting: Lasting, node_id: int = 1) -> FailingFiles:
    """The log directory of a broker alone, as a real one would have left it."""
    files = FailingFiles()
    home = DIR / f"broker-{node_id}"

    def copy(source: PurePath, target: PurePath) -> None:
        if lasting.files.is_dir(source):
            files.make_dirs(target)
            for name in lasting.files.names(source):
                copy(source / name, target / name)
        else:
            files.write_aside(target, lasting.files.read(source), sync=False)

    copy(home, DIR)
    files.make_dirs(DIR / "__cluster_metadata-0")
    return files


@ENDS
def test_a_real_kafkas_directory_is_served_and_gone_on_with(end: End) -> None:
    lasting = Lasting(1)
    topic_id = create(lasting.driver, "t", [(1,), (1,)])
    produce(lasting.driver, "t", b"a", b"b", index=1)
    sent = request(("t", 1, batch(b"c", producer=(4, 0, 0))))
    lasting.driver.ask(1, "produce", 12, sent)
    epoch = lasting.driver.partition("t").leader_epoch
    cluster_id = lasting.driver.cluster.controller.image.cluster_id
    end(lasting)
    lasting.files = as_kafkas(lasting)
    for process in range(2):
        driver = lasting.begin()
        found = lasting.persistence.found
        assert found is not None
        assert (found.adopted, found.missing) == (process == 0, ())
        image = driver.cluster.controller.image
        assert image.cluster_id == cluster_id
        assert image.topics.keys() == {"t"}
        assert image.topics["t"].topic_id == topic_id
        assert driver.partition("t", 1).leader_epoch > epoch
        epoch = driver.partition("t", 1).leader_epoch
        assert content(driver, index=1) == [b"a", b"b", b"c"] + [b"d"] * process
        given = driver.broker(1).producer_ids.next()
        assert given is not None
        assert given > 4, "ids up to that were given by somebody else"
        assert lasting.files.exists(DIR / "__cluster_metadata-0")
        produce(driver, "t", b"d", index=1)
        assert list_offset(driver, "t", -1, index=1).offset == 4 + process
        end(lasting)


def test_what_a_real_kafka_does_not_have_here_begins_empty_and_is_told() -> None:
    lasting = Lasting(1)
    create(lasting.driver, "t", [(1,), (1,)])
    lasting.stop()
    lasting.files = as_kafkas(lasting)
    lasting.files.remove_tree(DIR / "t-0")
    driver = lasting.begin()
    assert lasting.persistence.found is not None
    assert lasting.persistence.found.missing == ("t-0",)
    assert len(driver.cluster.controller.image.topics["t"].partitions) == 2


def test_commits_stay_also_where_kafkas_metadata_is_elsewhere() -> None:
    lasting = Lasting(1)
    create(lasting.driver, "__consumer_offsets", [(1,)])
    create(lasting.driver, "t", [(1,)])
    lasting.stop()
    lasting.files = as_kafkas(lasting)
    image = lasting.begin().cluster.controller.image
    assert image.configs_of("__consumer_offsets") == {"cleanup.policy": "compact"}
    assert image.configs_of("t") == {}


def test_a_real_kafkas_directory_is_that_brokers() -> None:
    lasting = Lasting(3)
    create(lasting.driver, "t", [(2, 1, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    lasting.files = as_kafkas(lasting, 2)
    with pytest.raises(DataDirUnusable, match=r"brokers up to 2.*--brokers 2 or more"):
        lasting.begin(1)
    driver = lasting.begin(2)
    assert driver.partition("t").replicas == (2,)
    assert content(driver) == [b"a"]
    assert lasting.files.exists(DIR / "broker-1" / "meta.properties")
    assert not lasting.files.exists(DIR / "broker-2")
