"""Appending as leader: a batch is checked, gets its offsets and the leader's epoch, and is kept."""

from collections.abc import Callable
from typing import Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import (
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    stamp,
)
from fencepost.storage.log.append import prepare_batch
from fencepost.storage.log.append_result import (
    AppendOrigin,
    AppendRejected,
    AppendResult,
    combined_result,
    duplicate_result,
    no_room,
)
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.log_state import LogState
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.verification import VerificationGuard

_CLIENT: Final = AppendOrigin.CLIENT
_new_tuple: Final = tuple.__new__
_IN_TRANSACTION: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG


def append_as_leader(
    log: LogState,
    records: Buffer,
    *,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    allow_zstd: bool,
    budget: ReadBudget | None,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> AppendResult | AppendRejected:
    """Check one batch and append it; see `Log.append_as_leader`."""
    ready = prepare_batch(
        records,
        log.config,
        name=log.name,
        now_ms=now_ms,
        origin=origin,
        allow_zstd=allow_zstd,
        log_start_offset=log.start,
        budget=budget,
    )
    if isinstance(ready, AppendRejected):
        return ready
    batch, header = ready
    is_client = origin is _CLIENT
    if header.producer_id > NO_PRODUCER_ID:
        if is_client and (duplicate := log.producers.duplicate_of(header)) is not None:
            return duplicate_result(duplicate, log.start)
        error = None
        if header.attributes & _IN_TRANSACTION:
            error = _transaction_refusal(log, batch, header, guard, transaction_version)
        if error is None and not header.attributes & CONTROL_FLAG:
            error = log.producers.refusal(header, check_sequence=is_client)
        if error is not None:
            return AppendRejected(error=error, log_start_offset=log.start)
    refusal = log.store.refusal(len(batch), is_client=is_client)
    if refusal is not None:
        return no_room(refusal, log.start)
    return _append(log, batch, header, leader_epoch, now_ms)


def _transaction_refusal(
    log: LogState,
    batch: Buffer,
    header: BatchHeader,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> ErrorCode | None:
    """Why a marker, or a batch that was not verified, may not be appended."""
    if header.attributes & CONTROL_FLAG:
        return log.producers.marker_refusal(batch, header, transaction_version)
    if log.config.transaction_partition_verification_enable:
        return log.producers.verification_refusal(header, guard)
    return None


def _append(
    log: LogState,
    batch: bytearray | memoryview,
    header: BatchHeader,
    leader_epoch: int,
    now_ms: int,
) -> AppendResult:
    first = log.end
    if not log.config.keeps_leader_epochs:
        leader_epoch = NO_LEADER_EPOCH
    stamp(batch, 0, header, base_offset=first, leader_epoch=leader_epoch)
    header = header.stamped(first, leader_epoch)
    log.add_header(header, now_ms, batch, 0).append_bytes(batch)
    is_log_append_time = header.attributes & LOG_APPEND_TIME_FLAG
    return _new_tuple(
        AppendResult,
        (
            first,
            log.end - 1,
            now_ms if is_log_append_time else NO_TIMESTAMP,
            log.start,
            False,
            header.record_count,
            header.max_timestamp,
        ),
    )


def stage(log: LogState, now_ms: int, key_offsets: Callable[[], LatestKeyOffsets]) -> Staging:
    """Begin to check the batches that a client's request has for a log (KIP-27)."""
    return Staging(
        log.name,
        log.config,
        now_ms=now_ms,
        log_start_offset=log.start,
        log_end_offset=log.end,
        producers=log.producers,
        last_of_key=lambda key: key_offsets().last_offset(key),
        refusal=log.store.refusal,
    )


def append_staged(
    log: LogState, staged: StagedRecords, *, leader_epoch: int, now_ms: int
) -> AppendResult:
    """Append what `stage` has checked, in the order in which it was taken."""
    first = log.end
    results = [
        _append(log, batch, header, leader_epoch, now_ms)
        if duplicate is None
        else duplicate_result(duplicate, log.start)
        for batch, header, duplicate in staged.batches
    ]
    log.keys.add_appended(staged.keys, first, log.end)
    return results[0] if len(results) == 1 else combined_result(results)
