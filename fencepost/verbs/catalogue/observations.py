"""The verbs that show events and requests, and that verify these."""

from typing import Final

from fencepost.verbs import bodies
from fencepost.verbs.answers.cluster import EventState, ExchangeState, TimelineState
from fencepost.verbs.answers.verify import Verified
from fencepost.verbs.catalogue.verb import Method, Shape, Verb
from fencepost.verbs.verify_bodies import VerifyBody

OBSERVATIONS: Final[tuple[Verb, ...]] = (
    Verb(
        name="events",
        method=Method.GET,
        path="/v1/events",
        request_model=bodies.EventFilter,
        response_model=EventState,
        shape=Shape.STREAM,
        command="events",
        summary=(
            "Stream verbs and changes of state as server-sent events, from now or from a number on."
        ),
    ),
    Verb(
        name="timeline",
        method=Method.GET,
        path="/v1/timeline",
        request_model=bodies.TimelineQuery,
        response_model=TimelineState,
        command="timeline",
        summary="Show verbs, events and requests in one order of time, and the state at the end.",
    ),
    Verb(
        name="trace",
        method=Method.GET,
        path="/v1/trace",
        request_model=bodies.TraceQuery,
        response_model=ExchangeState,
        shape=Shape.LIST,
        command="trace list",
        summary="Show the last requests and answers, decoded, the oldest first.",
    ),
    Verb(
        name="wait_for_trace",
        method=Method.GET,
        path="/v1/trace/wait",
        request_model=bodies.TraceWait,
        response_model=ExchangeState,
        command="trace wait",
        summary="Wait for a matching request and its answer.",
    ),
    Verb(
        name="verify",
        method=Method.POST,
        path="/v1/trace/verify",
        request_model=VerifyBody,
        response_model=Verified,
        command="verify",
        positional=("api",),
        summary="Verify how many matching requests came; refused with the nearest ones.",
    ),
)
