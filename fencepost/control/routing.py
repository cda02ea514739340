"""What all routes share: ``@serves("hold")`` makes a function the route of a verb of the catalogue.

The modules of routes are imported when an operation of theirs is first looked up.

A route that waits does so with `listening`, for events or exchanges, and `wait_within`, which ends
with the request's timeout or with its client's connection.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.control.asgi import Request
from fencepost.control.verb_events import recorded
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers import Answer, ErrorAnswer
from fencepost.verbs.catalogue import VERBS, Method, Verb

Carrier: TypeAlias = Callable[..., Awaitable[object]]
"""A function that carries out a verb: see `request_binding` for its parameters."""
F = TypeVar("F", bound=Carrier)


class Unmet(ControllerError):
    """What a request waited for did not happen: REQUEST_TIMED_OUT, with what there is instead.

    :param answer: The whole answer.
    """

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, answer.message)
        self.answer = answer


class Operation(Struct, frozen=True, kw_only=True):
    """A verb, and the function that carries it out."""

    verb: Verb
    function: Carrier
    conflict: tuple[type[Answer], str] | None = None
    """The answer of status 409 where it is more than an error, and its description."""


_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "routes_cluster": (
            "healthz cluster topics create_topic delete_topic partition elect roll compact hold"
            " release step wipe stop_broker kill_broker start_broker isolate_broker rejoin_broker"
            " advance_clock reset"
        ),
        "routes_journal": "trace wait_for_trace",
        "routes_events": "events timeline",
        "routes_faults": "add_fault faults fault wait_for_fault remove_fault remove_faults",
        "routes_groups": (
            "groups group wait_for_group remove_member rebalance_group move_coordinator set_offsets"
            " delete_offsets"
        ),
        "routes_records": "produce_records read_records expect_records",
        "routes_tier": "tier add_tier_fault tier_faults remove_tier_fault remove_tier_faults",
        "routes_transactions": (
            "transactions transaction abort_transaction abort_hanging_transaction"
            " expire_transaction hold_marker release_marker"
        ),
        "routes_verify": "verify",
    }
)
"""The modules of routes, and the verbs that each carries out."""
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names.split()}
_REGISTERED: Final[dict[str, Operation]] = {}


class _Operations(Mapping[str, Operation]):
    """The operations by the names of their verbs; a look-up imports the module of the routes."""

    def __getitem__(self, name: str) -> Operation:
        if name not in _REGISTERED:
            import_module(f"fencepost.control.{_MODULE_OF[name]}")
        return _REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULE_OF)

    def __len__(self) -> int:
        return len(_MODULE_OF)


OPERATIONS: Final[Mapping[str, Operation]] = _Operations()


def serves(name: str, *, conflict: tuple[type[Answer], str] | None = None) -> Callable[[F], F]:
    """Register a function as the route of a verb."""
    verb = VERBS[name]

    def register(function: F) -> F:
        assert function.__name__ == name, f"{function.__name__} is to be named {name}"
        carrier = function if verb.method is Method.GET else recorded(verb, function)
        _REGISTERED[name] = Operation(verb=verb, function=carrier, conflict=conflict)
        return function

    return register


T = TypeVar("T")


class Received(Generic[T]):
    """The items that a listener has received.

    :param most: How many are kept; of more, the oldest are dropped.
    """

    def __init__(self, most: int | None) -> None:
        self.items: deque[T] = deque(maxlen=most)
        """The oldest first. The reader may take them out."""
        self._arrived = asyncio.Event()

    def add(self, item: T) -> None:
        """Keep an item and wake the reader."""
        self.items.append(item)
        self._arrived.set()

    async def wait(self) -> None:
        """Wait for the next item that arrives after this call."""
        self._arrived.clear()
        await self._arrived.wait()


@contextmanager
def listening(
    listeners: list[Callable[[T], None]],
    accepts: Callable[[T], bool],
    most: int | None = None,
) -> Iterator[Received[T]]:
    """Listen while the context is open.

    :param accepts: Whether an item is kept.
    :param most: How many items are kept; None keeps all.
    """
    received: Received[T] = Received(most)

    def listener(item: T) -> None:
        if accepts(item):
            received.add(item)

    listeners.append(listener)
    try:
        yield received
    finally:
        listeners.remove(listener)


async def wait_within(
    timeout_ms: int, request: Request, coroutine: Coroutine[object, object, T]
) -> T | None:
    """A coroutine's result; None after this real time, or when the client closes its connection.

    :raises ControllerError: BROKER_NOT_AVAILABLE when the cluster stops meanwhile.
    """
    stopping = request.control.stopping
    wanted = asyncio.ensure_future(coroutine)
    others = (request.disconnected(), stopping.wait())
    tasks = (wanted, *map(asyncio.ensure_future, others))
    try:
        done, _ = await asyncio.wait(
            tasks, timeout=timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if wanted in done:
        return wanted.result()
    if stopping.is_set():
        raise ControllerError(ErrorCode.BROKER_NOT_AVAILABLE, "the cluster is stopping")
    return None


async def outcome_within(timeout_ms: int, request: Request, answer: Wait[T] | T) -> T | None:
    """A response of the core that may be due later; None after this real time, as `wait_within`.

    :raises ControllerError: As `wait_within`.
    """
    if not isinstance(answer, Wait):
        return answer
    done = asyncio.Event()
    answer.then(lambda _: done.set())
    if not done.is_set():
        await wait_within(timeout_ms, request, done.wait())
    result = answer.result
    answer.cancel()
    return result
