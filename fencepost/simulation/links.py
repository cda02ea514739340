"""The simulated network's wires: every message waits on its link until somebody lets it arrive."""

from collections import deque
from collections.abc import Callable, Iterator

from fencepost.broker.network import CONTROLLER, Deliver, Link


class Links:
    """Messages on their way, in order of each link. Links among each other have none."""

    __slots__ = ("_waiting", "controller_speaks")

    def __init__(self) -> None:
        self.controller_speaks: Callable[[], None] = _unheard
        """Called when the controller sends something: each image that it makes is sent."""
        self._waiting: dict[Link, deque[Deliver]] = {}
        """Only links with messages, in the order in which they got their first one."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Link]:
        """The links on which a message waits."""
        return iter(self._waiting)

    def carry(self, link: Link, deliver: Deliver) -> None:
        """Take a message from the network."""
        if link.source == CONTROLLER:
            self.controller_speaks()
        queue = self._waiting.get(link)
        if queue is None:
            self._waiting[link] = deque((deliver,))
        else:
            queue.append(deliver)

    def deliver(self, link: Link) -> bool:
        """Let the oldest message of a link arrive; what comes of it is left to the scheduler.

        :returns: Whether there was one.
        """
        queue = self._waiting.get(link)
        if queue is None:
            return False
        arrive = queue.popleft()
        if not queue:
            del self._waiting[link]
        arrive()
        return True

    def first(self) -> Link | None:
        """The link that has waited longest of those with messages, as far as one can say."""
        return next(iter(self._waiting), None)


def _unheard() -> None:
    """Nobody listens."""
