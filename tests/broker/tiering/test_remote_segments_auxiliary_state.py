"""The auxiliary state of a new follower: that of a log with just the records before its start."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.broker.tiering.remote_segments import (
    IndexedRecords,
    auxiliary_objects,
    build_auxiliary_state,
    epochs_within,
)
from fencepost.storage.formats.checkpoints import encode_snapshot
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.memory import memory_log
from fencepost.storage.tier.object_store import MemoryObjectStore, ObjectKind, TierError, object_key
from fencepost.storage.tier.segment_metadata import (
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)
from tests.harness.logs import NOW, T, append, append_marker
from tests.harness.records import batch

PARTITION: Final = TopicIdPartition(topic="t", topic_id=UUID(int=7), index=0)
EPOCHS: Final = (0, 0, 0, 1, 1, 2, 2, 4, 4, 4, 4, 5)
"""Of each record, by offset; epoch 3 wrote nothing."""


def written(epochs: tuple[int, ...] = EPOCHS, *, rolls: tuple[int, ...] = ()) -> SegmentedLog:
    """A log of one record a batch, of three producers in turn; the first has been away since.

    :param rolls: Offsets at which segments begin.
    """
    log = memory_log("t-0", LogConfig(), now_ms=NOW)
    for offset, epoch in enumerate(epochs):
        if offset in rolls:
            log.roll(NOW)
        log.assign_epoch_start(epoch, offset)
        pid, seq = (1, offset) if offset < 2 else (2 + offset % 2, (offset - 2) // 2)
        data = batch((T + offset, b"k", b"v"), producer=(pid, 0, seq))
        assert isinstance(log.append_as_leader(data, leader_epoch=epoch, now_ms=NOW), AppendResult)
    return log


class Tier:
    """Segments of logs."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(ManualClock())
        self.objects = MemoryObjectStore(self.scheduler.soon)
        self.ids = 0

    def upload(
        self,
        log: SegmentedLog,
        state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    ) -> None:
        """All closed segments of a log."""
        for view in log.segments()[:-1]:
            copy = log.segment_to_upload(view.base_offset, log.log_end_offset)
            assert copy is not None
            self.ids += 1
            segment = RemoteSegment(
                partition=PARTITION,
                id=UUID(int=self.ids),
                start_offset=copy.base_offset,
                end_offset=copy.end_offset,
                epochs=epochs_within(copy),
                size_bytes=copy.size_bytes,
                max_timestamp=copy.max_timestamp,
                broker_id=1,
                event_ms=NOW,
                state=state,
            )
            records = IndexedRecords(copy, 4096)
            self.objects.objects[object_key(segment, ObjectKind.LOG)] = b"".join(records)
            for part, data in auxiliary_objects(copy, records).items():
                self.objects.objects[object_key(segment, part)] = data
            self.objects.objects[object_key(segment, ObjectKind.METADATA)] = segment.to_json()

    def build(self, offset: int, epoch: int) -> AuxiliaryState | TierError:
        """The state before an offset; `epoch` is that of the record before it."""
        told: list[AuxiliaryState | TierError] = []
        job = AsyncTask(
            build_auxiliary_state(self.objects, PARTITION, epoch=epoch, offset=offset), told.append
        )
        job.start()
        self.scheduler.run_due()
        (found,) = told
        return found


def assert_like(found: AuxiliaryState | TierError, log: SegmentedLog) -> None:
    """As far as a snapshot tells: it has of each producer the last batch."""
    assert isinstance(found, AuxiliaryState)
    assert found.epochs == log.epoch_entries()
    assert encode_snapshot(found.producers) == encode_snapshot(log.producers())


@pytest.mark.parametrize("offset", range(1, 11))
def test_it_is_that_of_a_log_that_ends_there(offset: int) -> None:
    """Also in the middle of a segment: another leader may have cut its segments elsewhere."""
    tier = Tier()
    tier.upload(written(rolls=(3, 6, 10)))
    assert_like(tier.build(offset, EPOCHS[offset - 1]), written(EPOCHS[:offset]))


