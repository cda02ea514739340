"""OffsetCommit and OffsetFetch, as a client of a scenario does them."""

from typing import Annotated, Final

from msgspec import Meta

from fencepost.client.groups import commit_offset, fetch_committed_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionContext,
    GroupBody,
    PartitionIndex,
    ScenarioClients,
)
from fencepost.scenario.actions.group_membership import GroupMembers


class CommitBody(GroupBody):
    """An offset to be committed."""

    topic: str
    partition: PartitionIndex = 0
    offset: Annotated[int, Meta(ge=-1)]
    epoch: int = -1
    """The epoch of the record before the offset; -1: not said."""
    metadata: str = ""
    member: str | None = None
    """In the name of a member that has joined."""


class CommitAnswer(ActionAnswer):
    """Whether it is committed."""


class CommittedBody(GroupBody):
    """What is committed for a partition."""

    topic: str
    partition: PartitionIndex = 0
    stable: bool = False
    """Whether to be refused while a transaction commits for the group."""


class CommittedAnswer(ActionAnswer):
    """What is committed."""

    offset: int
    epoch: int
    metadata: str | None


async def _commit(
    clients: ScenarioClients, context: ActionContext, body: CommitBody
) -> CommitAnswer:
    who = ConsumerGroupMetadata(group=body.group)
    if body.member is not None:
        who = clients.state(GroupMembers).identity(body.member)
    led = await clients.control.partition_leader(body.topic, body.partition)
    connection = await clients.coordinator_connection(context, body, body.group)
    answer = await commit_offset(
        connection,
        who,
        led.partition,
        body.offset,
        epoch=body.epoch,
        note=body.metadata,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return CommitAnswer(**context.answer_fields(answer.error, answer))


async def _committed(
    clients: ScenarioClients, context: ActionContext, body: CommittedBody
) -> CommittedAnswer:
    led = await clients.control.partition_leader(body.topic, body.partition)
    connection = await clients.coordinator_connection(context, body, body.group)
    found = await fetch_committed_offset(
        connection,
        body.group,
        led.partition,
        stable=body.stable,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return CommittedAnswer(
        **context.answer_fields(found.error, found),
        offset=found.offset,
        epoch=found.epoch,
        metadata=found.metadata,
    )


ACTIONS: Final = (
    Action(
        "commit", "OffsetCommit", CommitBody, CommitAnswer, "Commit an offset for a group.", _commit
    ),
    Action(
        "committed",
        "OffsetFetch",
        CommittedBody,
        CommittedAnswer,
        "Ask what is committed.",
        _committed,
    ),
)
