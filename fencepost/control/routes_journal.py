"""What can be seen of what happened: the journal and the stream of events."""

from typing import Annotated

from fastapi import Depends, Header, Query, Request
from fastapi.responses import StreamingResponse

from fencepost.broker.core.errors import ControllerError
from fencepost.control.event_stream import EventStream
from fencepost.control.journal import ExchangeFilter, next_exchange, read_journal
from fencepost.control.routing import Served, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.journal import EventState, ExchangeState
from fencepost.verbs.bodies import EventFilter, TraceQuery, TraceWait


async def _event_stream(request: Request) -> EventStream:
    feed: EventStream = request.app.state.feed
    return feed


class _EventStreamResponse(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


@serves(
    "events",
    response_class=_EventStreamResponse,
    responses={200: {"model": EventState, "description": "The data of each event"}},
)
async def events(
    feed: Annotated[EventStream, Depends(_event_stream)],
    wanted: Annotated[EventFilter, Query()],
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> StreamingResponse:
    since = wanted.since if last_event_id is None else last_event_id
    return _EventStreamResponse(feed.watch(since))


@serves("trace")
async def trace(server: Served, wanted: Annotated[TraceQuery, Query()]) -> list[ExchangeState]:
    return await read_journal(server.journal, server.cluster, wanted)


@serves("wait_for_trace")
async def wait_for_trace(
    server: Served, request: Request, wanted: Annotated[TraceWait, Query()]
) -> ExchangeState:
    sieve, journal, before = (
        ExchangeFilter(wanted, server.cluster),
        server.journal,
        server.journal.newest,
    )
    found = await wait_within(wanted.timeout_ms, request, next_exchange(journal, sieve))
    if found is None:
        others = journal.newest - before
        raise ControllerError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"no {str(sieve).removeprefix('a ')} was answered within {wanted.timeout_ms} ms; "
            f"of other requests {others} came meanwhile",
        )
    return found
