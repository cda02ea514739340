"""The network of a cluster: brokers and the controller exchange messages on links.

Each exchange between nodes is a message: requests of brokers to each other and to the controller,
clients' requests that brokers forward, responses, images of the cluster, wake-ups of followers.
In service a message arrives in the same turn; the simulation delays it until its seed delivers it.

Delivery is decided at the time of arrival: a link that was cut meanwhile loses the message, and so
does a node that went down meanwhile, even if it is up again. Messages of a link stay in order.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import (
    Any,
    Final,
    Generic,
    NamedTuple,
    NewType,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    final,
    get_args,
)

from msgspec import Struct

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.outcomes import HANG_UP, Delivery, HangUp
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.protocol.apis import Api

R = TypeVar("R")
_new_tuple: Final = tuple.__new__
REQUEST_TIMEOUT_MS: Final = 30_000
"""How long a broker waits for another's answer: Kafka's ``replica.socket.timeout.ms``."""
_FAULT_OUTCOMES: Final = (HangUp, *get_args(Delivery))
BrokerId = NewType("BrokerId", int)
"""A broker as an end of links; 0 is one like any other."""


@final
class ControllerNode:
    """The controller as an end of links. It is no broker, and has no broker's id."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "controller"


CONTROLLER: Final = ControllerNode()
NodeId: TypeAlias = BrokerId | ControllerNode


class Link(NamedTuple):
    """From one node to another. The way back is another link."""

    source: NodeId
    target: NodeId


class Endpoint(Protocol):
    """What the network needs of a broker."""

    broker_id: BrokerId
    scheduler: Scheduler

    @property
    def host(self) -> str:
        """The host of its registration."""
        ...

    def max_version(self, api: Api) -> int:
        """The highest version of an API that it serves (inclusive)."""
        ...

    def wake_follower(self, topic: str, index: int) -> None:
        """Wake the follower of a partition: its leader has records for it."""
        ...

    def handle(self, api: Api, ctx: Context[Any], request: object) -> object:
        """Handle a request: see `fencepost.broker.core.outcomes`."""
        ...


Deliver = Callable[[], None]
Arrive = Callable[[], bool]
"""Ends the way of a message: whether its target has got it, or it is lost."""
Transport = Callable[[Link, Arrive], object]
"""Takes a message and has it arrive, at once or later, in order of its link."""


OnResponse = Callable[[object | None], None]
"""Takes the answer to a request; None where there is none."""
ObserveRequest = Callable[[Api, Context[Any], object], OnResponse]
"""Observes a request that a broker receives, and returns the observer of its answer."""


def deliver_now(_link: Link, arrive: Arrive) -> None:
    """Deliver as in service: in the same turn."""
    arrive()


def _observe_nothing(_api: Api, _ctx: Context[Any], _message: object) -> OnResponse:
    """Do nothing."""
    return _ignore_response


def _ignore_response(_answer: object | None) -> None:
    pass


class ControllerRequest(Struct, Generic[R], frozen=True):
    """A broker's message to the controller, whose answer is an ``R``.

    The kinds are defined where they are answered: `fencepost.broker.controller.requests`.
    """


class ControllerEndpoint(Protocol):
    """The controller, as far as links need it."""

    def handle(self, request: ControllerRequest[R]) -> R | Wait[R]:
        """Answer a broker."""
        ...


class _Request(NamedTuple):
    """A request of one broker to another that is not answered: see `Network.request`."""

    source_id: BrokerId
    target: Endpoint
    answered: Callable[[object], None]
    lost: Deliver


