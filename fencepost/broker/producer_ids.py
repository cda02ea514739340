"""A broker's producer ids: blocks from the controller, given out one by one (KIP-730)."""

from typing import TYPE_CHECKING, Final

from fencepost.broker.scheduler import Scheduler

if TYPE_CHECKING:
    from fencepost.broker.controller import Controller

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The block that one broker gives out.

    :param at_once: Whether an empty block is filled before the answer. A real broker asks its
        controller first, and answers COORDINATOR_LOAD_IN_PROGRESS until it has the ids.
    """

    def __init__(self, controller: "Controller", scheduler: Scheduler, *, at_once: bool) -> None:
        self._controller = controller
        self._scheduler = scheduler
        self._at_once = at_once
        self._left: list[int] = []
        self._asked = False

    def next(self) -> int | None:
        """An id that nobody has had; None while there is none yet."""
        if not self._left:
            if not self._at_once:
                self._ask()
                return None
            self._fill()
        return self._left.pop()

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            self._scheduler.soon(self._fill)

    def _fill(self) -> None:
        self._asked = False
        self._left = list(reversed(self._controller.next_producer_ids(BLOCK_SIZE)))
