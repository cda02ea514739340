"""The last offsets of keys beside the records themselves, whatever happens to a log in files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.records import Record, build_batch
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.formats.file_names import KEY_OFFSETS
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import ExpectedOffsetsScope, LogConfig
from tests.harness.crash_model import PowerOff
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import segmented
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

NOW = 1_000
DELETED = LogConfig(
    check_expected_offsets=True,
    check_expected_offsets_scope=ExpectedOffsetsScope.KEY,
    segment_bytes=500,
    retention_ms=-1,
    retention_bytes=2_500,
    index_interval_bytes=150,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=50,
)
CONFIGS = [
    DELETED,
    replace(DELETED, flush_messages=5),
    replace(DELETED, cleanup_policy=frozenset({"compact"})),
    replace(DELETED, cleanup_policy=frozenset({"compact", "delete"}), flush_messages=5),
]
KEYS = st.lists(st.sampled_from([b"", b"a", b"b", b"c", b"long" * 9]), min_size=1, max_size=4)
SEEDS = st.none() | st.integers(0, 1 << 16)


def in_log(log: FileLog) -> dict[bytes, int]:
    """As the records say, from the log start on."""
    return {
        record.key: record.offset
        for record in all_records(log)
        if record.key is not None and record.offset >= log.log_start_offset
    }


class Keys(RuleBasedStateMachine):
    @initialize(config=st.sampled_from(CONFIGS))
    def make(self, config: LogConfig) -> None:
        self.now = NOW
        self.config = config
        self.files = FaultyFileSystem(lambda: self.now)
        self.files.make_dirs(DIRECTORY.parent)
        self.files.settle()
        self.epoch = 0
        self.noted_start = 0
        self.point = 0
        self.open(clean=True, start=0, cleaned_until=0)

    def open(self, *, clean: bool, start: int, cleaned_until: int) -> None:
        self.log, _ = reopen(
            self.files,
            self.config,
            clean=clean,
            now_ms=self.now,
            recovery_point=self.point,
            log_start_offset=start,
            cleaned_until=cleaned_until,
        )
        self.log.on_truncated = self.note_point
        self.note_point()

    def note_point(self) -> None:
        self.point = self.log.recovery_point

    def offset(self, fraction: float) -> int:
        start: int = self.log.log_start_offset
        end: int = self.log.log_end_offset
        return start + round(fraction * (end - start))

    # What comes.

    @rule(
        keys=KEYS,
        size=st.none() | st.integers(0, 60),
        codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4]),
        handed=st.booleans(),
    )
    def lead(self, keys: list[bytes], size: int | None, codec: Codec, handed: bool) -> None:
        value = None if size is None else b"v" * size
        data = build_batch([Record(i, 0, k, value) for i, k in enumerate(keys)], codec=codec)
        first = self.log.log_end_offset
        if handed:
            self.ask()
        result = self.log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.now)
        assert isinstance(result, AppendResult)
        if handed:
            inner = segmented(self.log)
            offsets = {key: first + i for i, key in enumerate(keys)}
            inner._state.keys.add_appended(offsets, first, inner.log_end_offset)

    @rule(keys=KEYS, gap=st.sampled_from([0, 0, 0, 2]), by=st.sampled_from([0, 0, 1]))
    def follow(self, keys: list[bytes], gap: int, by: int) -> None:
        self.epoch += by
        base = self.log.log_end_offset + gap
        records = [Record(base + i, 0, key, None) for i, key in enumerate([None, *keys])]
        data = build_batch(records, base_offset=base, leader_epoch=self.epoch)
        self.log.append_as_follower([data], now_ms=self.now)

    # What goes.

    @rule(fraction=st.floats(0, 1))
    def truncate(self, fraction: float) -> None:
        self.log.truncate_to(self.offset(fraction))
        self.epoch += 1

    @rule(offset=st.integers(0, 40))
    def start_over(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self.now)
        self.epoch += 1

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        self.log.advance_log_start(self.offset(fraction))

    @rule()
    def expire(self) -> None:
        self.log.delete_expired(self.now, self.log.log_end_offset)

    @rule()
    def compact(self) -> None:
        self.log.compact(self.now, self.log.log_end_offset, at_once=True)

    # What else happens.

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now)

    @rule(by=st.sampled_from([1, 100]))
    def wait(self, by: int) -> None:
        self.now += by

    @rule()
    def sync_closed(self) -> None:
        pending = self.log.closed_segments_to_sync()
        if pending is not None:
            pending.run()
            self.log.on_synced(pending, None)

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def note(self) -> None:
        """The broker writes its checkpoints."""
        self.noted_start = self.log.log_start_offset
        self.note_point()

    @rule(on=st.booleans())
    def switch(self, on: bool) -> None:
        self.log.config = self.config = replace(self.config, check_expected_offsets=on)

    @rule()
    def ask(self) -> None:
        keys = self.log.key_offsets()
        found = in_log(self.log)
        assert dict(keys.offsets) == found
        assert list(keys.offsets.values()) == sorted(found.values())
        assert keys.until == self.log.log_end_offset

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.ask()

    # What ends the process.

    @rule(clean=st.booleans(), spoiled=st.sampled_from([None, None, None, "cut", "flip", "gone"]))
    def end_process(self, clean: bool, spoiled: str | None) -> None:
        start, cleaned_until = self.noted_start, self.log.cleaned_until
        if clean:
            start = self.log.log_start_offset
            self.log.close()
            self.note()
        self.files.end_process()
        self.spoil(spoiled)
        self.open(clean=clean, start=start, cleaned_until=cleaned_until)
        self.epoch += 1

    def spoil(self, how: str | None) -> None:
        path = DIRECTORY / KEY_OFFSETS
        if how is None or not self.files.exists(path):
            return
        data = bytearray(self.files.read(path))
        if how == "gone":
            self.files.remove(path)
            return
        at = self.now * 7 % len(data)
        if how == "cut":
            del data[at:]
        else:
            data[at] ^= 1 << self.now % 8
        self.files.write_atomic(path, data, sync=False)

    @rule(seed=SEEDS)
    def crash(self, seed: int | None) -> None:
        cleaned_until = self.log.cleaned_until
        self.files.crash(None if seed is None else Random(seed))
        self.open(clean=False, start=self.noted_start, cleaned_until=cleaned_until)
        self.epoch += 1

    @rule(
        do=st.sampled_from(["truncate", "start_over", "compact", "roll", "close", "lead"]),
        fraction=st.floats(0, 1),
        steps=st.integers(0, 25),
        seed=SEEDS,
    )
    def crash_within(self, do: str, fraction: float, steps: int, seed: int | None) -> None:
        deeds: dict[str, Callable[[], object]] = {
            "truncate": partial(self.truncate, fraction),
            "start_over": partial(self.start_over, round(fraction * 40)),
            "compact": self.compact,
            "roll": self.roll,
            "close": self.log.close,
            "lead": partial(self.lead, [b"a", b"z"], 30, Codec.NONE, handed=True),
        }
        self.files.power_off_after(steps)
        with suppress(PowerOff):
            deeds[do]()
        self.crash(seed)

    @precondition(lambda self: self.log.size_bytes)
    @rule(seed=SEEDS)
    def write_over(self, seed: int | None) -> None:
        """A truncation that is not durable, other records, and a crash."""
        end = self.log.log_end_offset
        self.truncate(0.5)
        while self.log.log_end_offset < end:
            self.lead([b"b", b"new"], 10, Codec.NONE, handed=False)
        self.ask()
        self.log.roll(self.now)
        self.crash(seed)


Keys.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestKeys = Keys.TestCase
