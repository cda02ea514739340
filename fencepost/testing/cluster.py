"""The cluster of a test: its addresses, the verbs as methods, and waiting for a state."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NoReturn, TypeVar

from fencepost.protocol.listener_text import PLAINTEXT
from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS
from fencepost.verbs.methods import AsyncVerbs, Verbs
from fencepost.verbs.remote import Remote
from fencepost.verbs.remote_async import AsyncRemote

_PAUSE_S: Final = 0.005
"""Between two attempts of a wait."""

T = TypeVar("T")


class Cluster(Verbs):
    """A running cluster, steered by methods: the verbs, each done when it returns.

    :param bootstrap: Where clients find it: ``host:port,...``.
    :param control: The URL of its control API.
    :param control_token: What that needs where other machines can reach it.
    :param listeners: The bootstrap of each listener, by name, where there are several.
    :param bootstrap_controllers: Where tools find the controller: ``host:port``; None where it does
        not listen.
    """

    def __init__(
        self,
        bootstrap: str,
        control: str,
        *,
        control_token: str | None = None,
        listeners: Mapping[str, str] | None = None,
        bootstrap_controllers: str | None = None,
    ) -> None:
        super().__init__(Remote(control, token=control_token))
        self.bootstrap = bootstrap
        self.listeners = dict(listeners or {PLAINTEXT: bootstrap})
        self.bootstrap_controllers = bootstrap_controllers
        self.control = control

    def wait_until(self, holds: Callable[[], T], *, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> T:
        """Ask again until the answer is true, and return it.

        :param timeout_ms: Of real time.
        :raises AssertionError: When it never is.
        """
        __tracebackhide__ = True
        deadline = _deadline(timeout_ms)
        while not (found := holds()):
            if time.monotonic() > deadline:
                _fail_timed_out(timeout_ms, f"the last answer was {found!r}")
            time.sleep(_PAUSE_S)
        return found

    def wait_for_partition(
        self,
        topic: str,
        partition: int,
        holds: Callable[[PartitionState], object],
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> PartitionState:
        """Look at a partition until something holds of its state, and return that.

        :param timeout_ms: Of real time.
        :raises AssertionError: When it never does; it tells the last state.
        """
        __tracebackhide__ = True
        deadline = _deadline(timeout_ms)
        while not holds(state := self.partition(topic, partition)):
            if time.monotonic() > deadline:
                _fail_timed_out(timeout_ms, f"the last state was {state!r}")
            time.sleep(_PAUSE_S)
        return state


class AsyncCluster(AsyncVerbs):
    """`Cluster` for asyncio; its methods are the same, to be awaited.

    :param bootstrap: Where clients find it: ``host:port,...``.
    :param control: The URL of its control API.
    :param control_token: What that needs where other machines can reach it.
    :param listeners: The bootstrap of each listener, by name, where there are several.
    :param bootstrap_controllers: Where tools find the controller: ``host:port``; None where it does
        not listen.
    """

    def __init__(
        self,
        bootstrap: str,
        control: str,
        *,
        control_token: str | None = None,
        listeners: Mapping[str, str] | None = None,
        bootstrap_controllers: str | None = None,
    ) -> None:
        super().__init__(AsyncRemote(control, token=control_token))
        self.bootstrap = bootstrap
        self.listeners = dict(listeners or {PLAINTEXT: bootstrap})
        self.bootstrap_controllers = bootstrap_controllers
        self.control = control

    async def wait_until(
        self, holds: Callable[[], Awaitable[T]], *, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> T:
        """See `Cluster.wait_until`."""
        import asyncio  # most tests are not async, and wait for this module

        __tracebackhide__ = True
        deadline = _deadline(timeout_ms)
        while not (found := await holds()):
            if time.monotonic() > deadline:
                _fail_timed_out(timeout_ms, f"the last answer was {found!r}")
            await asyncio.sleep(_PAUSE_S)
        return found

    async def wait_for_partition(
        self,
        topic: str,
        partition: int,
        holds: Callable[[PartitionState], object],
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> PartitionState:
        """See `Cluster.wait_for_partition`."""
        import asyncio

        __tracebackhide__ = True
        deadline = _deadline(timeout_ms)
        while not holds(state := await self.partition(topic, partition)):
            if time.monotonic() > deadline:
                _fail_timed_out(timeout_ms, f"the last state was {state!r}")
            await asyncio.sleep(_PAUSE_S)
        return state


def _deadline(timeout_ms: int) -> float:
    return time.monotonic() + timeout_ms / 1000


def _fail_timed_out(timeout_ms: int, last: str) -> NoReturn:
    __tracebackhide__ = True
    raise AssertionError(f"not within {timeout_ms} ms; {last}")
