"""The control API over HTTP: an ASGI application, and how it is served.

Here are also the routes that are no verbs: the page at ``/``, for Prometheus ``/metrics``, and
``/openapi.json``. The page is one file, without frameworks and without resources of other hosts. It
uses the control API as any other client does.

A test uses few of the verbs, so the modules of routes are imported when one of theirs is first
called, in a thread while the loop goes on. `fencepost.control.http_server` serves the application
in the cluster's event loop.
"""

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.json import encode

from fencepost.broker.core.events import Kind
from fencepost.broker.server.server import Server
from fencepost.control import error_answers, http_server
from fencepost.control.access import Access
from fencepost.control.asgi import (
    Control,
    Message,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    TextStream,
)
from fencepost.control.guard import Guard
from fencepost.control.http_connection import Serving
from fencepost.control.lazy_app import LOOPBACK
from fencepost.control.limits import BodyLimit
from fencepost.control.off_loop import off_loop
from fencepost.control.request_binding import bind
from fencepost.control.routing import OPERATIONS, Operation
from fencepost.verbs.catalogue import VERBS, Verb

_Answer: TypeAlias = Response | TextStream
_Endpoint: TypeAlias = Callable[[Request], Awaitable[_Answer]]
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_JSON: Final = "application/json"
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The page may load nothing from other hosts, and no other page may show it within itself."""


# -- what is no verb ----------------------------------------------------------------------------


@cache
def page() -> str:
    """The page, with the lists of the server that its script needs."""
    from fencepost.verbs.fault_bodies import FaultAction

    lists = {
        '["the kinds of events"]': list(Kind),
        '["the actions of faults"]': list(FaultAction.model_fields),
        '["the actions that take no value"]': FaultAction.words(),
    }
    text = Path(__file__).with_name("page.html").read_text("utf-8")
    for place, names in lists.items():
        text = text.replace(place, json.dumps(names))
    return text


async def _page(_request: Request) -> Response:
    """The page, with a policy that lets it load nothing from elsewhere."""
    content = await off_loop(page)
    return Response(
        content=content.encode(),
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": POLICY},
    )


async def _metrics(request: Request) -> Response:
    """The metrics of the cluster, of these topics or of all, in Prometheus' text format."""
    # Imported by the first request, and off the loop: it takes a tenth of a second and more.
    await off_loop(import_module, "fencepost.control.metrics")
    from fencepost.control.metrics import exposition

    topics = [value for name, value in request.query() if name == "topic"]
    text = await exposition(request.control.server, topics)
    return Response(content=text, media_type=_METRICS_TYPE)


async def _openapi(_request: Request) -> Response:
    """The description of the control API, the same for every cluster."""
    return Response(content=await asyncio.to_thread(_description), media_type=_JSON)


def _description() -> bytes:
    return Path(__file__).with_name("openapi.json").read_bytes()


# -- verbs --------------------------------------------------------------------------------------


def _endpoint(verb: Verb) -> _Endpoint:
    """Bind the parameters, carry out the verb, and write its answer as JSON."""

    async def endpoint(request: Request) -> _Answer:
        carried = await _operation(verb)
        answer = await carried.function(**await bind(carried, request))
        if isinstance(answer, TextStream):
            return answer
        return Response(content=encode(answer), media_type=_JSON)

    return endpoint


async def _operation(verb: Verb) -> Operation:
    """The operation of a verb. The first time it is imported, which is done off the loop."""
    if verb.name not in _PREPARED:
        _PREPARED[verb.name] = await off_loop(_prepared, verb)
    return _PREPARED[verb.name]


_PREPARED: Final[dict[str, Operation]] = {}
"""The operations that have been called, by the names of their verbs."""


def _prepared(verb: Verb) -> Operation:
    """Import an operation and the models of its request and its answer."""
    _ = verb.request_model, verb.response_model
    return OPERATIONS[verb.name]


# -- routes -------------------------------------------------------------------------------------

