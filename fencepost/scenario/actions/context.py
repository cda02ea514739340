"""What all client actions share: the fields they take and answer, and the scenario's clients.

Times are milliseconds. Offsets named ``end`` or ``next`` and high watermarks are exclusive, all
others inclusive.

The control API names the leader or the broker that a client has to ask, so that no request but the
one of the step reaches a broker, and no fault hits another one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, TypeAlias, TypedDict, TypeVar
from uuid import UUID

from msgspec import Meta, Struct

from fencepost.client.client import Client
from fencepost.client.cluster import find_coordinator
from fencepost.client.connection import Connection
from fencepost.client.errors import NoLeader, Unreachable
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import MAX_DELAY_MS, Body
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.remote import Refused

DEFAULT_CLIENT: Final = "scenario"
TIMEOUT_MS: Final = 30_000
Milliseconds = Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)]
PartitionIndex = Annotated[int, Meta(ge=0)]
Version = Annotated[int, Meta(ge=0, le=32767)]
IsolationLevel = Literal["read_uncommitted", "read_committed"]


class ActionBody(Body):
    """The fields of every action."""

    client_field: ClassVar[str] = "client"
    """The field that names the client where ``client`` is left out."""

    client: str = DEFAULT_CLIENT
    """The client that acts: its client id, with connections of its own. An action in the background
    is done by a client of that name."""
    broker: int | None = None
    """Whom to ask. Left out: the partition's leader as it really is, or the group's coordinator by
    FindCoordinator; else the first broker that runs."""
    version: Version | None = None
    """Of the API. Left out: the highest that both sides know, by ApiVersions."""
    timeout_ms: Milliseconds = TIMEOUT_MS
    """How long to wait for an answer."""


class PartitionBody(ActionBody):
    """A request about one partition."""

    topic: str
    partition: PartitionIndex = 0


class GroupBody(ActionBody):
    """A request to a group's coordinator."""

    group: str


class ActionAnswer(Answer):
    """The fields of every answer."""

    error: str | None
    """Kafka's name of the error, ``NONE`` for none; null where no answer came."""
    failed: str | None
    """Why no answer came: ``disconnected``, ``timed_out``, ``unreachable``, ``malformed``,
    ``not_served``, ``no_leader``."""
    broker: int | None
    """Who was asked."""
    version: int | None
    throttle_time_ms: int
    elapsed_ms: int
    """Of real time."""


class LeaderAnswer(Answer):
    """Who leads instead."""

    id: int
    epoch: int


class PartitionLeader(Struct, frozen=True, kw_only=True):
    """A partition and who leads it."""

    partition: Partition
    leader: int
    """-1 where there is no leader, or no such partition."""
    exists: bool


class ControlClient:
    """Requests to the control API.

    :param verbs: Of the cluster.
    :param began_at: The journal's last number before the scenario.
    """

    def __init__(self, verbs: AsyncVerbs, began_at: int = 0) -> None:
        self.verbs = verbs
        """To ask it anything else."""
        self.began_at = began_at

    async def addresses(self) -> dict[int, tuple[str, int]]:
        """Host and port by broker id."""
        cluster = await self.verbs.cluster()
        return {each.id: (each.host, each.port) for each in cluster.brokers}

    async def now_ms(self) -> int:
        """The cluster's time."""
        return (await self.verbs.cluster()).clock.now_ms

    async def first_running(self) -> int:
        """The lowest id of a broker that runs.

        :raises Unreachable: When none does.
        """
        cluster = await self.verbs.cluster()
        for each in cluster.brokers:
            if each.state == "running":
                return each.id
        raise Unreachable("no broker runs")

    async def partition_leader(self, topic: str, index: int) -> PartitionLeader:
        """A partition with its topic's id."""
        try:
            state = await self.verbs.partition(topic, index)
        except Refused:
            return PartitionLeader(
                partition=Partition(topic=topic, index=index), leader=-1, exists=False
            )
        partition = Partition(topic=topic, index=index, topic_id=UUID(state.topic_id))
        return PartitionLeader(partition=partition, leader=state.leader, exists=True)

    async def broker_to_ask(self, led: PartitionLeader) -> int:
        """Whom to ask of a partition.

        :raises NoLeader: When it has no leader.
        :raises Unreachable: When there is no such partition, and no broker runs that would say so.
        """
        if not led.exists:
            return await self.first_running()
        if led.leader < 0:
            raise NoLeader(f"{led.partition.topic}-{led.partition.index} has no leader")
        return led.leader


_RETRY_BACKOFF_S: Final = 0.02
_RETRIABLE: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class InvalidAction(Exception):
    """An action that cannot be done as it stands in the file. The text says why."""


class NoCoordinator(Exception):
    """The group has no coordinator; the text is Kafka's name of the error."""


class CommonFields(TypedDict):
    """What all answers say."""

    error: str | None
    failed: str | None
    broker: int | None
    version: int | None
    throttle_time_ms: int
    elapsed_ms: int


class BrokerAnswer(Protocol):
    """An answer of a broker."""

    @property
    def version(self) -> int:
        """Of the API."""

    @property
    def throttle_time_ms(self) -> int:
        """As answered."""


