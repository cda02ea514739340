"""Logs in memory and in files, made and read without a broker."""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from pathlib import PurePath
from typing import Final, TypeVar

from msgspec.structs import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, iter_headers, read_header
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.open_log import open_log
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, ReadResult
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.memory import memory_log
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.records import batch

T = 1_700_000_000_000
NOW = T + 60_000


class Kind(Enum):
    """Where the logs of a test are; `conftest` runs every test with each."""

    MEMORY = auto()
    FILES = auto()
    """Nothing is held in memory that could be had again."""
    RECENT = auto()
    """In files as well, with what was appended last in memory."""


FORGETFUL: Final = partial(ProcessLimits, recent_bytes=0, index_bytes=0, open_files=0)


_Test = TypeVar("_Test", bound=Callable[..., None])


def only(*kinds: Kind) -> Callable[[_Test], _Test]:
    """Run a test with these kinds only: it is about the very buffers that were appended."""

    def mark(test: _Test) -> _Test:
        vars(test)["kinds"] = kinds
        return test

    return mark


class Made:
    """What `new_log` makes."""

    kind = Kind.MEMORY


def new_log(config: LogConfig | None = None, *, start_offset: int = 0) -> Log:
    config = config or LogConfig()
    if Made.kind is Kind.MEMORY:
        return memory_log("t-0", config, now_ms=NOW, start_offset=start_offset)
    # Few bytes between the entries of an index, so that there are some.
    config = replace(config, index_interval_bytes=100)
    opened = open_log(
        FaultyFileSystem(),
        PurePath("/data/t-0"),
        "t-0",
        config,
        now_ms=NOW,
        shared=FORGETFUL() if Made.kind is Kind.FILES else ProcessLimits(),
        clean=True,
        log_start_offset=start_offset,
    )
    return opened.log


def segmented(log: Log) -> SegmentedLog:
    """The log itself: in memory `log`, in files the one that `log` keeps durable."""
    inner = log._log if isinstance(log, FileLog) else log
    assert isinstance(inner, SegmentedLog)
    return inner


def append(
    log: Log, data: bytearray | None = None, *, epoch: int = 0, now_ms: int = NOW
) -> AppendResult:
    """Append as leader what must be accepted; a transactional batch as if it were verified."""
    data = data or batch()
    header = read_header(data)
    guard = None
    if header.is_transactional:
        started = log.maybe_start_verification(
            header.producer_id,
            header.base_sequence,
            header.producer_epoch,
            supports_epoch_bump=False,
        )
        assert not isinstance(started, ErrorCode), started
        guard = started
    result = log.append_as_leader(data, leader_epoch=epoch, now_ms=now_ms, guard=guard)
    assert isinstance(result, AppendResult), result
    return result


def append_marker(
    log: Log,
    producer_id: int,
    producer_epoch: int = 0,
    *,
    committed: bool,
    coordinator_epoch: int = 0,
    epoch: int = 0,
    transaction_version: int = 0,
) -> AppendResult | AppendRejected:
    """Append a transaction marker as leader."""
    marker = TransactionMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        transaction_version=transaction_version,
    )
    return log.append_as_leader(
        marker.to_batch(NOW),
        leader_epoch=epoch,
        now_ms=NOW,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=transaction_version,
    )


def read_all(log: Log, offset: int | None = None, *, max_bytes: int = 1 << 30) -> ReadResult:
    """One read up to the log end, from the log start where no offset is given."""
    return log.read(
        log.log_start_offset if offset is None else offset,
        max_bytes=max_bytes,
        upper_bound=log.log_end_offset,
        min_one_batch=True,
    )


def records_of(log: Log) -> list[Record]:
    """Every record from the log start to the log end, read as a consumer reads."""
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = read_all(log, offset)
        if not result.buffers:
            break
        for buffer in result.buffers:
            for position, header in iter_headers(buffer):
                found += [r for r in iter_records(buffer, position) if r.offset >= offset]
                offset = header.next_offset
    return found


def keys_and_values(records: Sequence[Record]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records]
