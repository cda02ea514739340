"""The log against a naive model of one: lists of batches, searched from end to end."""

from dataclasses import dataclass, field
from pathlib import PurePath

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, build_batch, iter_headers
from fencepost.storage.files.open_log import open_log
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, OffsetOutOfRange
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.memory import memory_log
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import FORGETFUL

NOW = 1_000
CONFIG = LogConfig(segment_bytes=600, segment_ms=200, retention_ms=300, retention_bytes=2_000)


@dataclass
class Batch:
    base: int
    size: int
    epoch: int
    timestamps: list[int]

    @property
    def last(self) -> int:
        return self.base + len(self.timestamps) - 1

    @property
    def records(self) -> list[tuple[int, int]]:
        return [(self.base + index, timestamp) for index, timestamp in enumerate(self.timestamps)]


@dataclass
class Part:
    base: int
    created: int
    modified: int
    batches: list[Batch] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(batch.size for batch in self.batches)

    @property
    def largest(self) -> int:
        largest = max((max(batch.timestamps) for batch in self.batches), default=-1)
        return largest if largest >= 0 else self.modified

    def must_roll_for(self, batch: Batch, now: int) -> bool:
        if self.size + batch.size > CONFIG.segment_bytes:
            return True
        if not self.batches:
            return False
        first = max(self.batches[0].timestamps)
        waited = max(batch.timestamps) - first if first >= 0 else now - self.created
        return waited > CONFIG.segment_ms


