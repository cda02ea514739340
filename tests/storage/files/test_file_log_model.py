"""A log in files beside one in memory: whatever is done to both, they answer the same.

What a process leaves behind when it ends is all of it; what a machine leaves is a beginning of it
that has everything that was synced.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    CorruptBatch,
    Record,
    build_batch,
    iter_headers,
    read_header,
)
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.files.recovery import LogRecoveryReport
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, OffsetOutOfRange, UnexpectedAppendOffset
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.storage.files.mirror import DIRECTORY, all_records, as_kept, mirror, reopen

NOW = 1_000
DELETED = LogConfig(
    segment_bytes=700,
    segment_ms=300,
    retention_ms=400,
    retention_bytes=2_500,
    index_interval_bytes=150,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=100,
    producer_id_expiration_ms=600,
)
CONFIGS = [
    DELETED,
    replace(DELETED, cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=6_000),
    replace(DELETED, remote_storage_enable=True, local_retention_ms=200),
    replace(DELETED, flush_messages=3),
]
Answer = TypeVar("Answer")


def first_record(log: Log, offset: int) -> int:
    """The first offset from this one on at which there is a record, or the end."""
    offsets = (record.offset for record in all_records(log) if record.offset >= offset)
    return next(offsets, log.log_end_offset)


class BothLogs(RuleBasedStateMachine):
    shared: Callable[[], ProcessLimits] = ProcessLimits

    @initialize(config=st.sampled_from(CONFIGS), start=st.sampled_from([0, 7]))
    def make(self, config: LogConfig, start: int) -> None:
        self.now = NOW
        self.config = config
        self.fs = FaultyFileSystem(lambda: self.now)
        self.fs.make_dirs(DIRECTORY.parent)
        self.fs.settle()
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.start_offset = start
        self.cleaned_until = 0
        self.open(clean=True, recovery_point=0)
        self.memory = mirror(self.file)

    def open(self, *, clean: bool, recovery_point: int) -> LogRecoveryReport:
        self.file, recovery = reopen(
            self.fs,
            self.config,
            clean=clean,
            now_ms=self.now,
            recovery_point=recovery_point,
            log_start_offset=self.start_offset,
            cleaned_until=self.cleaned_until,
            shared=self.shared(),
        )
        return recovery

    def both(self, do: Callable[[Log], Answer]) -> Answer | None:
        """Do the same to both, and see that they answer the same."""
        mine, theirs = (self.outcome(do, log) for log in (self.file, self.memory))
        assert mine == theirs
        return mine if not isinstance(mine, str) else None

    def outcome(self, do: Callable[[Log], Answer], log: Log) -> Answer | str:
        try:
            return do(log)
        except (OffsetOutOfRange, UnexpectedAppendOffset, CorruptBatch) as error:
            return repr(error)

    def offset_near(self, fraction: float) -> int:
        start: int = self.memory.log_start_offset
        end: int = self.memory.log_end_offset
        return max(start - 1 + round(fraction * (end - start + 2)), 0)

    # What changes them.

    @rule(
        timestamps=st.lists(st.integers(-1, 900), min_size=1, max_size=4),
        key=st.sampled_from([b"a", b"b", b"c"]),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
        size=st.none() | st.integers(0, 120),
        producer=st.none() | st.integers(1, 4),
        skipped=st.sampled_from([0, 0, 0, 0, 1, -1]),
        transactional=st.booleans(),
    )
    def append(
        self,
        timestamps: list[int],
        key: bytes,
        codec: Codec,
        size: int | None,
        producer: int | None,
        skipped: int,
        transactional: bool,
    ) -> None:
        value = None if size is None else b"v" * size
        records = [Record(i, ts, key, value) for i, ts in enumerate(timestamps)]
        if producer is None:
            data = build_batch(records, codec=codec)
        else:
            sequence = max(self.sequences.get(producer, 0) + skipped, 0)
            self.sequences[producer] = sequence + len(records)
            data = build_batch(
                records,
                codec=codec,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=transactional and producer >= 3,
            )
        self.both(lambda log: self.verify_and_append(log, data))

    def verify_and_append(self, log: Log, data: bytearray) -> AppendResult | AppendRejected:
        header, guard = read_header(data), None
        if header.is_transactional:
            started = log.maybe_start_verification(
                header.producer_id, header.base_sequence, 0, supports_epoch_bump=False
            )
            assert not isinstance(started, ErrorCode)
            guard = started
        return log.append_as_leader(
            bytearray(data), leader_epoch=self.epoch, now_ms=self.now, guard=guard
        )

    @rule(producer=st.integers(3, 4), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        marker = TransactionMarker(
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            committed=committed,
            transaction_version=0,
        )
        data = marker.to_batch(self.now)
        self.both(
            lambda log: log.append_as_leader(
                bytearray(data),
                leader_epoch=self.epoch,
                now_ms=self.now,
                origin=AppendOrigin.COORDINATOR,
            )
        )

    @rule(
        gaps=st.lists(st.integers(-1, 3), min_size=1, max_size=4),
        size=st.integers(0, 120),
        cut=st.integers(0, 90),
        by=st.integers(0, 1),
    )
    def replicate(self, gaps: list[int], size: int, cut: int, by: int) -> None:
        self.epoch += by
        data = bytearray()
        offset = self.memory.log_end_offset
        for index, gap in enumerate(gaps):
            offset = max(offset + gap, 0)
            record = Record(offset, 100 * index, b"r", b"v" * size)
            data += build_batch([record], base_offset=offset, leader_epoch=self.epoch)
            offset += 1
        data += data[:cut]
        self.both(lambda log: log.append_as_follower([bytes(data)], now_ms=self.now))

    @rule(by=st.integers(1, 2))
    def elect(self, by: int) -> None:
        self.epoch += by
        self.both(lambda log: log.assign_epoch_start(self.epoch, log.log_end_offset))

    @rule(by=st.integers(1, 250))
    def wait(self, by: int) -> None:
        self.now += by

    @rule()
    def roll(self) -> None:
        self.both(lambda log: log.roll(self.now))

    @rule(fraction=st.floats(0, 1))
    def truncate(self, fraction: float) -> None:
        self.both(lambda log: log.truncate_to(self.offset_near(fraction)))
        self.know_producers_again()

    def know_producers_again(self) -> None:
        """Of a producer's batches the last one only is kept in a snapshot.

        One that had expired is known again where its batches are read again, until it expires, as
        in Kafka: files are read again after more truncations than memory.
        """
        for log in (self.file, self.memory):
            log.expire_producers(self.now)
        assert as_kept(self.file.producers()) == as_kept(self.memory.producers())
        self.memory._state.producers.restore(self.file.producers())

    @rule(ahead=st.integers(0, 3))
    def start_over(self, ahead: int) -> None:
        offset = self.memory.log_end_offset + ahead
        self.both(lambda log: log.truncate_fully_and_start_at(offset, now_ms=self.now))
        self.start_offset = offset

    @precondition(lambda self: self.config.remote_storage_enable)
    @rule(ahead=st.integers(0, 30))
    def start_from_tier(self, ahead: int) -> None:
        start = self.memory.log_start_offset
        offset = self.memory.log_end_offset + ahead
        epochs = [EpochEntry(self.epoch, start), EpochEntry(self.epoch + 1, start + 1)]
        epochs = [entry for entry in epochs if entry.start_offset < offset]
        producers = self.memory.producers()
        self.both(
            lambda log: log.start_from_tier(
                offset,
                log_start_offset=start,
                epochs=epochs,
                producers=as_kept(producers),
                now_ms=self.now,
            )
        )
        self.epoch += 1

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        self.both(lambda log: log.advance_log_start(self.offset_near(fraction)))

    @rule(fraction=st.floats(0, 1))
    def expire(self, fraction: float) -> None:
        high_watermark = min(self.offset_near(fraction), self.memory.log_end_offset)
        self.both(lambda log: log.delete_expired(self.now, high_watermark))

    @rule(fraction=st.floats(0, 1), by_time=st.booleans())
    def delete_local(self, fraction: float, by_time: bool) -> None:
        if self.config.remote_storage_enable:
            now = self.now if by_time else None
            self.both(lambda log: log.delete_local(self.offset_near(fraction), now_ms=now))

    @rule(fraction=st.floats(0, 1))
    def compact(self, fraction: float) -> None:
        high_watermark = min(self.offset_near(fraction), self.memory.log_end_offset)
        self.both(lambda log: log.compact(self.now, high_watermark))

    @rule()
    def expire_producers(self) -> None:
        self.both(lambda log: log.expire_producers(self.now))

    @rule()
    def flush(self) -> None:
        self.file.flush()
        assert self.file.recovery_point == self.file.batches_end_offset

    # What ends the process.

    def leave(self) -> int:
        """The checkpoints as of now; the recovery point among them."""
        self.start_offset = self.memory.log_start_offset
        self.cleaned_until = self.memory.cleaned_until
        return self.file.recovery_point

    @rule(clean=st.booleans())
    def end_process(self, clean: bool) -> None:
        recovery_point = self.leave()
        if clean:
            self.file.close()
        self.fs.end_process()
        recovery = self.open(clean=clean, recovery_point=recovery_point)
        if self.memory.local_segments.active.next_offset < self.start_offset:
            # A batch that lay across an offset went whole; what is left lies before the start.
            assert self.file.size_bytes == 0
            assert self.file.log_start_offset == self.file.log_end_offset == self.start_offset
            self.memory = mirror(self.file)
            return
        assert not recovery.cut
        assert not recovery.tidied
        if clean:
            # Where it says nothing, batches before the log start may.
            assert not recovery.rebuilt or not self.memory.epoch_entries()
            assert not recovery.checked_bytes
        self.see_all()

    def see_all(self) -> None:
        self.memory.expire_producers(self.now)
        last = self.memory.local_segments.active
        # A batch that lay across an offset went whole: the log ends before it, as Kafka's does.
        state = self.memory._state
        state.end = last.next_offset
        state.start = min(state.start, state.end)
        state.epochs.truncate_from_end(state.end)
        state.epochs.truncate_from_start(state.start)
        assert all_records(self.file) == all_records(self.memory)
        assert sizes(self.file) == sizes(self.memory)
        # Where an epoch begins that has no record there, files do not always say: one that begins
        # at the end, one of which a truncation has left nothing, one that a gap follows.
        mine, theirs = (
            {
                first_record(log, entry.start_offset): entry.epoch
                for entry in log.epoch_entries()
                if entry.start_offset < state.end
            }
            for log in (self.file, self.memory)
        )
        assert mine == theirs
        assert known(self.file) == known(self.memory)
        assert aborted(self.file) == aborted(self.memory)
        self.memory = mirror(self.file)

    @rule(seed=st.none() | st.integers(0, 1 << 16))
    def crash(self, seed: int | None) -> None:
        recovery_point = self.leave()
        before, local_start = all_records(self.memory), self.memory.local_log_start_offset
        self.fs.crash(None if seed is None else Random(seed))
        self.open(clean=False, recovery_point=recovery_point)
        # What was removed may be there again: the removal was not synced.
        start = max(self.file.log_start_offset, local_start)
        found = [record for record in all_records(self.file) if record.offset >= start]
        written = [record for record in before if record.offset >= start]
        assert found == written[: len(found)]
        assert not [r for r in written[len(found) :] if r.offset < recovery_point]
        self.memory = mirror(self.file)

    # What asks them.

    @rule(fraction=st.floats(0, 1), bound=st.floats(0, 1), max_bytes=st.integers(0, 800))
    def read(self, fraction: float, bound: float, max_bytes: int) -> None:
        offset, upper = self.offset_near(fraction), self.offset_near(bound)

        def read(log: Log, *, min_one: bool) -> tuple[bytes, int, int]:
            result = log.read(offset, max_bytes=max_bytes, upper_bound=upper, min_one_batch=min_one)
            for buffer in result.buffers[:-1]:
                assert sum(header.size for _, header in iter_headers(buffer)) == len(buffer)
            return b"".join(result.buffers), result.size, result.first_offset

        self.both(lambda log: read(log, min_one=True))
        self.both(lambda log: read(log, min_one=False))
        self.both(lambda log: log.size_between(offset, upper))

    @rule(timestamp=st.integers(-1, 950))
    def look_up_time(self, timestamp: int) -> None:
        self.both(lambda log: log.offset_for_timestamp(timestamp))
        self.both(lambda log: log.offset_of_max_timestamp())

    @rule(fraction=st.floats(0, 1))
    def upload(self, fraction: float) -> None:
        def upload(log: Log) -> object:
            copy = log.segment_to_upload(self.offset_near(fraction), log.log_end_offset)
            if copy is None:
                return None
            data = b"".join(copy.records)
            assert len(data) == copy.size_bytes
            return data, replace(copy, records=(), producers=tuple(as_kept(copy.producers)))

        self.both(upload)

    # What always holds.

    @invariant()
    def they_agree(self) -> None:
        self.both(lambda log: (log.log_start_offset, log.log_end_offset, log.size_bytes))
        self.both(lambda log: log.local_log_start_offset)
        self.both(sizes)
        self.both(times)
        self.both(lambda log: log.epoch_entries())
        self.both(lambda log: log.producers())
        self.both(lambda log: log.last_stable_offset(log.log_end_offset))
        self.both(lambda log: log.aborted_transactions(log.log_start_offset, log.log_end_offset))


def sizes(log: Log) -> list[tuple[int, ...]]:
    return [
        (view.base_offset, view.next_offset, view.size_bytes, view.records, view.max_timestamp)
        for view in log.segments()
    ]


def times(log: Log) -> list[tuple[int, int]]:
    return [(view.created_ms, view.last_modified_ms) for view in log.segments()]


def known(log: Log) -> list[ProducerStateEntry]:
    return as_kept(log.producers())


def aborted(log: Log) -> list[tuple[int, int]]:
    """Aborted transactions: the first record that is left may be a later one after a recovery."""
    return [
        (each.producer_id, each.last_offset)
        for each in log.aborted_transactions(log.local_log_start_offset, log.log_end_offset)
    ]


class BothForgetting(BothLogs):
    """The same where nothing is held in memory."""

    @staticmethod
    def shared() -> ProcessLimits:
        return ProcessLimits(recent_bytes=0, index_bytes=0, open_files=0)


BothLogs.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
BothForgetting.TestCase.settings = BothLogs.TestCase.settings
TestBothLogs = BothLogs.TestCase
TestBothForgetting = BothForgetting.TestCase