class ActionContext(Struct, kw_only=True):
    """A request that is being made: who makes it, and who was asked so far."""

    client: Client
    timeout_s: float
    broker: int | None = None

    async def connection(self, broker: int) -> Connection:
        """The connection to whom is context.

        :raises KafkaClientError: When it is not reached.
        """
        self.broker = broker
        return await self.client.broker(broker, timeout_s=self.timeout_s)

    def answer_fields(self, error: int, answer: BrokerAnswer) -> CommonFields:
        """What all answers say, of one that came."""
        return self.common_fields(
            error=error, version=answer.version, throttle_time_ms=answer.throttle_time_ms
        )

    def common_fields(self, *, error: int, version: int, throttle_time_ms: int) -> CommonFields:
        """What all answers say, by itself."""
        return CommonFields(
            error=error_name(error),
            failed=None,
            broker=self.broker,
            version=version,
            throttle_time_ms=throttle_time_ms,
            elapsed_ms=0,
        )


class ActionState:
    """What actions of one kind keep from one step of a scenario to the next."""

    def __init__(self, clients: "ScenarioClients") -> None:
        self._clients = clients

    async def close(self) -> None:
        """End what goes on in the background."""


S = TypeVar("S", bound=ActionState)


class ScenarioClients:
    """The clients of a scenario by their names, and what they know of the cluster.

    :param bootstrap: ``host:port,...``
    :param addresses: Host and port by broker id.
    """

    def __init__(
        self, control: ControlClient, bootstrap: str, addresses: Mapping[int, tuple[str, int]]
    ) -> None:
        self.control = control
        self._bootstrap = bootstrap
        self._addresses = dict(addresses)
        self._clients: dict[str, Client] = {}
        self._states: dict[type[ActionState], ActionState] = {}

    def bootstrap(self, broker: int | None) -> str:
        """``host:port,...`` of a broker, or of all, for a client that finds the others by itself.

        :raises InvalidAction: When there is no such broker.
        """
        if broker is None:
            return self._bootstrap
        if broker not in self._addresses:
            raise InvalidAction(f"there is no broker {broker}")
        host, port = self._addresses[broker]
        return f"{host}:{port}"

    def new_context(self, body: ActionBody) -> ActionContext:
        """A request of an action's client."""
        return ActionContext(client=self.client(body.client), timeout_s=body.timeout_ms / 1000)

    def client(self, name: str) -> Client:
        """The client of that name."""
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = Client(self._bootstrap, client_id=name)
            found.add_addresses(self._addresses)
        return found

    def state(self, kind: type[S]) -> S:
        """What actions of one kind keep from step to step, made when it is first needed."""
        state = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind(self)
        assert isinstance(state, kind)
        return state

    async def partition_connection(
        self, context: ActionContext, body: PartitionBody
    ) -> tuple[Connection, Partition]:
        """Whom to ask of a partition: who is named, or who leads it.

        :raises KafkaClientError: When it has no leader, or the broker is not reached.
        """
        led = await self.control.partition_leader(body.topic, body.partition)
        broker = await self.control.broker_to_ask(led) if body.broker is None else body.broker
        return await context.connection(broker), led.partition

    async def any_broker_connection(self, context: ActionContext, body: ActionBody) -> Connection:
        """Whom to ask what anybody knows.

        :raises KafkaClientError: When no broker runs, or who is to be asked is not reached.
        """
        broker = await self.control.first_running() if body.broker is None else body.broker
        return await context.connection(broker)

    async def coordinator_connection(
        self, context: ActionContext, body: ActionBody, group: str
    ) -> Connection:
        """Whom to ask of a group: who is named, or who coordinates it, as FindCoordinator tells.

        It is asked again until there is one, as clients do.

        :raises NoCoordinator: When there is none in time.
        :raises KafkaClientError: When who is to be asked is not reached.
        """
        if body.broker is not None:
            return await context.connection(body.broker)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + context.timeout_s
        while True:
            anybody = await context.connection(await self.control.first_running())
            found = await find_coordinator(anybody, group, timeout_s=context.timeout_s)
            if found.error == ErrorCode.NONE:
                return await context.connection(found.broker)
            if found.error not in _RETRIABLE or loop.time() >= deadline:
                raise NoCoordinator(error_name(found.error))
            await asyncio.sleep(_RETRY_BACKOFF_S)

    async def close(self) -> None:
        """End what actions keep, and close all clients."""
        for state in self._states.values():
            await state.close()
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


Run: TypeAlias = Callable[[ScenarioClients, ActionContext, Any], Awaitable[ActionAnswer]]
"""Carries an action out, with a body of its ``request_model``."""


def on_state(kind: type[S], act: Callable[[S, ActionContext, Any], Awaitable[ActionAnswer]]) -> Run:
    """An action that is a method of what actions of its kind keep."""

    async def run(clients: ScenarioClients, context: ActionContext, body: Any) -> ActionAnswer:  # noqa: ANN401  # the method's own
        return await act(clients.state(kind), context, body)

    return run


class Action(Struct, frozen=True):
    """One thing that a client of a scenario can do. Its module lists it in ``ACTIONS``."""

    name: str
    api: str | None
    """Kafka's name of the API; None: the one that is given, or none at all."""
    request_model: type[ActionBody]
    response_model: type[ActionAnswer]
    summary: str
    """One sentence."""
    run: Run
    note: Callable[[Mapping[str, Any], Mapping[str, Any]], str] | None = None
    """What a reader wants to see of an answer that is as expected, from the arguments and the
    answer as data; mostly nothing."""
