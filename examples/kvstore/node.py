"""A node of the store: it has a copy of every shard, leads some, and answers clients for these."""

import asyncio
import zlib
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import count
from uuid import uuid4

from examples.kvstore import topic
from examples.kvstore.kafka_wal import KafkaWal
from examples.kvstore.leader import Leader
from examples.kvstore.membership import Member
from examples.kvstore.replica import Replica
from examples.kvstore.server import NotLeader, serve
from examples.kvstore.state import Operation, Result
from examples.kvstore.wal import Wal
from fencepost.client.client import Client
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a node is like."""

    bootstrap: str
    """``host:port,...`` of Kafka."""
    name: str
    topic: str
    group: str
    """The nodes that share the shards among them."""
    shards: int
    host: str
    port: int
    """0 is a free one."""
    session_ms: int
    patience_s: float
    """How long an operation may take."""


def shard_of(key: str, shards: int) -> int:
    """The shard of a key: the same on every node, now and ever."""
    return zlib.crc32(key.encode()) % shards


class Shard:
    """A node's copy of a shard, which follows the log or leads the shard."""

    def __init__(self, wal: Wal, name: str) -> None:
        self.leader: Leader | None = None
        self._wal = wal
        self._names = (f"{name}-{term}" for term in count(1))
        self._replica = Replica()
        self._task: asyncio.Task[None] | None = None

    async def turn(self, tasks: asyncio.TaskGroup, *, leads: bool) -> None:
        """Lead from now on, or follow."""
        if self._task is not None:
            if leads == (self.leader is not None):
                return
            self._task.cancel()
            await asyncio.wait([self._task])
        self.leader = Leader(self._replica, self._wal, next(self._names)) if leads else None
        work = self._replica.follow(self._wal) if self.leader is None else self.leader.lead()
        self._task = tasks.create_task(work)


class Node:
    """A process of the store. `run` is its life."""

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._shards: list[Shard] = []
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Serve until it is cancelled.

        :raises UnfitTopic: When the topic can't be the log of a store.
        :raises KafkaClientError: When Kafka does not answer in the beginning.
        """
        settings = self._settings
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._client())
            shards = await topic.prepare(client, settings.topic, settings.shards)
            for index in range(shards):
                own = await stack.enter_async_context(self._client())
                wal = KafkaWal(own, Partition(topic=settings.topic, index=index))
                self._shards.append(Shard(wal, f"{settings.name}-{uuid4().hex[:8]}-{index}"))
            server = await serve(self.do, settings.host, settings.port)
            stack.callback(server.close)
            host, port = server.sockets[0].getsockname()[:2]
            self._say(f"{settings.name} serves at {host}:{port}")
            member = Member(
                client, settings.group, settings.topic, self._lead, session_ms=settings.session_ms
            )
            try:
                async with self._tasks:
                    for shard in self._shards:
                        await shard.turn(self._tasks, leads=False)
                    await member.take_part()
            finally:
                with suppress(KafkaClientError):
                    await member.leave()

    async def do(self, operation: Operation) -> Result:
        """Carry out a client's operation.

        :raises NotLeader: When that is for another node to do.
        :raises NotDone: When it was not carried out and never will be.
        :raises Unknown: When that could not be learnt in time.
        """
        shard = shard_of(operation.key, len(self._shards))
        leader = self._shards[shard].leader
        if leader is None:
            raise NotLeader(f"{self._settings.name} does not lead shard {shard}")
        return await leader.do(operation, self._settings.patience_s)

    async def _lead(self, shards: frozenset[int]) -> None:
        for index, shard in enumerate(self._shards):
            await shard.turn(self._tasks, leads=index in shards)
        said = ", ".join(map(str, sorted(shards))) or "no shard"
        self._say(f"{self._settings.name} leads {said}")

    def _client(self) -> Client:
        return Client(self._settings.bootstrap, client_id=f"kvstore-{self._settings.name}")