_PARAMETER: Final = re.compile(r"{(\w+)}")
_MAY_HAVE_SLASHES: Final = frozenset({"group", "member", "transactional_id"})
"""Parameters of a path that clients choose."""


class _Route(Struct, frozen=True, kw_only=True):
    """What answers the requests to one kind of path."""

    methods: frozenset[str]
    path: str
    """With the names of parameters in braces."""
    beginning: str
    """The path up to its first parameter."""
    endpoint: _Endpoint

    def match(self, path: str) -> Mapping[str, str] | None:
        """The parameters in a request's path; None where it is another path."""
        if not path.startswith(self.beginning):
            return None
        found = _pattern(self.path).fullmatch(path)
        return None if found is None else found.groupdict()


def _routes() -> Iterator[_Route]:
    """The routes of all verbs, and of those that are none."""
    others = {"/openapi.json": _openapi, "/metrics": _metrics, "/": _page}
    for path, endpoint in others.items():
        yield _route(frozenset({"GET", "HEAD"}), path, endpoint)
    for verb in map(VERBS.__getitem__, OPERATIONS):
        yield _route(frozenset({verb.method}), verb.path, _endpoint(verb))


def _route(methods: frozenset[str], path: str, endpoint: _Endpoint) -> _Route:
    return _Route(methods=methods, path=path, beginning=path.partition("{")[0], endpoint=endpoint)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    """Compiled when a request's path first begins like this one."""
    parts = _PARAMETER.split(path)  # text and names in turns
    for index in range(0, len(parts), 2):
        parts[index] = re.escape(parts[index])
    for index in range(1, len(parts), 2):
        kind = "(?s:.*)" if parts[index] in _MAY_HAVE_SLASHES else "[^/]+"
        parts[index] = f"(?P<{parts[index]}>{kind})"
    return re.compile("".join(parts))


ROUTES: Final = tuple(_routes())
"""In the order in which they are tried."""


class ControlApp:
    """The control API of a served cluster, as an ASGI application."""

    def __init__(self, server: Server) -> None:
        self.control = Control(server=server)
        self._limited = BodyLimit(self._answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        :raises Exception: A bug, once it is answered.
        """
        is_started = False

        async def noted(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            await self._limited(scope, receive, noted)
        except Exception as error:
            if not is_started:
                await error_answers.bug(error).send(receive, send)
            raise

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answered(scope, receive)
        except Exception as error:
            refusal = error_answers.refusal(error)
            if refusal is None:
                raise
            answer = refusal
        await answer.send(receive, send)

    async def _answered(self, scope: Scope, receive: Receive) -> _Answer:
        method, path = scope["method"], scope["path"]
        methods: set[str] = set()  # of what is at this path
        for route in ROUTES:
            found = route.match(path)
            if found is None:
                continue
            if method in route.methods:
                return await route.endpoint(
                    Request(
                        control=self.control,
                        scope=scope,
                        receive=receive,
                        path_parameters=found,
                    )
                )
            methods |= route.methods
        asked = f"{method} {path}"
        if methods:
            return error_answers.wrong_method(asked, methods)
        return error_answers.no_route(asked)


def create_app(server: Server) -> ControlApp:
    """The control API of a served cluster."""
    return ControlApp(server)


# -- serving ------------------------------------------------------------------------------------


def prepare(server: Server, host: str = LOOPBACK, token: str | None = None) -> Guard:
    """The app behind its guard. This takes long and does not touch the cluster.

    :param host: What the control API listens on.
    :param token: What a request has to carry, but for ``/healthz``; None where it needs nothing.
    """
    addresses = chain.from_iterable(server.cluster.options.listeners)
    names = {name for each in addresses for name in (each.host, each.advertised_host) if name}
    return Guard(create_app(server), Access({host, *names}, token))


async def serve(guard: Guard, sock: socket.socket, stop: asyncio.Event) -> None:
    """Serve the control API on a listening socket until ``stop`` is set; then close it."""
    app = guard.app
    assert isinstance(app, ControlApp)
    serving = Serving(app=guard, server=app.control.server)
    await http_server.serve(serving, sock, stop, app.control.stop)
