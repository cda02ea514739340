"""What all client actions share: the clients by their names, and whom an action asks."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict

from fencepost.client.client import Client
from fencepost.client.cluster import find_coordinator
from fencepost.client.connection import Connection
from fencepost.client.model import Partition
from fencepost.control.scenario.action_bodies import ActionBody, PartitionBody
from fencepost.control.scenario.truth import Truth
from fencepost.protocol.errors import ErrorCode, error_name

_PAUSE_S: Final = 0.02
_NOT_YET: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class CannotAct(Exception):
    """An action that cannot be done as it stands in the file. The text says why."""


class NotCoordinated(Exception):
    """Nobody coordinates the group; the text is Kafka's name of the error."""


class Common(TypedDict):
    """What all answers say."""

    error: str | None
    failed: str | None
    broker: int | None
    version: int | None
    throttle_time_ms: int
    elapsed_ms: int


class Came(Protocol):
    """An answer of a broker."""

    @property
    def version(self) -> int:
        """Of the API."""

    @property
    def throttle_time_ms(self) -> int:
        """As answered."""


@dataclass(slots=True, kw_only=True)
class Asked:
    """A request that is being made: who makes it, and who was asked so far."""

    client: Client
    timeout_s: float
    broker: int | None = None

    async def connection(self, broker: int) -> Connection:
        """The connection to whom is asked.

        :raises KafkaClientError: When it is not reached.
        """
        self.broker = broker
        return await self.client.broker(broker, timeout_s=self.timeout_s)

    def answered(self, error: int, answer: Came) -> Common:
        """What all answers say, of one that came."""
        return self.common(
            error=error, version=answer.version, throttle_time_ms=answer.throttle_time_ms
        )

    def common(self, *, error: int, version: int, throttle_time_ms: int) -> Common:
        """What all answers say, by itself."""
        return Common(
            error=error_name(error),
            failed=None,
            broker=self.broker,
            version=version,
            throttle_time_ms=throttle_time_ms,
            elapsed_ms=0,
        )


class Session:
    """The clients of a scenario by their names, and what they know of the cluster.

    :param bootstrap: ``host:port,...``
    :param addresses: Host and port by broker id.
    """

    def __init__(
        self, truth: Truth, bootstrap: str, addresses: Mapping[int, tuple[str, int]]
    ) -> None:
        self.truth = truth
        self._bootstrap = bootstrap
        self._addresses = dict(addresses)
        self._clients: dict[str, Client] = {}

    def asked(self, body: ActionBody) -> Asked:
        """A request of an action's client."""
        return Asked(client=self.client(body.client), timeout_s=body.timeout_ms / 1000)

    def client(self, name: str) -> Client:
        """The client of that name."""
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = Client(self._bootstrap, client_id=name)
            found.learn(self._addresses)
        return found

    async def partition(self, asked: Asked, body: PartitionBody) -> tuple[Connection, Partition]:
        """Whom to ask of a partition: who is named, or who leads it.

        :raises KafkaClientError: When nobody leads it, or who is to be asked is not reached.
        """
        led = await self.truth.led(body.topic, body.partition)
        broker = await self.truth.whom(led) if body.broker is None else body.broker
        return await asked.connection(broker), led.partition

    async def anybody(self, asked: Asked, body: ActionBody) -> Connection:
        """Whom to ask what anybody knows.

        :raises KafkaClientError: When no broker runs, or who is to be asked is not reached.
        """
        broker = await self.truth.first_running() if body.broker is None else body.broker
        return await asked.connection(broker)

    async def coordinator(self, asked: Asked, body: ActionBody, group: str) -> Connection:
        """Whom to ask of a group: who is named, or who coordinates it, as FindCoordinator tells.

        It is asked again until there is one, as clients do.

        :raises NotCoordinated: When there is none in time.
        :raises KafkaClientError: When who is to be asked is not reached.
        """
        if body.broker is not None:
            return await asked.connection(body.broker)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + asked.timeout_s
        while True:
            anybody = await asked.connection(await self.truth.first_running())
            found = await find_coordinator(anybody, group, timeout_s=asked.timeout_s)
            if found.error == ErrorCode.NONE:
                return await asked.connection(found.broker)
            if found.error not in _NOT_YET or loop.time() >= deadline:
                raise NotCoordinated(error_name(found.error))
            await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        """Close all clients."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()
