"""The environment of a simulated run: its options, its network and its remote tier.

By default a run is in memory and unobserved. A caller that records a run passes a data directory
and a function that sees every request; the simulation itself writes no file.

On the simulated network every message waits on its link until the schedule delivers it. In the
simulated tier each operation waits until the schedule completes it or lets it fail. Operations may
overtake each other, as those of many brokers at a real store do. The contents of a segment are
parsed when its metadata are written: see `tier_checker.TierChecker`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.network.links import (
    CONTROLLER,
    Arrive,
    BrokerId,
    ControllerNode,
    Link,
    NodeId,
)
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.persistence import MakePersistence
from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.simulation.schedule import CONTROLLER_NUMBER
from fencepost.storage.tier.object_store import (
    DoneCallback,
    ListCallback,
    MemoryObjectStore,
    ReadCallback,
    TierError,
)

RequestSender: TypeAlias = Callable[[Broker, Api, int, object, Peer], object]
"""Takes a client's request to a broker: by API, version, message, and whose it is. What comes back
is a response, a wait for one, or None where there never will be any."""


def send_directly(broker: Broker, api: Api, version: int, request: object, peer: Peer) -> object:
    """Call the handler and observe nothing."""
    now_ms, wall_ms = broker.scheduler.now_ms(), broker.scheduler.wall_ms()
    ctx = Context(broker, version, peer.connection_id, peer, now_ms, wall_ms)
    return broker.handle(api, ctx, request)


class RunEnvironment(Struct, frozen=True, kw_only=True):
    """What a run is given besides its seed."""

    make_persistence: MakePersistence | None = None
    """Makes the place where the cluster's metadata and logs are; None is memory."""
    send: RequestSender = send_directly
    """What carries clients' requests."""
    observe: Callable[[Cluster], None] | None = None
    """Is given the cluster when it has begun, to look on."""
    is_realistic: bool = False
    """Whether records bear the time, and are compressed now and then."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Of all brokers, besides those that every run has."""
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """Likewise, of the topic."""


IN_MEMORY: Final = RunEnvironment()


def node_number(node: NodeId) -> int:
    """How a schedule writes a node."""
    return CONTROLLER_NUMBER if isinstance(node, ControllerNode) else node


def node_of(number: int) -> NodeId:
    """The node that a schedule writes so."""
    return CONTROLLER if number == CONTROLLER_NUMBER else BrokerId(number)


@cache
def link_of(source: int, target: int) -> Link:
    """The link between two nodes, as a schedule writes them."""
    return Link(node_of(source), node_of(target))


@cache
def reached_brokers(link: Link, *, has_arrived: bool) -> Sequence[BrokerId]:
    """The brokers to which something has happened by a message, in order.

    One that has arrived is only known to who got it; one that was lost may be missed by either.
    """
    reached = (link.target,) if has_arrived else link
    return sorted(node for node in reached if not isinstance(node, ControllerNode))


class SimulatedNetwork:
    """Messages on their way, in order of each link. Links among each other have none."""

    __slots__ = ("_waiting", "on_controller_send")

    def __init__(self) -> None:
        self.on_controller_send: Callable[[], None] = _ignore_send
        """Called when the controller sends something: each image that it makes is sent."""
        self._waiting: dict[Link, deque[Arrive]] = {}
        """Only links with messages, in the order in which they got their first one."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Link]:
        """The links on which a message waits."""
        return iter(self._waiting)

    def send(self, link: Link, arrive: Arrive) -> None:
        """Take a message from the network."""
        if link.source is CONTROLLER:
            self.on_controller_send()
        queue = self._waiting.get(link)
        if queue is None:
            self._waiting[link] = deque((arrive,))
        else:
            queue.append(arrive)

    def deliver(self, link: Link) -> bool | None:
        """Deliver the oldest message of a link; the scheduler runs its consequences.

        :returns: Whether it has arrived, or was lost; None where there was none.
        """
        queue = self._waiting.get(link)
        if queue is None:
            return None
        arrive = queue.popleft()
        if not queue:
            del self._waiting[link]
        return arrive()

    def first(self) -> Link | None:
        """The link that has waited longest of those with messages, as far as one can say."""
        return next(iter(self._waiting), None)


def _ignore_send() -> None:
    """The default: sends are not observed."""


FAILURE_REASON = "the schedule lets it fail"


class PendingOperation(NamedTuple):
    """An operation on the tier that waits.

    :ivar perform: Performs it and calls the caller's callback.
    :ivar fail: Calls the caller's callback with an error.
    """

    perform: Callable[[], None]
    fail: Callable[[TierError], None]
    key: str


class SimulatedObjectStore:
    """An `ObjectStore` that does one thing at a time, when it is told to.

    :ivar waiting: What it was asked for and has not done, oldest first.
    :ivar changed: Called after an object was written or deleted, with its key.
    """

    def __init__(self) -> None:
        self.pending: list[PendingOperation] = []
        self.on_change: Callable[[str], None] = _ignore_change
        self._memory = MemoryObjectStore(lambda callback: callback())

    @property
    def objects(self) -> dict[str, bytes]:
        """The contents, by key."""
        return self._memory.objects

    # -- what brokers ask -----------------------------------------------------------------------

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object whole."""
        taken = list(buffers)

        def write() -> None:
            self._memory.objects[key] = b"".join(taken)
            self.on_change(key)
            done(None)

        self.pending.append(PendingOperation(write, done, key))

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read an object's bytes."""
        self.pending.append(
            PendingOperation(lambda: self._memory.get(key, start, end, done), done, key)
        )

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects."""

        def remove() -> None:
            self.lose(keys)
            done(None)

        def remove_some(error: TierError) -> None:
            self.lose(keys[: len(keys) // 2])
            done(error)

        self.pending.append(PendingOperation(remove, remove_some, keys[0] if keys else ""))

    def list(self, prefix: str, done: ListCallback) -> None:
        """The keys that begin with a prefix."""
        self.pending.append(PendingOperation(lambda: self._memory.list(prefix, done), done, prefix))

    # -- what a schedule does -------------------------------------------------------------------

    def complete(self, number: int, *, fails: bool = False) -> bool:
        """Complete one of the waiting operations, or let it fail.

        :param number: Its index, modulo the number of operations.
        :returns: Whether there was one.
        """
        if not self.pending:
            return False
        operation = self.pending.pop(number % len(self.pending))
        if fails:
            operation.fail(TierError(operation.key, FAILURE_REASON))
        else:
            operation.perform()
        return True

    def lose(self, keys: Iterable[str]) -> None:
        """Objects are gone; some may have been before."""
        for key in keys:
            if self._memory.objects.pop(key, None) is not None:
                self.on_change(key)


def _ignore_change(_key: str) -> None:
    """The default: changes are not observed."""
