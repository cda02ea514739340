"""The control API over HTTP: an ASGI application, its error answers, and uvicorn that serves it.

Here are also the routes that are no verbs: the page at ``/`` and, for Prometheus, ``/metrics``. The
page is one file, without frameworks and without resources of other hosts. It uses the control API
as any other client does.

uvicorn runs in the cluster's event loop: no signals, no access log, no polling of its own. Every
error is ``{"error": CODE, "message": TEXT}`` with a status of 4xx, or of 500 for a bug. The code is
Kafka's name of the error where Kafka has one for it.
"""

import asyncio
import contextlib
import gc
import json
import logging
import socket
from collections.abc import Callable, Coroutine, Generator
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import chain
from typing import Any, Final, TypeAlias

import uvicorn
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match, Route

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.server import logs
from fencepost.broker.server.server import Server
from fencepost.control import (
    routes_cluster,
    routes_events,
    routes_faults,
    routes_groups,
    routes_journal,
    routes_records,
    routes_tier,
    routes_transactions,
    routes_verify,
)
from fencepost.control.access import Access
from fencepost.control.guard import Guard
from fencepost.control.lazy_app import LOOPBACK
from fencepost.control.limits import MAX_HEAD_BYTES, BodyLimit, LimitedProtocol
from fencepost.control.request_binding import InvalidRequest, bind
from fencepost.control.routes_events import EventStream
from fencepost.control.routing import OPERATIONS, Operation, Unmet
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import UnknownName
from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import FaultAction
from fencepost.verbs.catalogue import Shape

ROUTES: Final = (
    routes_cluster,
    routes_events,
    routes_faults,
    routes_groups,
    routes_journal,
    routes_records,
    routes_tier,
    routes_transactions,
    routes_verify,
)
"""Modules that fill `OPERATIONS`."""
_PAGE_LISTS: Final = {
    '["the kinds of events"]': list(Kind),
    '["the actions of faults"]': list(FaultAction.model_fields),
    '["the actions that take no value"]': FaultAction.words(),
}
"""Lists of the server that the page's script needs, by the placeholder in the file."""
_Endpoint: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def _page() -> str:
    text = files("fencepost.control").joinpath("page.html").read_text("utf-8")
    for place, names in _PAGE_LISTS.items():
        text = text.replace(place, json.dumps(names))
    return text


PAGE: Final = _page()
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The page may load nothing from other hosts, and no other page may show it within itself."""


async def metrics(request: Request) -> Response:
    """The metrics of the cluster, of these topics or of all, in Prometheus' text format."""
    # Imported by the first request, and off the loop: it takes a tenth of a second and more.
    await asyncio.to_thread(import_module, "fencepost.control.metrics")
    from fencepost.control.metrics import exposition

    topics = request.query_params.getlist("topic")
    return Response(await exposition(request.app.state.server, topics), media_type=_METRICS_TYPE)


async def page(_request: Request) -> HTMLResponse:
    """The page, with a policy that lets it load nothing from elsewhere."""
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})


async def openapi(_request: Request) -> Response:
    """The description of the control API, the same for every cluster."""
    return JSONResponse(await asyncio.to_thread(_description))


def _description() -> dict[str, Any]:
    from fencepost.control.openapi import description

    return description()


def routes() -> list[Route]:
    """The routes of all verbs, and of those that are none."""
    made = [Route("/openapi.json", openapi), Route("/metrics", metrics), Route("/", page)]
    return made + [_route(operation) for operation in OPERATIONS.values()]


def _route(operation: Operation) -> Route:
    verb = operation.verb
    path = verb.path.format_map({each: _parameter(each) for each in verb.path_parameters})
    route = Route(path, _endpoint(operation), methods=[verb.method], name=verb.name)
    route.methods = {verb.method}  # and not HEAD with GET
    return route


_MAY_HAVE_SLASHES: Final = frozenset({"group", "member", "transactional_id"})


def _parameter(name: str) -> str:
    """A parameter in a route's path: the names that clients choose may have slashes."""
    return f"{{{name}:path}}" if name in _MAY_HAVE_SLASHES else f"{{{name}}}"


def _endpoint(operation: Operation) -> _Endpoint:
    """Bind the parameters, carry out the verb, and write its answer as JSON."""
    verb = operation.verb

    async def endpoint(request: Request) -> Response:
        answer = await operation.function(**await bind(operation, request))
        if verb.shape is Shape.STREAM:
            assert isinstance(answer, Response)
            return answer
        content = _answers(verb.response_model, verb.shape).dump_json(answer, by_alias=True)
        return Response(content, media_type="application/json")

    return endpoint


@cache
def _answers(model: type[Answer], shape: Shape) -> TypeAdapter[Any]:
    return TypeAdapter(model if shape is Shape.ONE else list[model])  # type: ignore[valid-type]  # a type made here


