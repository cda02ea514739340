"""The result of an append: where the batch is, or why it was rejected."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.expected_offsets import Mismatch
from fencepost.storage.log.producer_state import BatchMetadata


class AppendOrigin(Enum):
    """Who appends as leader, which decides how much is checked."""

    CLIENT = auto()
    """A produce request: everything is checked."""
    COORDINATOR = auto()
    """A group or transaction coordinator: it numbers no sequences and may write markers."""


class AppendResult(NamedTuple):
    """What was appended; offsets are inclusive, times in ms.

    With `duplicate` nothing was: the offsets are those of the batch that the log holds already,
    and `log_append_time_ms` is its max timestamp whatever the timestamp type, as Kafka answers.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    records_count: int
    max_timestamp: int


class AppendRejected(Struct, frozen=True, kw_only=True):
    """Why nothing was appended.

    :ivar message: For the answer's ErrorMessage; None where Kafka leaves it to the error code.
    :ivar record_errors: Index in the batch and message of each record at fault (v8+).
    :ivar log_start_offset: For the answer; -1 where the batch was refused before the log looked.
    :ivar mismatch: The first expected offset that does not match, where that is why (KIP-27).
    """

    error: int
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    log_start_offset: int = -1
    mismatch: Mismatch | None = None


def no_room(message: str, log_start_offset: int) -> AppendRejected:
    """The rejection where logs take as much memory as they may; a producer does not retry it."""
    return AppendRejected(
        error=ErrorCode.POLICY_VIOLATION, message=message, log_start_offset=log_start_offset
    )


def combined_result(results: Sequence[AppendResult]) -> AppendResult:
    """One result for several batches that were appended in turn."""
    return AppendResult(
        results[0].first_offset,
        max(each.last_offset for each in results),
        max(each.log_append_time_ms for each in results),
        results[-1].log_start_offset,
        all(each.duplicate for each in results),
        sum(each.records_count for each in results),
        max(each.max_timestamp for each in results),
    )


def duplicate_result(batch: BatchMetadata, log_start_offset: int) -> AppendResult:
    """The result where the log has the batch already, by its producer's state."""
    return AppendResult(
        batch.first_offset,
        batch.last_offset,
        batch.timestamp,
        log_start_offset,
        True,
        batch.offset_delta + 1,
        batch.timestamp,
    )
