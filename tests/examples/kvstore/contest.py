"""Two leaders of one shard at once, clients of both, and misfortune: what the clients saw."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from examples.kvstore.kafka_wal import KafkaWal
from examples.kvstore.leader import Leader
from examples.kvstore.replica import Replica
from examples.kvstore.state import Kind, Operation
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Event
from fencepost.client.client import Client
from fencepost.client.model import Partition
from tests.examples.kvstore import misfortune
from tests.examples.kvstore.histories import History

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

CHECKED: Final = {"check.expected.offsets": "true"}
CLIENTS: Final = 4
OPERATIONS: Final = 12
"""Of each client."""
KEYS: Final = ("k", "l")
KINDS: Final = (Kind.GET, Kind.GET, Kind.PUT, Kind.APPEND, Kind.APPEND, Kind.CAS, Kind.DELETE)
PATIENCE_S: Final = 60.0
DEADLINE_S: Final = 0.12
"""For an append, so that some outcomes are unknown, and not long in coming."""
ATTEMPT_S: Final = 0.06
IMPATIENT: Final = 0.1
"""The share of operations whose client gives up early."""


class Contender:
    """A leader of the shard that knows nothing of the other one."""

    def __init__(self, contest: Contest, name: str) -> None:
        self.client_id = f"{contest.topic}-{name}"
        self.leader: Leader
        self._contest = contest
        self._name = name
        self._lives = 0
        self._client: Client
        self._task: asyncio.Task[None]

    async def start(self) -> None:
        contest = self._contest
        self._lives += 1
        self._client = Client(contest.bootstrap, client_id=self.client_id)
        wal = contest.wal(
            self._client,
            Partition(topic=contest.topic, index=0),
            deadline_s=DEADLINE_S,
            attempt_s=ATTEMPT_S,
        )
        self.leader = contest.leader(Replica(), wal, f"{self._name}{self._lives}")
        self._task = asyncio.create_task(self.leader.lead())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._client.close()
        if not self._task.cancelled():
            raise AssertionError("a leader ended") from self._task.exception()

    async def restart(self) -> None:
        await self.stop()
        await self.start()


class Contest:
    """One run, of one seed, on a topic of its own."""

    def __init__(
        self,
        server: Server,
        seed: int,
        *,
        wal: type[KafkaWal] = KafkaWal,
        leader: type[Leader] = Leader,
    ) -> None:
        self.server = server
        self.rng = random.Random(seed)
        self.topic = f"seed-{seed}"
        self.history = History(f"seed {seed}")
        self.wal = wal
        self.leader = leader
        self.contenders = [Contender(self, name) for name in "ab"]
        self.is_over = False
        """Whether the clients are done."""
        self._moved = asyncio.Event()

    @property
    def bootstrap(self) -> str:
        brokers = self.server.cluster.controller.image.brokers.values()
        return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    async def run(self) -> History:
        """The whole of it: what all clients saw, and in the end what there is."""
        await self._prepare()
        events = self.server.cluster.events
        events.listeners.append(self._note)
        try:
            await self._run()
        finally:
            events.listeners.remove(self._note)
        return self.history

    def _note(self, event: Event) -> None:
        self.history.events[event.kind] += 1

    async def _run(self) -> None:
        for contender in self.contenders:
            await contender.start()
        try:
            await self._contend()
            await misfortune.heal(self)
            await self._look()
        finally:
            for contender in self.contenders:
                await contender.stop()

    async def _contend(self) -> None:
        trouble = asyncio.create_task(misfortune.strike(self))
        try:
            await asyncio.gather(*(self._client(number) for number in range(CLIENTS)))
        finally:
            self.is_over = True
            self._moved.set()
            await trouble

    async def _look(self) -> None:
        """What both leaders say there is, when nothing stands in their way any more."""
        for number, contender in enumerate(self.contenders, start=CLIENTS):
            for key in KEYS:
                asked = Operation(kind=Kind.GET, key=key)
                told = contender.leader.do(asked, PATIENCE_S)
                assert await self.history.record(number, asked, told) is not None

    async def a_while(self) -> None:
        """Until some operations more have come to an end, or none does for a while."""
        target = self.history.results + self.rng.randint(1, 6)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.rng.uniform(0.005, 0.03)):
                while self.history.results < target and not self.is_over:
                    self._moved.clear()
                    await self._moved.wait()

    async def _prepare(self) -> None:
        await self.server.reset()
        cluster = self.server.cluster
        cluster.controller.create_topic(
            NewTopic(name=self.topic, assignments=((1, 2, 3),), configs=CHECKED)
        )
        cluster.scheduler.run_due()
        for contender in self.contenders:
            for rule in misfortune.rules(self.rng, contender.client_id, self.topic):
                cluster.faults.add(rule)

    async def _client(self, number: int) -> None:
        rng = random.Random(self.rng.random())
        seen: dict[str, str | None] = {}
        for turn in range(OPERATIONS):
            asked = _operation(rng, seen, f"{number}.{turn} ")
            patience_s = rng.uniform(0, 0.01) if rng.random() < IMPATIENT else PATIENCE_S
            leader = rng.choice(self.contenders).leader
            result = await self.history.record(number, asked, leader.do(asked, patience_s))
            if result is not None:
                seen[asked.key] = None if asked.kind is Kind.DELETE else result.value
                if asked.kind is Kind.PUT:
                    seen[asked.key] = asked.value
            self._moved.set()


def _operation(rng: random.Random, seen: Mapping[str, str | None], text: str) -> Operation:
    """An operation that no other client sends, so that results show whose it was.

    :param seen: The values that the client believes in.
    """
    key, kind = rng.choice(KEYS), rng.choice(KINDS)
    value = None if kind in (Kind.GET, Kind.DELETE) else text
    expected = seen.get(key) if kind is Kind.CAS else None
    return Operation(kind=kind, key=key, value=value, expected=expected)