@pytest.mark.parametrize("offset", range(1, 12))
def test_segments_of_several_leaders_may_overlap(offset: int) -> None:
    tier = Tier()
    tier.upload(written(EPOCHS[:8], rolls=(4, 7)))
    tier.upload(written(rolls=(2, 6, 11)))
    assert_like(tier.build(offset, EPOCHS[offset - 1]), written(EPOCHS[:offset]))


@pytest.mark.parametrize("offset", range(1, 10))
def test_a_truncated_branch_is_not_looked_at(offset: int) -> None:
    """Two leaders wrote from offset 5 on, and both uploaded what they wrote."""
    ours, lost = (0, 0, 0, 1, 1, 3, 3, 3, 3, 3), (0, 0, 0, 1, 1, 1, 1, 2, 2, 2)
    tier = Tier()
    tier.upload(written(lost, rolls=(4, 7, 9)))
    tier.upload(written(ours, rolls=(5, 9)))
    assert_like(tier.build(offset, ours[offset - 1]), written(ours[:offset]))
    assert_like(tier.build(offset, lost[offset - 1]), written(lost[:offset]))


def with_transactions(end: int = 8) -> SegmentedLog:
    """The first `end` records of a log in which three producers write, and all but one abort."""
    log = memory_log("t-0", LogConfig(), now_ms=NOW)
    for offset, (producer, sequence) in enumerate(
        [(4, 0), (5, 0), (6, 0), (4, None), (4, 1), (5, None), (6, 1), (4, None)][:end]
    ):
        log.assign_epoch_start(0, 0)
        if sequence is None:
            append_marker(log, producer, committed=False, coordinator_epoch=offset)
        else:
            append(log, batch(b"v", producer=(producer, 0, sequence), transactional=True))
    return log


@pytest.mark.parametrize("offset", range(1, 9))
def test_transactions_are_open_as_they_were_there(offset: int) -> None:
    tier = Tier()
    log = with_transactions()
    log.roll(NOW)
    tier.upload(log)
    found, want = tier.build(offset, 0), with_transactions(offset)
    assert_like(found, want)
    assert isinstance(found, AuxiliaryState)
    assert [each.txn_first_offset for each in found.producers] == [
        each.txn_first_offset for each in want.producers()
    ]


def test_what_expired_is_not_known() -> None:
    tier = Tier()
    log = written(rolls=(3, 6, 10))
    tier.upload(log)
    for key in [key for key in tier.objects.objects if f"/{0:020d}-" in key]:
        del tier.objects.objects[key]
    found = tier.build(4, 1)
    assert isinstance(found, AuxiliaryState)
    assert found.since(3) == (EpochEntry(1, 3),)
    assert [producer.producer_id for producer in found.producers] == [3]
    assert_like(tier.build(6, 2), written(EPOCHS[:6]))


@pytest.mark.parametrize(("offset", "epoch"), [(11, 4), (6, 1), (4, 0)])
def test_a_record_that_the_tier_lacks_is_an_error(offset: int, epoch: int) -> None:
    tier = Tier()
    tier.upload(written(rolls=(3, 6, 10)))
    found = tier.build(offset, epoch)
    assert isinstance(found, TierError)
    assert found.missing


@pytest.mark.parametrize(
    "state",
    [RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED],
)
def test_a_segment_that_is_not_whole_is_not_read(state: RemoteLogSegmentState) -> None:
    tier = Tier()
    tier.upload(written(rolls=(3,)), state)
    assert isinstance(tier.build(3, 0), TierError)


def test_the_epochs_begin_with_the_log() -> None:
    tier = Tier()
    tier.upload(written(rolls=(3, 6, 10)))
    found = tier.build(10, 4)
    assert isinstance(found, AuxiliaryState)
    assert found.since(0) == found.epochs
    assert found.since(4) == (EpochEntry(1, 4), EpochEntry(2, 5), EpochEntry(4, 7))
    assert found.since(9) == (EpochEntry(4, 9),)
