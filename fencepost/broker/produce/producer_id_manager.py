"""A broker's producer ids: blocks from the controller, given out one by one (KIP-730)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from fencepost.broker.core.scheduler import Scheduler

BLOCK_SIZE: Final = 1000
RequestBlock: TypeAlias = Callable[[int, Callable[[Sequence[int]], None], Callable[[], None]], None]
"""Asks the controller for so many ids; calls back with them, or when the request or its answer is
lost."""


class ProducerIdManager:
    """The block that one broker gives out.

    :param at_once: Whether an empty block is filled before the answer, where the controller answers
        in the same turn. A real broker asks its controller first, and answers
        COORDINATOR_LOAD_IN_PROGRESS until it has the ids.
    """

    def __init__(self, request_block: RequestBlock, scheduler: Scheduler, *, at_once: bool) -> None:
        self._send_request = request_block
        self._scheduler = scheduler
        self._at_once = at_once
        self._remaining: list[int] = []
        self._is_requested = False

    def generate_producer_id(self) -> int | None:
        """An unused id; None while there is none yet."""
        if not self._remaining and not self._is_requested:
            self._request_block()
        return self._remaining.pop() if self._remaining else None

    def on_broker_stop(self) -> None:
        """The broker goes down: no answer to a request of this life will arrive."""
        self._is_requested = False

    def _request_block(self) -> None:
        self._is_requested = True
        if self._at_once:
            self._fill()
        else:
            self._scheduler.soon(self._fill)

    def _fill(self) -> None:
        self._send_request(BLOCK_SIZE, self._take_block, self._on_lost)

    def _take_block(self, block: Sequence[int]) -> None:
        self._is_requested = False
        self._remaining = list(reversed(block))

    def _on_lost(self) -> None:
        """The next client that needs an id makes the broker ask again."""
        self._is_requested = False
