"""The members of groups: joined by hand, or living on as consumers do.

A member that lives on sends heartbeats, and joins again when the group rebalances, when its
coordinator moves, or when it is not known any more.
"""

import asyncio
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from fencepost.client.client import Client
from fencepost.client.connection import Connection
from fencepost.client.consumer_protocol import (
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from fencepost.client.errors import Failure, KafkaClientError
from fencepost.client.groups import (
    Joined,
    Synced,
    assign_partitions,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionBody,
    ActionContext,
    ActionState,
    GroupBody,
    InvalidAction,
    Milliseconds,
    NoCoordinator,
    ScenarioClients,
    on_state,
)
from fencepost.verbs.bodies import Listed


class JoinBody(GroupBody):
    """A member that joins, or joins again; it is done when all members have joined."""

    client_field: ClassVar[str] = "member"

    member: str
    """A name in this scenario; the first time also the name of the client."""
    topics: Listed[str]
    session_timeout_ms: Milliseconds = 30_000
    rebalance_timeout_ms: Milliseconds = 30_000
    instance: str | None = None
    """Group instance id of a static member."""
    heartbeat_ms: Milliseconds = 0
    """Then it lives on as a consumer does: heartbeats so often, and joins again when it has to.
    0: it does nothing by itself."""


class MemberBody(ActionBody):
    """A member that has joined; a request about it goes to its group's coordinator."""

    client_field: ClassVar[str] = "member"

    member: str


class MemberAnswer(ActionAnswer):
    """A member as it is."""

    member_id: str
    generation: int
    leads: bool
    """Whether it assigns the partitions."""
    members: int
    """How many the group has; 0 unless it leads."""
    assigned: tuple[str, ...]
    """``orders-0`` and so on, sorted."""
    joins: int
    """How often it has joined."""


class MemberErrorAnswer(ActionAnswer):
    """Whether the coordinator knows the member."""


_RETRY_BACKOFF_S: Final = 0.02
_REJOIN_ERRORS: Final = frozenset(
    {
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)
"""Errors after which a consumer joins at once."""
_COORDINATOR_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR.name,
        ErrorCode.COORDINATOR_NOT_AVAILABLE.name,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name,
    }
)
"""Errors after which it looks for its coordinator first."""


class _Member(Struct):
    body: JoinBody
    client: Client
    identity: ConsumerGroupMetadata
    coordinator: int | None = None
    """Broker id; None: to be looked for."""
    leads: bool = False
    members: int = 0
    assigned: tuple[TopicPartition, ...] = ()
    joins: int = 0
    error: str | None = ErrorCode.NONE.name
    """Of its last answer; None where none came."""
    failed: str | None = None
    """Why none came."""
    version: int | None = None
    heartbeats: asyncio.Task[None] | None = None

    def reset_member_id(self) -> None:
        """The coordinator does not know it any more."""
        self.identity = replace(self.identity, member_id="", generation=-1)


