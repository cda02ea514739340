"""The cluster's events as a stream of server-sent events.

All watchers read from one queue of the last events, each at its own pace. A watcher that is too
slow misses the oldest and is sent their number; events never wait for a watcher. Events are kept
from the first watcher on, so that a client that was disconnected can resume.

A stream is text (the HTML standard, "Server-sent events"): ``id``, ``event`` and ``data`` lines and
an empty line for each event, and at times a comment, which is a line that begins with a colon.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from fencepost.broker.core.events import Event, Events
from fencepost.control.message_json import event_state

MAX_KEPT: Final = 4096
"""How many events a watcher may be behind."""
KEEP_ALIVE_S: Final = 15.0
"""How long a stream is silent at most: longer, and a proxy may close it."""
_COMMENT: Final = ": still here\n\n"


class EventStream:
    """The last events of a cluster, numbered.

    :param events: Their source; it is listened to from the first watcher on.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._kept: deque[tuple[int, Event]] = deque(maxlen=MAX_KEPT)
        self._newest = 0
        self._is_listening = False
        self._is_closed = False
        self._watchers: set[asyncio.Event] = set()

    def watch(self, since: int | None = None) -> AsyncIterator[str]:
        """A stream of what happens from this call on, until `close`.

        :param since: Begin with the kept events of a higher number.
        """
        if not self._is_listening:
            self._is_listening = True
            self._events.listeners.append(self._append)
        return self._stream(self._newest if since is None else min(since, self._newest))

    def close(self) -> None:
        """End every stream: the cluster goes down."""
        self._is_closed = True
        self._wake_watchers()

    async def _stream(self, cursor: int) -> AsyncIterator[str]:
        """The events behind the cursor, and comments while there are none."""
        arrived = asyncio.Event()
        self._watchers.add(arrived)
        try:
            yield _COMMENT
            while not self._is_closed:
                arrived.clear()
                found = self._after(cursor)
                if found:
                    yield _text(found, lost=found[0][0] - cursor - 1)
                    cursor = found[-1][0]
                elif not await _wait_for_event(arrived):
                    yield _COMMENT
        finally:
            self._watchers.discard(arrived)

    def _after(self, cursor: int) -> list[tuple[int, Event]]:
        unseen = min(self._newest - cursor, len(self._kept))
        return list(islice(self._kept, len(self._kept) - unseen, None))

    def _append(self, event: Event) -> None:
        self._newest += 1
        self._kept.append((self._newest, event))
        self._wake_watchers()

    def _wake_watchers(self) -> None:
        for watcher in self._watchers:
            watcher.set()


async def _wait_for_event(arrived: asyncio.Event) -> bool:
    """Wait for an event; False when none comes for `KEEP_ALIVE_S`."""
    try:
        async with asyncio.timeout(KEEP_ALIVE_S):
            await arrived.wait()
    except TimeoutError:
        return False
    return True


def _text(events: list[tuple[int, Event]], *, lost: int) -> str:
    lines = [f": {lost} events were missed\n\n"] if lost else []
    for number, event in events:
        data = event_state(number, event).model_dump_json()
        lines.append(f"id: {number}\nevent: {event.kind}\ndata: {data}\n\n")
    return "".join(lines)
