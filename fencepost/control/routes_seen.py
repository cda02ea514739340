"""What can be seen of what happened: the journal and the stream of events."""

from typing import Annotated

from fastapi import Depends, Header, Query, Request
from fastapi.responses import StreamingResponse

from fencepost.broker.refusals import ControllerError
from fencepost.control.feed import Feed
from fencepost.control.routing import Served, serves
from fencepost.control.trace import Sieve, next_exchange, read_journal
from fencepost.control.waiting import within
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.seen import EventState, ExchangeState
from fencepost.verbs.bodies import EventFilter, TraceQuery, TraceWait


async def _feed(request: Request) -> Feed:
    feed: Feed = request.app.state.feed
    return feed


class _EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


@serves(
    "events",
    response_class=_EventStream,
    responses={200: {"model": EventState, "description": "The data of each event"}},
)
async def events(
    feed: Annotated[Feed, Depends(_feed)],
    wanted: Annotated[EventFilter, Query()],
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> StreamingResponse:
    since = wanted.since if last_event_id is None else last_event_id
    return _EventStream(feed.watch(since))


@serves("trace")
async def trace(server: Served, wanted: Annotated[TraceQuery, Query()]) -> list[ExchangeState]:
    return await read_journal(server.journal, server.cluster, wanted)


@serves("wait_for_trace")
async def wait_for_trace(
    server: Served, request: Request, wanted: Annotated[TraceWait, Query()]
) -> ExchangeState:
    sieve, journal, before = Sieve(wanted, server.cluster), server.journal, server.journal.newest
    found = await within(wanted.timeout_ms, request, next_exchange(journal, sieve))
    if found is None:
        others = journal.newest - before
        raise ControllerError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"no {str(sieve).removeprefix('a ')} was answered within {wanted.timeout_ms} ms; "
            f"of other requests {others} came meanwhile",
        )
    return found
