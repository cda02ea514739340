"""What the actions of `actions.consumer` answer, and how it is made from what a consumer does."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fencepost.client.consumer.errors import (
    LogTruncationError,
    OffsetOutOfRangeError,
    RequestRefused,
    TruncatedPartitionError,
)
from fencepost.client.consumer.model import ConsumerRecord, OffsetAndMetadata, Truncation
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.scenario.actions.context import ActionAnswer
from fencepost.scenario.actions.fetch import RecordAnswer, as_text
from fencepost.verbs.answers import Answer

UNKNOWN: Final = -1
"""An epoch or a timestamp that is not known."""


class TruncationAnswer(Answer):
    """A truncation that a consumer has detected."""

    position: int
    """Where it was."""
    epoch: int
    """Of the record before that; -1 where it is not known."""
    divergent_offset: int | None
    """The first offset that is known to differ from what it consumed; null where it could not be
    found."""


class ConsumerAnswer(ActionAnswer):
    """A consumer after an action. ``failed`` is the name of the exception that it raised, where
    that is an error of its own and not one of Kafka's.
    """

    message: str | None
    """The text of the exception."""
    position: int | None
    """The offset of the next record; null while it is not known, or not yet valid."""
    epoch: int
    """Of the record before that; -1 where it is not known."""
    timestamp: int
    """Likewise; in KIP-320's earlier draft."""
    divergent_offset: int | None
    """The divergent offset that the exception holds."""
    truncations: tuple[TruncationAnswer, ...]
    """All that it has detected, the oldest first."""


class PollAnswer(ConsumerAnswer):
    """Records that a consumer handed out, and where they began."""

    start_offset: int | None
    """The offset of the first record; the position where there is none."""
    values: tuple[str | None, ...]
    """Of the records."""
    records: tuple[RecordAnswer, ...]


class ConsumerOutcome(Answer):
    """A consumer after its last action."""

    consumer: str
    start_offset: int | None
    """Of its last poll: where it went on."""
    position: int | None
    error: str | None
    failed: str | None
    divergent_offset: int | None
    truncations: tuple[TruncationAnswer, ...]


class ConsumersAnswer(ActionAnswer):
    """Consumers side by side."""

    outcomes: tuple[ConsumerOutcome, ...]
    """In the order of their names."""


def consumer_answer(
    partition: Partition,
    at: OffsetAndMetadata | None,
    raised: Exception | None,
    truncations: Sequence[Truncation],
) -> ConsumerAnswer:
    """The answer of a consumer that is at a position, or has raised an error."""
    if raised is not None:
        at = _position_of(raised, partition, truncations)
    error, failed = _error_and_failure(raised)
    return ConsumerAnswer(
        error=error,
        failed=failed,
        broker=None,
        version=None,
        throttle_time_ms=0,
        elapsed_ms=0,
        message=None if raised is None else str(raised),
        position=None if at is None else at.offset,
        epoch=UNKNOWN if at is None else _or_unknown(at.leader_epoch),
        timestamp=UNKNOWN if at is None else _or_unknown(at.timestamp),
        divergent_offset=_divergent_offset(raised, partition),
        truncations=tuple(map(_truncation_answer, truncations)),
    )


def _position_of(
    raised: Exception, partition: Partition, truncations: Sequence[Truncation]
) -> OffsetAndMetadata | None:
    """Where a consumer stays that has raised an error; None where the error does not say."""
    if isinstance(raised, LogTruncationError):
        return truncations[-1].position
    if isinstance(raised, OffsetOutOfRangeError):
        return OffsetAndMetadata(offset=raised.offsets[partition])
    return None


def _error_and_failure(raised: Exception | None) -> tuple[str | None, str | None]:
    match raised:
        case None:
            return ErrorCode.NONE.name, None
        case RequestRefused(code=code):
            return error_name(code), None
        case KafkaClientError(failure=failure):
            return None, failure
        case _:
            return None, type(raised).__name__


def _divergent_offset(raised: Exception | None, partition: Partition) -> int | None:
    match raised:
        case LogTruncationError(divergent_offsets=found):
            at = found.get(partition)
            return None if at is None else at.offset
        case TruncatedPartitionError(truncated_offsets=offsets):
            return offsets[partition]
        case _:
            return None


def _truncation_answer(found: Truncation) -> TruncationAnswer:
    at = found.divergent_offset
    return TruncationAnswer(
        position=found.position.offset,
        epoch=_or_unknown(found.position.leader_epoch),
        divergent_offset=None if at is None else at.offset,
    )


def _or_unknown(number: int | None) -> int:
    return UNKNOWN if number is None else number


def record_answer(record: ConsumerRecord) -> RecordAnswer:
    """A record that was consumed."""
    return RecordAnswer(
        offset=record.offset,
        epoch=_or_unknown(record.leader_epoch),
        timestamp=record.timestamp,
        key=as_text(record.key),
        value=as_text(record.value),
        headers={name: as_text(value) for name, value in record.headers},
    )


def side_by_side(_given: Mapping[str, object], answer: Mapping[str, Any]) -> str:
    """The outcomes in one line."""
    return " | ".join(map(_outcome_text, answer["outcomes"]))


def _outcome_text(outcome: Mapping[str, Any]) -> str:
    failed = outcome["failed"] or (outcome["error"] if outcome["error"] != "NONE" else None)
    parts = [f"raised {failed}"] if failed else []
    if outcome["truncations"]:
        at = outcome["truncations"][-1]["divergent_offset"]
        parts.append("truncation not located" if at is None else f"truncation located at {at}")
    if failed and outcome["position"] is not None:
        parts.append(f"stays at {outcome['position']}")
    elif not failed:
        at = outcome["start_offset"]
        parts.append("has not polled" if at is None else f"went on at {at}")
    return f"{outcome['consumer']}: {', '.join(parts)}"
