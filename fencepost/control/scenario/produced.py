"""What a producer of a scenario is answered, as data."""

from collections.abc import Mapping
from typing import Final, TypedDict

from fencepost.client.model import Partition, Produced
from fencepost.control.scenario.action_answers import (
    LeaderAnswer,
    PartitionProduced,
    ProduceAnswer,
    RecordError,
)
from fencepost.control.scenario.asked import Asked
from fencepost.protocol.errors import ErrorCode, error_name

_NOT_ANSWERED: Final = Produced(
    version=-1,
    throttle_time_ms=0,
    error=ErrorCode.NONE,
    message=None,
    base_offset=-1,
    log_append_time_ms=-1,
    log_start_offset=-1,
    record_errors=(),
    leader=None,
)
"""What is known with acks=0."""


def produce_answer(
    asked: Asked,
    produced: Mapping[Partition, Produced],
    *,
    sent: int,
    acknowledged: int,
    attempts: int,
) -> ProduceAnswer:
    """The answer to an action.

    :param produced: What was answered last for each partition; nothing with acks=0.
    """
    failed = (each for each in produced.values() if each.error != ErrorCode.NONE)
    shown = next(failed, next(iter(produced.values()), _NOT_ANSWERED))
    return ProduceAnswer(
        **asked.answered(shown.error, shown),
        **_told(shown),
        partitions=tuple(
            PartitionProduced(
                topic=partition.topic,
                partition=partition.index,
                error=error_name(each.error),
                **_told(each),
            )
            for partition, each in produced.items()
        ),
        sent=sent,
        acknowledged=acknowledged,
        attempts=attempts,
    )


class _Told(TypedDict):
    """What is told of a partition, and of the action as well."""

    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: LeaderAnswer | None


def _told(produced: Produced) -> _Told:
    leader = produced.leader
    return _Told(
        message=produced.message,
        base_offset=produced.base_offset,
        log_append_time_ms=produced.log_append_time_ms,
        log_start_offset=produced.log_start_offset,
        record_errors=tuple(
            RecordError(index=index, message=message) for index, message in produced.record_errors
        ),
        leader=None if leader is None else LeaderAnswer(id=leader[0], epoch=leader[1]),
    )
