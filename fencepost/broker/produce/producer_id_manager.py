"""A broker's producer ids: blocks from the controller, given out one by one (KIP-730)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from fencepost.broker.core.errors import ControllerUnreachable
from fencepost.broker.core.scheduler import Scheduler

BLOCK_SIZE: Final = 1000


class ProducerIdManager:
    """The block that one broker gives out.

    :param next_block: The controller's, as far as this broker reaches it.
    :param at_once: Whether an empty block is filled before the answer. A real broker asks its
        controller first, and answers COORDINATOR_LOAD_IN_PROGRESS until it has the ids.
    """

    def __init__(
        self, next_block: Callable[[int], Sequence[int]], scheduler: Scheduler, *, at_once: bool
    ) -> None:
        self._next_block = next_block
        self._scheduler = scheduler
        self._at_once = at_once
        self._remaining: list[int] = []
        self._is_requested = False

    def generate_producer_id(self) -> int | None:
        """An unused id; None while there is none yet."""
        if not self._remaining:
            if not self._at_once:
                self._request_block()
                return None
            self._fill()
        return self._remaining.pop() if self._remaining else None

    def _request_block(self) -> None:
        if not self._is_requested:
            self._is_requested = True
            self._scheduler.soon(self._fill)

    def _fill(self) -> None:
        self._is_requested = False
        with suppress(ControllerUnreachable):
            self._remaining = list(reversed(self._next_block(BLOCK_SIZE)))
