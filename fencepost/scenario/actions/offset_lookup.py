"""ListOffsets and OffsetForLeaderEpoch, as a client of a scenario asks them."""

from typing import Annotated, Final, Literal, get_args

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from fencepost.client.model import Isolation, OffsetSpec
from fencepost.client.partitions import list_offsets, offset_for_leader_epoch
from fencepost.scenario.actions.base import ActionAnswer, IsolationLevel, PartitionBody
from fencepost.scenario.actions.context import Action, ActionContext, ScenarioClients

_TargetName = Literal[
    "latest",
    "earliest",
    "max_timestamp",
    "earliest_local",
    "latest_tiered",
    "earliest_pending_upload",
]


def _as_target(given: object, check: ValidatorFunctionWrapHandler) -> object:
    """Say in one sentence what may be there, not one for each kind."""
    try:
        checked: object = check(given)
    except ValidationError as error:
        names = ", ".join(get_args(_TargetName))
        raise ValueError(f"input should be one of {names}, or a timestamp in ms") from error
    return checked


Target = Annotated[_TargetName | int, WrapValidator(_as_target)]


class ListOffsetsBody(PartitionBody):
    """An offset by what it means, or by time."""

    at: Target = "latest"
    """What is meant, or a timestamp."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""
    isolation: IsolationLevel = "read_uncommitted"
    replica: int = -1
    """The broker id of a replica that asks; -1: a consumer does."""


class ListOffsetsAnswer(ActionAnswer):
    """An offset."""

    offset: int
    timestamp: int
    epoch: int


async def _list_offsets(
    clients: ScenarioClients, context: ActionContext, body: ListOffsetsBody
) -> ListOffsetsAnswer:
    connection, partition = await clients.partition_connection(context, body)
    found = await list_offsets(
        connection,
        partition,
        body.at if isinstance(body.at, int) else OffsetSpec[body.at.upper()],
        epoch=body.epoch,
        isolation=Isolation[body.isolation.upper()],
        replica=body.replica,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return ListOffsetsAnswer(
        **context.answer_fields(found.error, found),
        offset=found.offset,
        timestamp=found.timestamp,
        epoch=found.epoch,
    )


class EpochEndBody(PartitionBody):
    """Where an epoch ends."""

    of: int
    """The epoch asked about."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""


class EpochEndAnswer(ActionAnswer):
    """The largest epoch that is not above the one asked about, and its end."""

    epoch: int
    end_offset: int


async def _offsets_for_leader_epoch(
    clients: ScenarioClients, context: ActionContext, body: EpochEndBody
) -> EpochEndAnswer:
    connection, partition = await clients.partition_connection(context, body)
    found = await offset_for_leader_epoch(
        connection,
        partition,
        body.of,
        epoch=body.epoch,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return EpochEndAnswer(
        **context.answer_fields(found.error, found),
        epoch=found.epoch,
        end_offset=found.end_offset,
    )


ACTIONS: Final = (
    Action(
        "list_offsets",
        "ListOffsets",
        ListOffsetsBody,
        ListOffsetsAnswer,
        "Ask for an offset.",
        _list_offsets,
    ),
    Action(
        "offsets_for_leader_epoch",
        "OffsetForLeaderEpoch",
        EpochEndBody,
        EpochEndAnswer,
        "Ask where a leader epoch ends.",
        _offsets_for_leader_epoch,
    ),
)