def create_app(server: Server) -> Starlette:
    """The control API of a served cluster."""
    app = Starlette(
        routes=routes(),
        middleware=[Middleware(BodyLimit)],
        exception_handlers={
            ControllerError: _refused,
            UnknownName: _invalid,
            InvalidRequest: _invalid,
            HTTPException: _http,
            Exception: _bug,
        },
    )
    app.router.redirect_slashes = False
    app.state.server = server
    app.state.event_stream = EventStream(server.cluster.events)
    app.state.stopping = asyncio.Event()
    app.middleware_stack = app.build_middleware_stack()
    return app


_KEEP_ALIVE_S: Final = 600
"""A test may pause for long between two requests, and its connection has to stay open."""
_GRACE_S: Final = 1
"""How long a request that is being answered may take when the cluster stops."""


def prepare(server: Server, host: str = LOOPBACK, token: str | None = None) -> uvicorn.Config:
    """The app and the configuration of uvicorn. This takes long and does not touch the cluster.

    :param host: What the control API listens on.
    :param token: What a request has to carry, but for ``/healthz``; None where it needs nothing.
    """
    app = create_app(server)
    addresses = chain.from_iterable(server.cluster.options.listeners)
    names = {name for each in addresses for name in (each.host, each.advertised_host) if name}
    config = uvicorn.Config(
        Guard(app, Access({host, *names}, token)),
        access_log=False,
        date_header=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        http=LimitedProtocol,
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="warning",
        loop="none",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        ws="none",
    )
    config.load()
    _forward_logs(logging.getLogger("uvicorn.error"))
    return config


async def serve(config: uvicorn.Config, sock: socket.socket, stop: asyncio.Event) -> None:
    """Serve the control API on a listening socket until ``stop`` is set; then close it."""
    gc.freeze()  # all objects so far live as long as the process
    await _UvicornServer(config, stop).serve(sockets=[sock])


class _UvicornServer(uvicorn.Server):
    """A uvicorn server that leaves signals to the process and stops when an event is set."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none: the process of the cluster has handlers for them."""
        yield

    async def main_loop(self) -> None:
        """Wait for the event, where uvicorn would look ten times a second."""
        await self._stop.wait()
        guard = self.config.app
        assert isinstance(guard, Guard)
        assert isinstance(guard.app, Starlette)
        # Streams and requests that wait end by themselves; uvicorn would cancel them, and log it.
        guard.app.state.event_stream.close()
        guard.app.state.stopping.set()


class _LogForwarder(logging.Handler):
    """Writes uvicorn's messages to fencepost's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, and the exception that it reports."""
        logs.logger("fencepost.control", part="control").log(
            record.levelno, "http", detail=record.getMessage(), exc_info=record.exc_info
        )


def _forward_logs(logger: logging.Logger) -> None:
    logger.handlers = [_LogForwarder()]
    logger.propagate = False


# -- error answers -----------------------------------------------------------------------------

_STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.BROKER_ID_NOT_REGISTERED: 404,
    ErrorCode.REPLICA_NOT_AVAILABLE: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.UNKNOWN_MEMBER_ID: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: 409,
    ErrorCode.BROKER_NOT_AVAILABLE: 409,
    ErrorCode.LEADER_NOT_AVAILABLE: 409,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: 409,
    ErrorCode.NOT_COORDINATOR: 409,
    ErrorCode.NOT_ENOUGH_REPLICAS: 409,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 409,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 409,
    ErrorCode.REQUEST_TIMED_OUT: 409,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
}
"""Every other refusal is 400."""
_UNREADABLE: Final = "the body is no JSON: it is no UTF-8, or nested too deeply"


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ControllerError)
    if isinstance(error, Unmet):
        return JSONResponse(error.answer.model_dump(mode="json"), 409)
    return _answer(_STATUS.get(error.code, 400), error.code.name, error.message)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    return _answer(400, ErrorCode.INVALID_REQUEST.name, str(error))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"
    if error.status_code == 404:
        return _answer(404, "NOT_FOUND", f"there is no {asked}; what there is: GET /openapi.json")
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        message = f"there is no {asked}, only {allowed}"
        return _answer(405, "METHOD_NOT_ALLOWED", message, {"allow": allowed})
    return _answer(error.status_code, ErrorCode.INVALID_REQUEST.name, _UNREADABLE)


async def _bug(_request: Request, error: Exception) -> JSONResponse:
    """The only answer of 5xx. Starlette raises the error again, and so it is logged."""
    text = f"this is a bug in fencepost, its log has more: {type(error).__name__}: {error}"
    return _answer(500, ErrorCode.UNKNOWN_SERVER_ERROR.name, text)


def _answer(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    # A name in the message may hold what has no UTF-8: JSON can write lone surrogates.
    readable = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": code, "message": readable}, status, headers)


def _methods(request: Request) -> list[str]:
    """What may be done with the path of a request."""
    return sorted(
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    )