class LogMachine(RuleBasedStateMachine):
    log: Log

    @initialize(start=st.sampled_from([0, 7]))
    def make(self, start: int) -> None:
        self.now = NOW
        self.log = self.new_log(start)
        self.start = self.end = start
        self.epoch = 0
        self.epochs: list[tuple[int, int]] = []
        self.parts = [Part(start, self.now, self.now)]

    def new_log(self, start: int) -> Log:
        return memory_log("model-0", CONFIG, now_ms=self.now, start_offset=start)

    @property
    def batches(self) -> list[Batch]:
        return [batch for part in self.parts for batch in part.batches]

    def offset_near(self, fraction: float) -> int:
        return self.start - 1 + round(fraction * (self.end - self.start + 2))

    # What changes it.

    @rule(
        timestamps=st.lists(st.integers(-1, 900), min_size=1, max_size=4),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4]),
        size=st.integers(0, 120),
    )
    def append(self, timestamps: list[int], codec: Codec, size: int) -> None:
        value = b"v" * size
        records = [Record(i, ts, b"k", value) for i, ts in enumerate(timestamps)]
        data = build_batch(records, codec=codec)
        batch = Batch(self.end, len(data), self.epoch, timestamps)
        result = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.now)
        assert isinstance(result, AppendResult)
        assert (result.first_offset, result.last_offset) == (batch.base, batch.last)
        self.assign_epoch(self.epoch, self.end)
        if self.parts[-1].must_roll_for(batch, self.now):
            self.new_part()
        self.parts[-1].batches.append(batch)
        self.parts[-1].modified = self.now
        self.end = batch.last + 1

    def new_part(self) -> None:
        part = Part(self.end, self.now, self.now)
        if self.parts[-1].batches:
            self.parts.append(part)
        else:
            self.parts[-1] = part

    def assign_epoch(self, epoch: int, offset: int) -> None:
        if self.epochs and self.epochs[-1][0] == epoch and self.epochs[-1][1] <= offset:
            return
        self.epochs = [(e, o) for e, o in self.epochs if e < epoch and o < offset]
        self.epochs.append((epoch, offset))

    @rule(by=st.integers(1, 2))
    def elect(self, by: int) -> None:
        self.epoch += by
        self.assign_epoch(self.epoch, self.end)
        self.log.assign_epoch_start(self.epoch, self.log.log_end_offset)

    @rule(by=st.integers(1, 250))
    def wait(self, by: int) -> None:
        self.now += by

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now)
        if self.parts[-1].batches:
            self.new_part()

    @rule(fraction=st.floats(0, 1))
    def truncate(self, fraction: float) -> None:
        offset = max(self.offset_near(fraction) - 1, 0)
        assert self.log.truncate_to(offset) == (offset < self.end)
        self.epochs = [(e, o) for e, o in self.epochs if o < offset]
        if offset >= self.end:
            return
        if offset < self.parts[0].base:
            self.epochs = []
            self.parts = [Part(offset, self.parts[-1].created, self.parts[-1].created)]
        else:
            self.parts = [part for part in self.parts if part.base <= offset]
            last = self.parts[-1]
            last.batches = [batch for batch in last.batches if batch.last < offset]
        self.end = offset
        self.start = min(self.start, offset)

    @rule(ahead=st.integers(0, 3))
    def start_over(self, ahead: int) -> None:
        offset = self.end + ahead
        self.log.truncate_fully_and_start_at(offset, now_ms=self.now)
        self.start = self.end = offset
        self.epochs = []
        self.parts = [Part(offset, self.now, self.now)]

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        offset = self.offset_near(fraction)
        if offset > self.end:
            try:
                self.log.advance_log_start(offset)
            except OffsetOutOfRange:
                return
            raise AssertionError("the log start went behind the log end")
        assert self.log.advance_log_start(offset) == (offset > self.start)
        self.move_start(offset)

    def move_start(self, offset: int) -> None:
        if offset > self.start:
            self.start = offset
            before = [e for e, o in self.epochs if o <= offset]
            self.epochs = [(e, o) for e, o in self.epochs if o > offset]
            if before:
                self.epochs.insert(0, (before[-1], offset))
            self.drop_parts()

    def drop_parts(self) -> int:
        count = 0
        while len(self.parts) > 1 and self.parts[1].base <= self.start:
            self.parts.pop(0)
            count += 1
        return count

    @rule(fraction=st.floats(0, 1))
    def expire(self, fraction: float) -> None:
        high_watermark = min(max(self.offset_near(fraction), self.start), self.end)
        dropped = self.drop_parts()
        excess = sum(part.size for part in self.parts) - CONFIG.retention_bytes
        by_size = True
        count = 0
        for index, part in enumerate(self.parts):
            is_last = index == len(self.parts) - 1
            end = self.end if is_last else self.parts[index + 1].base
            if high_watermark < end or (is_last and not part.batches):
                break
            by_size = by_size and excess >= part.size
            if by_size:
                excess -= part.size
            elif self.now - part.largest <= CONFIG.retention_ms:
                break
            count += 1
        assert self.log.delete_expired(self.now, high_watermark) == dropped + count
        if count == len(self.parts):
            self.new_part()
        if count:
            self.move_start(self.parts[count].base)
            self.drop_parts()

    # What asks it.

    @rule(fraction=st.floats(0, 1), bound=st.floats(0, 1), max_bytes=st.integers(0, 700))
    def read(self, fraction: float, bound: float, max_bytes: int) -> None:
        offset, upper = self.offset_near(fraction), self.offset_near(bound)
        if not self.start <= offset <= self.end:
            try:
                self.log.read(offset, max_bytes=1, upper_bound=self.end, min_one_batch=True)
            except OffsetOutOfRange:
                return
            raise AssertionError("an offset out of range was read")
        expected: list[Batch] = []
        for part in self.parts:
            found = [batch for batch in part.batches if batch.last >= offset]
            if found and offset < upper:
                expected = [batch for batch in found if batch.last < upper]
                break
        whole = sum(batch.size for batch in expected)
        first = expected[0].size if expected else 0
        for min_one in (True, False):
            result = self.log.read(
                offset, max_bytes=max_bytes, upper_bound=upper, min_one_batch=min_one
            )
            assert result.size == sum(map(len, result.buffers))
            if first > max_bytes:
                assert result.size == (first if min_one else 0)
            else:
                assert result.size == min(whole, max_bytes)
            if result.size:
                assert result.first_offset == expected[0].base
                got = [
                    (record.offset, record.timestamp)
                    for buffer in result.buffers
                    for position, _ in iter_headers(buffer)
                    for record in iter_records(buffer, position)
                ]
                want = [pair for batch in expected for pair in batch.records]
                assert got == want[: len(got)]

    @rule(timestamp=st.integers(-1, 950))
    def look_up_time(self, timestamp: int) -> None:
        found = self.log.offset_for_timestamp(timestamp)
        expected = next(
            (
                (moment, offset, batch.epoch)
                for batch in self.batches
                for offset, moment in batch.records
                if moment >= timestamp and offset >= self.start
            ),
            None,
        )
        assert found == expected

    @rule()
    def look_up_max_timestamp(self) -> None:
        records = [
            (moment, -offset, batch.epoch)
            for batch in self.batches
            for offset, moment in batch.records
        ]
        found = self.log.offset_of_max_timestamp()
        if records:
            moment, offset, _ = max(records)
            assert found is not None
            assert (found.timestamp, found.offset) == (moment, -offset)
        else:
            assert found is None

    @rule(epoch=st.integers(-2, 12))
    def look_up_epoch(self, epoch: int) -> None:
        expected = (-1, -1)
        if epoch != -1 and self.epochs and epoch <= self.epochs[-1][0]:
            known = [e for e, _ in self.epochs if e <= epoch]
            later = [o for e, o in self.epochs if e > epoch]
            expected = (known[-1] if known else epoch, later[0] if later else self.end)
        assert self.log.end_offset_for_epoch(epoch) == expected

    @rule(fraction=st.floats(0, 1))
    def look_up_epoch_of_offset(self, fraction: float) -> None:
        offset = self.offset_near(fraction)
        known = [e for e, o in self.epochs if o <= offset]
        assert self.log.epoch_for_offset(offset) == (known[-1] if known else None)

    @precondition(lambda self: self.end > self.start)
    @rule(max_bytes=st.integers(1, 900))
    def replicate(self, max_bytes: int) -> None:
        """A new follower that fetches until it has all answers the same."""
        follower = memory_log("model-0", CONFIG, now_ms=self.now, start_offset=self.start)
        while follower.log_end_offset < self.end:
            result = self.log.read(
                follower.log_end_offset,
                max_bytes=max_bytes,
                upper_bound=self.end,
                min_one_batch=True,
            )
            if not result.size:
                break
            follower.append_as_follower(result.buffers, now_ms=self.now)
        assert follower.log_start_offset == self.start
        live = [batch for batch in self.batches if batch.last >= self.start]
        assert follower.log_end_offset == (live[-1].last + 1 if live else self.start)
        assert follower.size_bytes == sum(batch.size for batch in live)
        assert follower.offset_for_timestamp(5) == self.log.offset_for_timestamp(5)

    # What always holds.

    @invariant()
    def offsets_agree(self) -> None:
        assert self.log.log_start_offset == self.start
        assert self.log.log_end_offset == self.end
        assert self.log.size_bytes == sum(batch.size for batch in self.batches)
        assert self.log.epoch_entries() == tuple(EpochEntry(e, o) for e, o in self.epochs)

    @invariant()
    def segments_agree(self) -> None:
        assert [
            (view.base_offset, view.size_bytes, view.records) for view in self.log.segments()
        ] == [
            (part.base, part.size, sum(len(batch.timestamps) for batch in part.batches))
            for part in self.parts
        ]


class FileLogMachine(LogMachine):
    """The same for a log in files, which keeps nothing in memory that it could read."""

    def new_log(self, start: int) -> Log:
        return open_log(
            FaultyFileSystem(),
            PurePath("/data/model-0"),
            "model-0",
            replace(CONFIG, index_interval_bytes=150),
            now_ms=self.now,
            shared=FORGETFUL(),
            clean=True,
            log_start_offset=start,
        ).log


LogMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestLogModel = LogMachine.TestCase
FileLogMachine.TestCase.settings = settings(LogMachine.TestCase.settings, max_examples=50)
TestFileLogModel = FileLogMachine.TestCase
