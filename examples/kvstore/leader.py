"""How clients' operations get into a shard's log, and their results out of it.

The leader has read the log up to an offset, its upcoming one. It appends operations on condition
that the log still ends there, one batch at a time. Success shows two things: the operations are in
the log, and nothing is there that the leader has not read. So what it computes on its copy is
right, for reads as well: they are answered when the batch that they came with is appended, and a
batch of reads alone appends a barrier. A leader that was superseded while it did not look can
append nothing, and so it can answer nothing. To read its copy without asking the log would be
quicker, and wrong.

Where an append is refused, or its outcome is not known, the leader reads on. Entries have ids: it
recognizes its own, and answers them. The others it appends again, where it has read to. That puts
no operation into the log twice. All attempts before were made on condition that the log ends here
or at an offset that is taken by now: at most one of them succeeds, and where that was one of
before, this one is refused and the entry will be read.
"""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Final

from examples.kvstore.records import Entry
from examples.kvstore.replica import Replica
from examples.kvstore.state import Operation, Result
from examples.kvstore.wal import NotConfirmed, Wal

MAX_BATCH: Final = 100
"""Operations in one append."""
NEWS_MS: Final = 100
"""How long to wait for the entries that were in the way: they may not be safe to read yet."""
_NEVER: Final = -1


class NotDone(Exception):
    """The operation is not in the log, and never will be."""


class Unknown(Exception):
    """The operation may be in the log, or get there yet."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """An operation that has no result yet."""

    entry: Entry
    operation: Operation
    result: asyncio.Future[Result]
    place: int = _NEVER
    """The highest offset that it would have by an attempt to append it."""


class Leader:
    """Leads a shard, or believes so.

    :param replica: Its copy of the shard, which no other task changes meanwhile.
    :param name: Of no other leader, now or ever.
    """

    def __init__(self, replica: Replica, wal: Wal, name: str) -> None:
        self._replica = replica
        self._wal = wal
        self._ids = (f"{name}-{number}" for number in itertools.count(1))
        self._waiting: dict[str, _Waiting] = {}
        """By the ids of their entries, in the order in which they came."""
        self._arrived = asyncio.Event()
        self._ended = False

    async def do(self, operation: Operation, patience_s: float) -> Result:
        """Carry an operation out, and wait for its result.

        :raises NotDone: When it was not carried out and never will be.
        :raises Unknown: When that could not be learnt in time.
        """
        if self._ended:
            raise NotDone("this node leads the shard no longer")
        entry = Entry(id=next(self._ids), operation=operation)
        one = _Waiting(entry, operation, asyncio.get_running_loop().create_future())
        self._waiting[entry.id] = one
        self._arrived.set()
        try:
            # Not asyncio.timeout: it cancels what may get a result before its waiter hears of that.
            await asyncio.wait([one.result], timeout=patience_s)
            if one.result.done():
                return one.result.result()
            raise self._without_result(one, f"no result within {patience_s:g} s")
        finally:
            self._waiting.pop(entry.id, None)

    async def lead(self) -> None:
        """Bootstrap, then serve until it is cancelled; who waits then is told so."""
        try:
            await self._replica.catch_up(self._wal)
            while True:
                await self._arrived.wait()
                await self._append_next()
        finally:
            self._ended = True
            for one in self._waiting.values():
                if not one.result.done():
                    why = "this node stopped leading the shard"
                    one.result.set_exception(self._without_result(one, why))

    async def _append_next(self) -> None:
        batch = tuple(itertools.islice(self._waiting.values(), MAX_BATCH))
        if not batch:
            self._arrived.clear()
            return
        expected, writes = self._replica.upcoming, [one for one in batch if one.operation.writes]
        entries = [one.entry for one in writes] or [Entry(id=next(self._ids), operation=None)]
        for offset, one in enumerate(writes, start=expected):
            one.place = max(one.place, offset)
        try:
            await self._wal.append(expected, entries)
        except NotConfirmed:
            await self._replica.catch_up(self._wal, wait_ms=NEWS_MS, seen=self._settle)
            return
        self._replica.upcoming += len(entries)
        for one in batch:
            self._settle(one.entry, self._replica.apply(one.operation))

    def _settle(self, entry: Entry, result: Result | None) -> None:
        """Answer the client whose operation an entry is, if it is one of here."""
        one = self._waiting.pop(entry.id, None)
        if one is not None and result is not None and not one.result.done():
            one.result.set_result(result)

    def _without_result(self, one: _Waiting, why: str) -> Exception:
        """What to tell a client who got no result: an offset that was read holds no surprise."""
        return Unknown(why) if one.place >= self._replica.upcoming else NotDone(why)
