"""Who is to lead which shard: the nodes are a consumer group, and Kafka's rebalancer says.

It says so to each in its own time. A node leads until it hears otherwise, and does not wait for the
one before it to stop. So for a while two may lead a shard, or one that was paused for a minute and
knows nothing; `leader` tells why that is harmless. Nothing here keeps the log safe, it only makes
for quick answers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from fencepost.client.client import Client
from fencepost.client.cluster import find_coordinator
from fencepost.client.connection import Connection
from fencepost.client.consumer_protocol import decode_assignment, encode_subscription
from fencepost.client.errors import KafkaClientError
from fencepost.client.groups import (
    assign_partitions,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.errors import ErrorCode

Assigned: TypeAlias = Callable[[frozenset[int]], Awaitable[None]]
"""Told which shards to lead from now on."""
PAUSE_S: Final = 0.1
"""Before the group is asked again, after something went wrong."""
_HEARTBEATS: Final = 6
"""In a session, so that one or two can be late."""
_FORGOTTEN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class _Refused(Exception):
    """The coordinator answered with an error; the request is sent again."""


class Member:
    """A node in the group.

    :param client: For this alone: who joins waits for the others, and holds up what is behind.
    :param session_ms: After so long without a heartbeat, the others share what it led.
    """

    def __init__(
        self, client: Client, group: str, topic: str, assigned: Assigned, *, session_ms: int
    ) -> None:
        self._client = client
        self._topic = topic
        self._assigned = assigned
        self._session_ms = session_ms
        self._who = ConsumerGroupMetadata(group=group)

    async def take_part(self) -> None:
        """Join, hear what to lead, join again when the group changes; until it is cancelled."""
        while True:
            try:
                coordinator = await self._coordinator()
                await self._join(coordinator)
                await self._stay(coordinator)
            except (_Refused, KafkaClientError):
                await asyncio.sleep(PAUSE_S)

    async def leave(self) -> None:
        """Tell the others at once; else they wait for the end of the session."""
        if self._who.member_id:
            await leave_group(await self._coordinator(), self._who)

    async def _coordinator(self) -> Connection:
        seen = await self._client.refresh()
        anyone = await self._client.broker(min(seen.brokers))
        found = await find_coordinator(anyone, self._who.group)
        self._require(found.error)
        return await self._client.broker(found.broker)

    async def _join(self, coordinator: Connection) -> None:
        joined = await join_group(
            coordinator,
            self._who,
            encode_subscription([self._topic]),
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=self._session_ms,
        )
        if joined.error == ErrorCode.MEMBER_ID_REQUIRED:
            self._who = ConsumerGroupMetadata(group=self._who.group, member_id=joined.member_id)
            await self._join(coordinator)
            return
        self._require(joined.error)
        self._who = ConsumerGroupMetadata(
            group=self._who.group, member_id=joined.member_id, generation=joined.generation
        )
        leads = joined.leader_id == joined.member_id
        shares = await assign_partitions(coordinator, joined) if leads else []
        synced = await sync_group(coordinator, self._who, shares)
        self._require(synced.error)
        await self._assigned(frozenset(shard for _, shard in decode_assignment(synced.assignment)))

    async def _stay(self, coordinator: Connection) -> None:
        """Send heartbeats until the group changes."""
        while True:
            await asyncio.sleep(self._session_ms / 1000 / _HEARTBEATS)
            answer = await heartbeat(coordinator, self._who)
            if answer.error == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            self._require(answer.error)

    def _require(self, error: int) -> None:
        """Let success pass.

        :raises _Refused: For an error.
        """
        if error in _FORGOTTEN:
            self._who = ConsumerGroupMetadata(group=self._who.group)
        if error != ErrorCode.NONE:
            raise _Refused(error)