class Network:
    """The links between the nodes of one cluster."""

    def __init__(self, carry: Transport = deliver_now) -> None:
        self._transport = carry
        self.observe: ObserveRequest = _observe_nothing
        """Called with each request between brokers that arrives."""
        self._controller: ControllerEndpoint
        self._brokers: dict[int, Endpoint] = {}
        self._peers: dict[int, tuple[Peer, str]] = {}
        """How each broker appears to the others as a client, and its client id."""
        self._cuts: set[frozenset[NodeId]] = set()
        self._down: set[NodeId] = set()
        self._incarnations: dict[NodeId, int] = {CONTROLLER: 0}
        """How often each node went down: a message to or from an earlier life is lost."""

    # -- nodes and links ------------------------------------------------------------------------

    def attach_controller(self, controller: ControllerEndpoint) -> None:
        """Connect the controller to all brokers."""
        self._controller = controller

    def attach(self, broker: Endpoint) -> None:
        """Connect a broker to all others and to the controller."""
        broker_id = broker.broker_id
        self._brokers[broker_id] = broker
        name = f"broker-{broker_id}"
        self._peers[broker_id] = _peer(name, broker.host), f"{name}-fetcher-0"
        self._incarnations.setdefault(broker_id, 0)

    def on_broker_down(self, broker_id: BrokerId) -> None:
        """A broker goes down: what is on the way to it or from it is lost."""
        self._incarnations[broker_id] += 1
        self._down.add(broker_id)

    def on_broker_up(self, broker_id: BrokerId) -> None:
        """A broker is up again."""
        self._down.discard(broker_id)

    def cut_link(self, a: NodeId, b: NodeId) -> None:
        """Lose every message between two nodes, both ways, those on the way as well."""
        self._cuts.add(frozenset((a, b)))

    def restore_link(self, a: NodeId, b: NodeId) -> None:
        """Let two nodes reach each other again."""
        self._cuts.discard(frozenset((a, b)))

    def is_cut(self, a: NodeId, b: NodeId) -> bool:
        """Whether the link between two nodes is cut."""
        return frozenset((a, b)) in self._cuts

    def unreachable_brokers(self, node: NodeId) -> Collection[BrokerId]:
        """Every broker that a node can't reach because of a cut, in order."""
        others = (other for cut in self._cuts if node in cut for other in cut - {node})
        return sorted(other for other in others if not isinstance(other, ControllerNode))

    def unreachable_nodes(self, node: NodeId) -> Collection[NodeId]:
        """The same, and before them the controller where it can't reach that."""
        controller = (CONTROLLER,) if self.is_cut(node, CONTROLLER) else ()
        return (*controller, *self.unreachable_brokers(node))

    def is_down(self, node: NodeId) -> bool:
        """Whether a broker is not running; the controller always is."""
        return node in self._down

    def reaches(self, source: NodeId, target: NodeId) -> bool:
        """Whether a message would arrive now."""
        if not self._down and not self._cuts:
            return True
        if source in self._down or target in self._down:
            return False
        return frozenset((source, target)) not in self._cuts

    def _arrives_now(self, source: NodeId, target: NodeId) -> bool:
        """Whether a message arrives in this turn: each does in service, unless it is lost."""
        return self._transport is deliver_now and self.reaches(source, target)

    def version(self, target_id: int, api: Api) -> int:
        """The highest version of an API that a broker serves, as its ApiVersions would say."""
        target = self._brokers.get(target_id)
        return api.max_version if target is None else target.max_version(api)

    # -- messages -------------------------------------------------------------------------------

    def send(
        self,
        source: NodeId,
        target: NodeId,
        deliver: Deliver,
        *,
        lost: Deliver | None = None,
        notify_node: NodeId | None = None,
    ) -> None:
        """Send one message.

        :param lost: Called instead of ``deliver`` when it does not arrive, unless ``notify_node``
            went down meanwhile.
        :param notify_node: The node whose ``lost`` this is; None is the source.
        """
        if self._transport is deliver_now:  # nothing changes on the way
            if self.reaches(source, target):
                deliver()
            elif lost is not None:
                lost()
            return
        lives = self._incarnations
        at_source, at_target = lives[source], lives[target]

        def arrive() -> bool:
            same = lives[source] == at_source and lives[target] == at_target
            if same and self.reaches(source, target):
                deliver()
                return True
            if lost is not None:
                notified = source if notify_node is None else notify_node
                if lives[notified] == (at_source if notified == source else at_target):
                    lost()
            return False

        self._transport(_new_tuple(Link, (source, target)), arrive)

    def request(
        self,
        source_id: BrokerId,
        target_id: int,
        api: Api,
        version: int,
        message: object,
        answered: Callable[[object], None],
        lost: Deliver,
    ) -> None:
        """Send a request to another broker's handlers.

        :param version: What the message was made for: `version` says which are served.
        :param answered: Called with the response, in this turn or a later one.
        :param lost: Called when the request or its answer got lost.
        """
        target = self._brokers.get(target_id)
        if target is None:
            lost()
            return
        sent = _new_tuple(_Request, (source_id, target, answered, lost))
        if self._arrives_now(source_id, target.broker_id):
            self._serve(sent, api, version, message)
            return
        serve = partial(self._serve, sent, api, version, message)
        self.send(source_id, target.broker_id, serve, lost=lost)

    def _serve(self, sent: "_Request", api: Api, version: int, message: object) -> None:
        target = sent.target
        peer, client_id = self._peers[sent.source_id]
        scheduler = target.scheduler
        now_ms, wall_ms = scheduler.now_ms(), scheduler.wall_ms()
        # A tuple at once: `Context` and the others would have it made by one more function each.
        ctx: Context[Endpoint] = _new_tuple(
            Context, (target, version, client_id, peer, now_ms, wall_ms, None, 0, None)
        )
        saw = self.observe(api, ctx, message)
        answer = target.handle(api, ctx, message)
        if isinstance(answer, Wait):
            _reply_when_done(answer, scheduler, partial(self._reply, sent, saw))
        else:
            self._reply(sent, saw, answer)

    def _reply(self, sent: "_Request", saw: OnResponse, response: object) -> None:
        source_id, target, answered, lost = sent
        if isinstance(response, _FAULT_OUTCOMES):
            if isinstance(response, HangUp):
                saw(None)
                self.send(target.broker_id, source_id, lost, lost=lost, notify_node=source_id)
                return
            response = response.response  # followers are not throttled
        saw(response)
        if response is not None:
            if self._arrives_now(target.broker_id, source_id):
                answered(response)
                return
            deliver = partial(answered, response)
            self.send(target.broker_id, source_id, deliver, lost=lost, notify_node=source_id)

    def ask_controller(
        self,
        source_id: BrokerId,
        request: ControllerRequest[R],
        answered: Callable[[R], None],
        lost: Deliver,
    ) -> None:
        """Send a broker's request to the controller.

        :param answered: Called with the answer, in this turn or a later one.
        :param lost: Called when the request or its answer got lost. The controller may have carried
            the request out.
        """

        def serve() -> None:
            answer = self._controller.handle(request)
            if isinstance(answer, Wait):
                answer.then(reply)
            else:
                reply(answer)

        def reply(answer: R | None) -> None:
            deliver = partial(answered, cast(R, answer))
            self.send(CONTROLLER, source_id, deliver, lost=lost, notify_node=source_id)

        self.send(source_id, CONTROLLER, serve, lost=lost)

    def notify_follower(self, source_id: BrokerId, target_id: int, topic: str, index: int) -> None:
        """Notify a follower that its leader has new records or a new high watermark.

        A real follower's fetch would be waiting at the leader; this one is not kept there, because
        ten thousand idle partitions would each keep one.
        """
        target = self._brokers.get(target_id)
        if target is not None:
            self.send(source_id, target.broker_id, partial(target.wake_follower, topic, index))


def _peer(name: str, host: str) -> Peer:
    return Peer(connection_id=name, host=host, is_broker=True)


def _reply_when_done(
    answer: Wait[object], scheduler: Scheduler, reply: Callable[[object], None]
) -> None:
    """Reply when the response is complete, or when the request times out."""

    def give_up() -> None:
        answer.cancel()
        reply(HANG_UP)

    timer = scheduler.at(scheduler.now_ms() + REQUEST_TIMEOUT_MS, give_up)

    def answered(response: object) -> None:
        timer.cancel()
        reply(response)

    answer.then(answered)
