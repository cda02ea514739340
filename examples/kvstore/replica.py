"""The state that a shard's log comes to, as far as it is read."""

from collections.abc import Callable
from typing import Final

from examples.kvstore.records import Entry
from examples.kvstore.state import Operation, Result, State
from examples.kvstore.wal import Wal

FOLLOW_MS: Final = 500
"""How long one request of a follower waits for news."""


def _ignore(_entry: Entry, _result: Result | None) -> None:
    """What most readers do with an entry that is applied."""


class Replica:
    """A copy of a shard."""

    def __init__(self) -> None:
        self._state = State()
        self.upcoming = 0
        """The offset of the next entry; all before it are applied."""

    async def catch_up(
        self,
        wal: Wal,
        *,
        wait_ms: int = 0,
        seen: Callable[[Entry, Result | None], None] = _ignore,
    ) -> None:
        """Read on to the end of the log, and apply its entries.

        :param wait_ms: How long to wait for an entry, where there is none.
        :param seen: Told of each entry and what came of it; of a barrier comes nothing.
        """
        while True:
            stretch = await wal.read(self.upcoming, wait_ms)
            for entry in stretch.entries:
                result = None if entry.operation is None else self.apply(entry.operation)
                seen(entry, result)
            self.upcoming = stretch.next_offset
            if self.upcoming >= stretch.end:
                return
            wait_ms = 0

    async def follow(self, wal: Wal) -> None:
        """Apply whatever is appended, until it is cancelled."""
        while True:
            await self.catch_up(wal, wait_ms=FOLLOW_MS)

    def apply(self, operation: Operation) -> Result:
        """Carry an operation out on this copy: one that is in the log here, or a read."""
        return self._state.apply(operation)
