"""The verbs on the events of the cluster.

All watchers of events read from the ones that are kept, each at its own pace. A watcher that is too
slow misses the oldest and is sent their number; events never wait for a watcher. A stream is text
(the HTML standard, "Server-sent events"): ``id``, ``event`` and ``data`` lines and an empty line
for each event, and at times a comment, which is a line that begins with a colon. Without ``follow``
the answer ends with the events so far, each a line of JSON.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from typing import Annotated, Final

from msgspec import Meta

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Events, Kind
from fencepost.broker.server.server import Server
from fencepost.control import end_state
from fencepost.control.asgi import Request, TextStream
from fencepost.control.message_json import event_state
from fencepost.control.request_binding import read_text
from fencepost.control.routes_journal import read_journal
from fencepost.control.routing import serves
from fencepost.control.timeline import timeline_lines, trimmed
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.cluster import TimelineState
from fencepost.verbs.bodies import MAX_LISTED, EventFilter, TimelineQuery, TraceQuery

MAX_STREAMS: Final = 128
"""How many watchers there may be."""
KEEP_ALIVE_S: Final = 15.0
"""How long a stream is silent at most: longer, and a proxy may close it."""
_COMMENT: Final = ": still here\n\n"
_PORTION: Final = 512
"""How many events are sent before the loop serves others."""
LINES_TYPE: Final = "application/x-ndjson"
STREAM_TYPE: Final = "text/event-stream"
LAST_EVENT_ID: Final = "last-event-id"
"""The header of a browser that connects again."""
LastEventId: Final = Annotated[int, Meta(ge=0)]
"""Its type."""


class EventStream:
    """The streams of the watchers.

    :param events: Their source; it is listened to from the first watcher on.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._is_listening = False
        self._is_closed = False
        self._watchers: set[asyncio.Event] = set()

    def watch(self, since: int | None = None) -> AsyncGenerator[str, None]:
        """A stream of what happens from this call on, until `close`.

        :param since: Begin with the kept events of a higher number.
        :raises ControllerError: THROTTLING_QUOTA_EXCEEDED when there are `MAX_STREAMS` already.
        """
        if len(self._watchers) >= MAX_STREAMS:
            raise ControllerError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"{MAX_STREAMS} streams of events are open already, which is as many as may be",
            )
        if not self._is_listening:
            self._is_listening = True
            self._events.listeners.append(lambda _: self._wake_watchers())
        newest = self._events.newest
        return self._stream(newest if since is None else min(since, newest))

    def close(self) -> None:
        """End every stream: the cluster goes down."""
        self._is_closed = True
        self._wake_watchers()

    async def _stream(self, cursor: int) -> AsyncGenerator[str, None]:
        """The events behind the cursor, and comments while there are none."""
        arrived = asyncio.Event()
        self._watchers.add(arrived)
        try:
            yield _COMMENT
            while not self._is_closed:
                arrived.clear()
                found = self._events.since(cursor)
                if found:
                    yield _server_sent(found)
                    cursor = found[-1].number
                elif not await _wait_for_event(arrived):
                    yield _COMMENT
        finally:
            self._watchers.discard(arrived)

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


def _server_sent(events: Iterable[Event]) -> str:
    lines = []
    for event in events:
        if event.kind is Kind.EVENTS_DROPPED:
            lines.append(f": {event.details['events']} events were missed\n\n")
        data = event_state(event).model_dump_json()
        lines.append(f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n")
    return "".join(lines)


async def _lines(events: list[Event]) -> AsyncGenerator[str, None]:
    for begin in range(0, len(events), _PORTION):
        portion = events[begin : begin + _PORTION]
        yield "".join(f"{event_state(event).model_dump_json()}\n" for event in portion)
        await asyncio.sleep(0)


@serves("events")
async def events(server: Server, request: Request, wanted: EventFilter) -> TextStream:
    if not wanted.follow:
        found = server.cluster.events.since(wanted.since or 0)
        return TextStream(pieces=_lines(found), media_type=LINES_TYPE)
    last = request.header(LAST_EVENT_ID)
    since: int | None = wanted.since
    if last is not None:
        since = read_text(LAST_EVENT_ID, last, LastEventId)
    pieces = _event_stream(request).watch(since)
    return TextStream(pieces=pieces, media_type=f"{STREAM_TYPE}; charset=utf-8")


def _event_stream(request: Request) -> EventStream:
    """The one of the control API, made for its first watcher."""
    control = request.control
    stream = control.event_stream or EventStream(control.server.cluster.events)
    assert isinstance(stream, EventStream)
    control.event_stream = stream
    return stream


# -- the timeline ------------------------------------------------------------------------------


@serves("timeline")
async def timeline(server: Server, wanted: TimelineQuery) -> TimelineState:
    cluster = server.cluster
    events = [event_state(event) for event in cluster.events.since(wanted.since)]
    query = TraceQuery(since=wanted.requests_since, limit=MAX_LISTED)
    exchanges = await read_journal(server.journal, cluster, query)
    left_out: Counter[str] = Counter()
    lines = timeline_lines(events, exchanges, left_out)
    notes = [f"{what}: {count}" for what, count in left_out.items()]
    if len(exchanges) == MAX_LISTED:
        notes.append(f"requests before number {exchanges[0].number}, there are too many")
    return TimelineState(
        seed=cluster.options.seed,
        lines=tuple(trimmed(lines, wanted.limit)),
        left_out=tuple(notes),
        brokers=tuple(end_state.unusual_brokers(cluster)),
        partitions=tuple(end_state.partitions(cluster)),
        groups=tuple(end_state.groups(cluster)),
        transactions=tuple(end_state.transactions(cluster)),
    )
