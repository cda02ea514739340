"""The verbs that show events and requests, and that verify these."""

from typing import Final

from fencepost.verbs.catalogue.verb import Method, Shape, Verb

OBSERVATIONS: Final[tuple[Verb, ...]] = (
    Verb(
        name="events",
        method=Method.GET,
        path="/v1/events",
        request="bodies.EventFilter",
        answer="answers.cluster.EventState",
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
        request="bodies.TimelineQuery",
        answer="answers.cluster.TimelineState",
        command="timeline",
        summary="Show verbs, events and requests in one order of time, and the state at the end.",
    ),
    Verb(
        name="trace",
        method=Method.GET,
        path="/v1/trace",
        request="bodies.TraceQuery",
        answer="answers.cluster.ExchangeState",
        shape=Shape.LIST,
        command="trace list",
        summary="Show the last requests and answers, decoded, the oldest first.",
    ),
    Verb(
        name="wait_for_trace",
        method=Method.GET,
        path="/v1/trace/wait",
        request="bodies.TraceWait",
        answer="answers.cluster.ExchangeState",
        command="trace wait",
        summary="Wait for a matching request and its answer.",
    ),
    Verb(
        name="verify",
        method=Method.POST,
        path="/v1/trace/verify",
        request="verify_bodies.VerifyBody",
        answer="answers.verify.Verified",
        command="verify",
        positional=("api",),
        summary="Verify how many matching requests came; refused with the nearest ones.",
    ),
)
