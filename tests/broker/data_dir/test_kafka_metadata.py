"""A real Kafka's metadata log out of files that are written here as Kafka writes them."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from fencepost.broker.data_dir.kafka_metadata import (
    Entry,
    KafkaMetadataLog,
    MetadataEntry,
    SnapshotStart,
    topic_configs,
)
from fencepost.protocol.metadata_records import (
    BROKER_RESOURCE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
)
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.metadata_logs import (
    TIME,
    TOPIC_ID,
    batch,
    batches,
    config,
    control_batch,
    file_name,
    snapshot,
    topic,
)

DIR = PurePath("/kafka")
LOG = DIR / "__cluster_metadata-0"
OTHER = PurePath("/other/__cluster_metadata-0")


def a(text: str) -> ConfigRecord:
    return config("t", "a", text)


def written(
    fs: FaultyFileSystem | None = None, log: PurePath = LOG, **files: bytes
) -> FaultyFileSystem:
    made = fs or FaultyFileSystem()
    made.make_dirs(log)
    for name, data in files.items():
        made.write_atomic(log / file_name(name), data, sync=False)
    return made


def read(fs: FaultyFileSystem, *logs: PurePath) -> tuple[KafkaMetadataLog, list[Entry]]:
    log = KafkaMetadataLog(fs, *(logs or (LOG,)))
    return log, list(log.entries())


def texts(entries: list[Entry]) -> list[str | None]:
    """The values of the configs, ``|N`` where a snapshot of what is before N begins."""
    found: list[str | None] = []
    for each in entries:
        if isinstance(each, SnapshotStart):
            found.append(f"|{each.end}")
        elif isinstance(each.record, ConfigRecord):
            found.append(each.record.value)
    return found


def test_a_log_from_its_beginning() -> None:
    data = control_batch(0) + batch(1, a("1"), b"\x01\x14\x00\x00", a("2"))
    log, entries = read(written(log_0=data, log_4=batch(4, a("3"))))
    assert entries == [
        MetadataEntry(1, TIME + 1000, a("1"), False),
        MetadataEntry(3, TIME + 3000, a("2"), False),
        MetadataEntry(4, TIME + 4000, a("3"), False),
    ]
    assert (log.start, log.end, log.problems) == (0, 5, [])


def test_a_log_whose_first_segments_are_deleted_begins_with_the_earliest_snapshot() -> None:
    files = written(
        snapshot_6=snapshot(a("s6")),
        snapshot_8=snapshot(a("s8")),
        log_4=batches(4, a("4"), a("5"), a("6")),
        log_7=batches(7, a("7"), a("8")),
    )
    log, entries = read(files)
    assert texts(entries) == ["|6", "s6", "6", "7", "8"]
    assert entries[1] == MetadataEntry(6, TIME, a("s6"), True)
    assert (log.start, log.end, log.problems) == (6, 9, [])


def test_a_whole_log_needs_no_snapshot() -> None:
    log, entries = read(written(snapshot_1=snapshot(a("s")), log_0=batches(0, a("0"), a("1"))))
    assert (texts(entries), log.start) == (["0", "1"], 0)


def test_a_follower_that_fetched_a_snapshot_beyond_its_log() -> None:
    log, entries = read(written(snapshot_9=snapshot(a("s")), log_0=batches(0, a("0")), log_9=b""))
    assert texts(entries) == ["0", "|9", "s"]
    assert (log.start, log.end) == (9, 9)
    assert len(log.problems) == 1


@pytest.mark.parametrize("tail", [batch(1, a("1"))[:-3], b"", batch(1, a("1"))[:20]])
def test_a_torn_end_is_left_out(tail: bytes) -> None:
    log, entries = read(written(log_0=batches(0, a("0")) + tail))
    assert (texts(entries), log.end, log.problems) == (["0"], 1, [])


def flipped(data: bytes) -> bytes:
    return data[:-4] + bytes([data[-4] ^ 1]) + data[-3:]


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (flipped(batch(1, a("1"))), "the checksum of the batch at offset 1 is wrong"),
        (b"\xff" * 100, "Record size -1"),
        (batch(2, a("2")), "the next batch begins at offset 2"),
        (batch(1, a("0"), b"\x01\x02\x09"), "a TopicRecord of version 9"),
        (batch(1, b"\x01\x04\x00"), "not a record of this log"),
    ],
    ids=["checksum", "no batch", "gap", "newer version", "no record"],
)
def test_damage_is_told_and_what_follows_is_not_read(damaged: bytes, why: str) -> None:
    files = written(log_0=batches(0, a("0")) + damaged, log_3=batches(3, a("3")))
    log, entries = read(files)
    assert (texts(entries), log.start, log.end) == (["0"], 0, 1)
    (problem,) = log.problems
    assert problem.startswith(f"{LOG} can't be read from offset 1 on: ")
    assert why in problem


def test_a_snapshot_behind_the_damage_is_gone_on_with() -> None:
    data = batches(0, a("0")) + flipped(batch(1, a("1"))) + batches(2, a("2"), a("3"), a("4"))
    log, entries = read(written(log_0=data, snapshot_4=snapshot(a("s"))))
    assert texts(entries) == ["0", "|4", "s", "4"]
    assert (log.start, log.end, len(log.problems)) == (4, 5, 1)


@pytest.mark.parametrize("damage", [flipped, lambda data: data[:-1], lambda data: data[:-79]])
def test_a_snapshot_that_is_not_whole_is_left_out(damage: object) -> None:
    assert callable(damage)
    files = written(
        snapshot_4=damage(snapshot(a("s4"))),
        snapshot_5=snapshot(a("s5")),
        log_4=batches(4, a("4"), a("5")),
    )
    log, entries = read(files)
    assert (texts(entries), log.start) == (["|5", "s5", "5"], 5)
    (problem,) = log.problems
    assert problem.startswith(f"{LOG}/00000000000000000004-0000000001.checkpoint ")


def test_a_log_without_the_snapshot_that_it_needs() -> None:
    log, entries = read(written(log_4=batches(4, a("4"))))
    assert (entries, log.end) == ([], 0)
    assert log.problems == [
        f"{LOG} begins at offset 4, and no snapshot can be read that holds what came before"
    ]


def test_a_transaction_holds_when_it_ends() -> None:
    data = batches(
        0,
        BeginTransactionRecord("one"),
        a("1"),
        EndTransactionRecord(),
        BeginTransactionRecord("two"),
        a("4"),
        AbortTransactionRecord("no"),
        a("6"),
        BeginTransactionRecord("three"),
        a("8"),
    )
    log, entries = read(written(log_0=data))
    assert texts(entries) == ["1", "6"]
    assert (log.end, log.problems) == (9, [])


def test_a_transaction_before_a_snapshot_holds_nothing_behind_it() -> None:
    data = batches(0, BeginTransactionRecord(), a("1")) + flipped(batch(2, a("2")))
    files = written(log_0=data, snapshot_4=snapshot(a("s")), log_4=batches(4, a("4")))
    log, entries = read(files)
    assert texts(entries) == ["|4", "s", "4"]
    assert (log.start, log.end) == (4, 5)


def test_copies_complete_each_other() -> None:
    files = written(log_0=batches(0, a("0"), BeginTransactionRecord(), a("2")))
    written(
        files,
        OTHER,
        snapshot_3=snapshot(a("s")),
        log_3=batches(3, a("3"), EndTransactionRecord(), a("5")),
    )
    log, entries = read(files, LOG, OTHER)
    assert texts(entries) == ["0", "2", "3", "5"]
    assert (log.start, log.end, log.problems) == (0, 6, [])


def test_another_copy_has_what_is_damaged() -> None:
    whole = [batch(each, a(str(each))) for each in range(4)]
    files = written(log_0=whole[0] + flipped(whole[1]) + whole[2] + whole[3])
    written(files, OTHER, log_0=b"".join(whole[:3]))
    log, entries = read(files, OTHER, LOG)
    assert (texts(entries), log.problems) == (["0", "1", "2", "3"], [])
    log, entries = read(files, LOG, OTHER)
    assert (texts(entries), len(log.problems)) == (["0", "1", "2"], 1)


# -- configs of topics --------------------------------------------------------------------------


def test_there_are_none_without_a_metadata_log() -> None:
    assert topic_configs(FaultyFileSystem(), DIR) == {}


def test_what_was_said_last_holds() -> None:
    long = "x" * 300
    files = written(
        snapshot_2=snapshot(config("t", "retention.ms", "1"), config("u", "a", "b")),
        log_2=batch(
            2,
            config("t", "retention.ms", "2"),
            config("u", "a", None),
            config("t", "long", long),
            ConfigRecord(BROKER_RESOURCE, "1", "log.retention.ms", "9"),
        ),
    )
    assert topic_configs(files, DIR) == {"t": {"retention.ms": "2", "long": long}, "u": {}}


def test_a_deleted_topic_leaves_no_configs_to_the_next_of_its_name() -> None:
    data = batch(0, topic(), a("1"), RemoveTopicRecord(TOPIC_ID), config("t", "b", "2"))
    assert topic_configs(written(log_0=data), DIR) == {"t": {"b": "2"}}


def test_a_torn_or_broken_end_of_configs_is_left_out() -> None:
    whole = batch(0, a("1"))
    for tail in (batch(1, a("2"))[:-3], b"\x00" * 100, b"\xff" * 100):
        assert topic_configs(written(log_0=whole + tail), DIR) == {"t": {"a": "1"}}