class GroupMembers(ActionState):
    """The members of a scenario, by their names."""

    def __init__(self, clients: ScenarioClients) -> None:
        super().__init__(clients)
        self._members: dict[str, _Member] = {}

    # -- actions --------------------------------------------------------------------------------

    async def join(self, context: ActionContext, body: JoinBody) -> MemberAnswer:
        """Join, or join again; and live on where heartbeats are asked for."""
        member = await self._get_or_create(body)
        member.coordinator = None  # whom it knew may be there no more
        context.client = member.client
        if "timeout_ms" not in body.model_fields_set:  # the broker may wait for other members
            context.timeout_s = body.rebalance_timeout_ms / 1000 + context.timeout_s
        if body.heartbeat_ms:
            await self._join_with_retries(context, member)
            member.heartbeats = asyncio.create_task(self._heartbeat_loop(member))
        else:
            await self._join(context, member)
        return _member_answer(context, member)

    async def describe(self, context: ActionContext, body: MemberBody) -> MemberAnswer:
        """What a member knows."""
        return _member_answer(context, self._member(body.member))

    async def heartbeat(self, context: ActionContext, body: MemberBody) -> MemberErrorAnswer:
        """One heartbeat, and nothing that would follow from its answer."""
        member = self._member(body.member)
        connection = await self._connection_for_action(context, member, body)
        answer = await heartbeat(
            connection, member.identity, version=body.version, timeout_s=context.timeout_s
        )
        return MemberErrorAnswer(**context.answer_fields(answer.error, answer))

    async def leave(self, context: ActionContext, body: MemberBody) -> MemberErrorAnswer:
        """Leave the group."""
        member = self._member(body.member)
        await _stop_heartbeats(member)
        connection = await self._connection_for_action(context, member, body)
        answer = await leave_group(
            connection, member.identity, version=body.version, timeout_s=context.timeout_s
        )
        member.reset_member_id()
        member.assigned = ()
        return MemberErrorAnswer(**context.answer_fields(answer.error, answer))

    async def _connection_for_action(
        self, context: ActionContext, member: _Member, body: MemberBody
    ) -> Connection:
        """Whom to ask, as what a member knows of its coordinator may be out of date."""
        context.client = member.client
        if body.broker is not None:
            return await context.connection(body.broker)
        return await self._clients.coordinator_connection(context, body, member.body.group)

    def identity(self, name: str) -> ConsumerGroupMetadata:
        """Who a member is in its group.

        :raises InvalidAction: When no member of that name has joined.
        """
        return self._member(name).identity

    async def close(self) -> None:
        """End all lives."""
        for member in self._members.values():
            await _stop_heartbeats(member)

    # -- joining --------------------------------------------------------------------------------

    async def _get_or_create(self, body: JoinBody) -> _Member:
        member = self._members.get(body.member)
        if member is not None:
            await _stop_heartbeats(member)
            member.body = body
            return member
        named = body.client if "client" in body.model_fields_set else body.member
        member = self._members[body.member] = _Member(
            body=body,
            client=self._clients.client(named),
            identity=ConsumerGroupMetadata(group=body.group, instance=body.instance),
        )
        return member

    async def _join(self, context: ActionContext, member: _Member) -> None:
        """JoinGroup and SyncGroup, until both are about the same generation."""
        body = member.body
        connection = await self._coordinator(context, member)
        while True:
            joined = await join_group(
                connection,
                member.identity,
                encode_subscription(body.topics),
                session_timeout_ms=body.session_timeout_ms,
                rebalance_timeout_ms=body.rebalance_timeout_ms,
                version=body.version,
                timeout_s=context.timeout_s,
            )
            member.version = joined.version
            member.error, member.failed = error_name(joined.error), None
            if joined.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                member.identity = replace(
                    member.identity, member_id=joined.member_id, generation=joined.generation
                )
            if joined.error == ErrorCode.MEMBER_ID_REQUIRED:
                continue
            if joined.error != ErrorCode.NONE:
                return
            synced = await self._sync(context, member, connection, joined)
            member.error = error_name(synced.error)
            if synced.error != ErrorCode.REBALANCE_IN_PROGRESS:
                return

    async def _sync(
        self, context: ActionContext, member: _Member, connection: Connection, joined: Joined
    ) -> Synced:
        member.leads = joined.leader_id == joined.member_id
        member.members = len(joined.members)
        assignments = (
            await assign_partitions(connection, joined, timeout_s=context.timeout_s)
            if member.leads
            else []
        )
        synced = await sync_group(
            connection, member.identity, assignments, timeout_s=context.timeout_s
        )
        if synced.error == ErrorCode.NONE:
            member.assigned = tuple(sorted(decode_assignment(synced.assignment)))
            member.joins += 1
        return synced

    async def _join_with_retries(self, context: ActionContext, member: _Member) -> None:
        """Join as a consumer does, which does not take no for an answer.

        :raises TimeoutError: When it is not in the group in time.
        """
        async with asyncio.timeout(context.timeout_s):
            while True:
                try:
                    await self._join(context, member)
                except (KafkaClientError, NoCoordinator):
                    member.coordinator = None
                if member.error == ErrorCode.NONE.name and member.coordinator is not None:
                    return
                _apply_error(member)
                await asyncio.sleep(_RETRY_BACKOFF_S)

    async def _coordinator(self, context: ActionContext, member: _Member) -> Connection:
        """Whom to ask: who is named, or its coordinator, which it looks for once."""
        if member.coordinator is not None:
            return await context.connection(member.coordinator)
        connection = await self._clients.coordinator_connection(
            context, member.body, member.body.group
        )
        member.coordinator = context.broker
        return connection

    # -- living on ------------------------------------------------------------------------------

    async def _heartbeat_loop(self, member: _Member) -> None:
        context = ActionContext(
            client=member.client, timeout_s=member.body.rebalance_timeout_ms / 1000
        )
        while True:
            await asyncio.sleep(member.body.heartbeat_ms / 1000)
            try:
                connection = await self._coordinator(context, member)
                answer = await heartbeat(connection, member.identity, timeout_s=context.timeout_s)
                member.error, member.failed = error_name(answer.error), None
                _apply_error(member)
                if answer.error in _REJOIN_ERRORS:
                    await self._join_with_retries(context, member)
            except NoCoordinator as error:
                member.error, member.failed = str(error), None
            except KafkaClientError as error:
                member.error, member.failed, member.coordinator = None, error.failure, None
            except TimeoutError:
                member.error, member.failed, member.coordinator = None, Failure.TIMED_OUT, None

    def _member(self, name: str) -> _Member:
        found = self._members.get(name)
        if found is None:
            raise InvalidAction(f"no member {name!r} has joined")
        return found


def _apply_error(member: _Member) -> None:
    """What an error means for what the member believes."""
    if member.error in _COORDINATOR_ERRORS:
        member.coordinator = None
    if member.error == ErrorCode.UNKNOWN_MEMBER_ID.name:
        member.reset_member_id()


async def _stop_heartbeats(member: _Member) -> None:
    living, member.heartbeats = member.heartbeats, None
    if living is not None:
        living.cancel()
        await asyncio.wait([living])


def _member_answer(context: ActionContext, member: _Member) -> MemberAnswer:
    return MemberAnswer(
        error=member.error,
        failed=member.failed,
        broker=context.broker,
        version=member.version,
        throttle_time_ms=0,
        elapsed_ms=0,
        member_id=member.identity.member_id,
        generation=member.identity.generation,
        leads=member.leads,
        members=member.members,
        assigned=tuple(f"{topic}-{index}" for topic, index in member.assigned),
        joins=member.joins,
    )


ACTIONS: Final = (
    Action(
        "join",
        "JoinGroup",
        JoinBody,
        MemberAnswer,
        "Join a group; tells what is assigned.",
        on_state(GroupMembers, GroupMembers.join),
    ),
    Action(
        "member",
        None,
        MemberBody,
        MemberAnswer,
        "Show what a member knows; sends no request.",
        on_state(GroupMembers, GroupMembers.describe),
    ),
    Action(
        "heartbeat",
        "Heartbeat",
        MemberBody,
        MemberErrorAnswer,
        "Send one heartbeat of a member.",
        on_state(GroupMembers, GroupMembers.heartbeat),
    ),
    Action(
        "leave",
        "LeaveGroup",
        MemberBody,
        MemberErrorAnswer,
        "Leave the group.",
        on_state(GroupMembers, GroupMembers.leave),
    ),
)
