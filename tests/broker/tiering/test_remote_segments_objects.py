from __future__ import annotations

from fencepost.broker.tiering.remote_segments import (
    IndexedRecords,
    auxiliary_objects,
    epochs_within,
)
from fencepost.protocol.records import iter_headers
from fencepost.storage.formats.checkpoints import decode_epochs, decode_snapshot
from fencepost.storage.formats.indexes import OffsetIndex, TimeIndex
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, SegmentCopy
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.object_store import ObjectKind
from tests.harness.logs import NOW, T, append, new_log
from tests.harness.records import batch

TIMES = (5, 3, 9, 9, 4, 12, 1)


def a_copy(log: Log, offset: int = 0) -> SegmentCopy:
    log.roll(NOW)
    copy = log.segment_to_upload(offset, log.log_end_offset)
    assert copy is not None
    return copy


def a_log() -> Log:
    """One batch of two records each, at these times."""
    log = new_log()
    for number, time in enumerate(TIMES):
        append(log, batch((T + time, b"k", b"v"), (T, b"k", b"v"), producer=(7, 0, 2 * number)))
    return log


def test_the_bytes_come_unchanged_and_as_often_as_asked() -> None:
    copy = a_copy(a_log())
    records = IndexedRecords(copy, 100)
    once, again = b"".join(records), b"".join(records)
    assert once == again == b"".join(copy.records)
    assert len(once) == copy.size_bytes
    repeated = IndexedRecords(copy, 100)
    assert b"".join(repeated) == once
    assert records.offset_index.entries() == repeated.offset_index.entries() != []


def test_entries_come_when_more_than_the_interval_went_by_as_in_kafka() -> None:
    copy = a_copy(a_log())
    (size,) = {header.size for buffer in copy.records for _, header in iter_headers(buffer)}
    for interval, every in ((0, 1), (size - 1, 1), (size, 2), (2 * size, 3)):
        records = IndexedRecords(copy, interval)
        assert b"".join(records)
        wanted = [(2 * at + 1, at * size) for at in range(every, len(TIMES), every)]
        assert [tuple(entry) for entry in records.offset_index.entries()] == wanted


def test_the_time_index_has_the_largest_so_far_and_at_last_the_largest_of_all() -> None:
    copy = a_copy(a_log())
    records = IndexedRecords(copy, 0)
    assert b"".join(records)
    entries = [(stamp - T, offset) for stamp, offset in records.time_index.entries()]
    assert entries == [(5, 1), (9, 5), (12, 11)]
    few = IndexedRecords(copy, 10**6)
    assert b"".join(few)
    assert [(stamp - T, offset) for stamp, offset in few.time_index.entries()] == [(12, 11)]


def test_all_objects_can_be_read_back() -> None:
    log = a_log()
    append(log, epoch=3)
    copy = a_copy(log)
    records = IndexedRecords(copy, 0)
    assert b"".join(records)
    objects = auxiliary_objects(copy, records)
    assert list(objects) == [
        ObjectKind.OFFSET_INDEX,
        ObjectKind.TIME_INDEX,
        ObjectKind.PRODUCER_SNAPSHOT,
        ObjectKind.LEADER_EPOCHS,
    ]
    index = OffsetIndex.decode(objects[ObjectKind.OFFSET_INDEX], 0)
    assert index.entries() == records.offset_index.entries()
    times = TimeIndex.decode(objects[ObjectKind.TIME_INDEX], 0)
    assert times.entries() == records.time_index.entries()
    (producer,) = decode_snapshot(objects[ObjectKind.PRODUCER_SNAPSHOT])
    assert (producer.producer_id, producer.last_sequence) == (7, 2 * len(TIMES) - 1)
    assert decode_epochs(objects[ObjectKind.LEADER_EPOCHS]) == (
        EpochEntry(0, 0),
        EpochEntry(3, 2 * len(TIMES)),
    )


def test_a_segments_own_epochs_begin_with_it() -> None:
    log = new_log(LogConfig())
    for epoch in (0, 0, 2):
        append(log, epoch=epoch)
    log.roll(NOW)
    for epoch in (2, 5):
        append(log, epoch=epoch)
    first, second = a_copy(log), a_copy(log, 3)
    assert first.epochs == (EpochEntry(0, 0), EpochEntry(2, 2))
    assert epochs_within(first) == first.epochs
    assert second.epochs == (EpochEntry(0, 0), EpochEntry(2, 2), EpochEntry(5, 4))
    assert epochs_within(second) == (EpochEntry(2, 3), EpochEntry(5, 4))


def test_without_epochs_there_are_none() -> None:
    log = new_log(LogConfig(keeps_leader_epochs=False))
    append(log, epoch=-1)
    assert epochs_within(a_copy(log)) == ()
