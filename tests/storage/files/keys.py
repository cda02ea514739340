"""What the tests of the file of keys share: logs that have one, and what it and they say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import BatchHeader
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.formats.checkpoints import KeyOffsetScope, decode_key_offsets
from fencepost.storage.formats.file_names import KEY_OFFSETS
from fencepost.storage.log.config import ExpectedOffsetsScope, LogConfig
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, T, append
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

CONFIG = LogConfig(
    check_expected_offsets=True,
    check_expected_offsets_scope=ExpectedOffsetsScope.KEY,
    index_interval_bytes=100,
)
COMPACTED = replace(
    CONFIG,
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1_000,
)
PATH = DIRECTORY / KEY_OFFSETS


def put(log: FileLog, *keys: bytes, epoch: int = 0, value: bytes | None = b"v") -> None:
    append(log, batch(*((T, key, value) for key in keys)), epoch=epoch)


def known(log: FileLog) -> dict[bytes, int]:
    return dict(log.key_offsets().offsets)


def kept(files: FaultyFileSystem) -> tuple[KeyOffsetScope, dict[bytes, int]]:
    return decode_key_offsets(files.read(PATH))


def in_log(log: FileLog) -> dict[bytes, int]:
    """As the records say, from the log start on."""
    return {
        record.key: record.offset
        for record in all_records(log)
        if record.key is not None and record.offset >= log.log_start_offset
    }


class Reads:
    """From where on the log was read for keys since it was last asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begun: list[int] = []
        whole = LatestKeyOffsets.catch_up

        def catch_up(
            keys: LatestKeyOffsets, batches: Iterable[tuple[Buffer, BatchHeader]], until: int
        ) -> None:
            self._begun.append(keys.until)
            whole(keys, batches, until)

        monkeypatch.setattr(LatestKeyOffsets, "catch_up", catch_up)

    def __call__(self) -> list[int]:
        begun, self._begun = self._begun, []
        return begun


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def written(files: FaultyFileSystem) -> FileLog:
    """Three closed segments of epochs 0 to 2, and a checkpoint of all of it."""
    log, _ = reopen(files, CONFIG, clean=True)
    for epoch in range(3):
        put(log, b"a", b"%d" % epoch, epoch=epoch)
        known(log)
        log.roll(NOW)
    log.flush()
    assert kept(files) == (KeyOffsetScope(6, 2, 0), {b"0": 1, b"1": 3, b"a": 4, b"2": 5})
    return log


def compacted(files: FaultyFileSystem) -> FileLog:
    """Everything is durable; a tombstone can go, and a checkpoint knows of it."""
    log, _ = reopen(files, COMPACTED, clean=True)
    for key, value in ((b"a", b"v"), (b"b", None), (b"a", b"w"), (b"c", b"v")):
        put(log, key, value=value)
        log.roll(NOW)
    assert log.compact(NOW, log.log_end_offset)
    put(log, b"d")
    log.roll(NOW)
    assert known(log) == {b"b": 1, b"a": 2, b"c": 3, b"d": 4}
    log.close()
    log, _ = reopen(files, COMPACTED, clean=True)
    return log
