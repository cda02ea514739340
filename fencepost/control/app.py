"""The control API over HTTP, as an ASGI application.

uvicorn in the loop of the cluster: no signals, no access log, no polling of its own.
"""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import Generator
from functools import cache
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute

from fencepost.broker.server import logs
from fencepost.broker.server.server import Server
from fencepost.control import (
    errors,
    routes_cluster,
    routes_faults,
    routes_journal,
    routes_misc,
    routes_tier,
)
from fencepost.control.event_stream import EventStream
from fencepost.control.routing import router
from fencepost.verbs.models import all_models

API_VERSION: Final = "1"
ROUTES: Final = (routes_cluster, routes_faults, routes_misc, routes_journal, routes_tier)
"""Modules that fill the router."""
_DESCRIPTION: Final = (
    "What a test can see of a cluster and do to it. A request that changes something is answered "
    "when its effect is complete."
)


def create_app(server: Server) -> FastAPI:
    """The control API of a served cluster."""
    app = _bare_app()
    app.state.server = server
    app.state.feed = EventStream(server.cluster.events)
    errors.install_error_handlers(app, router.routes)
    app.middleware_stack = app.build_middleware_stack()
    app.openapi = _description  # type: ignore[method-assign]  # FastAPI's own way to change it
    _description()
    return app


def _bare_app() -> FastAPI:
    app = FastAPI(
        title="fencepost",
        version=API_VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.include_router(router)
    return app


@cache
def _description() -> dict[str, Any]:
    """The OpenAPI document, the same for every cluster, with what FastAPI gets wrong set right.

    It drops the nulls in examples, and has a stream's refusals be streams too.
    """
    document = _bare_app().openapi()
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"]["4XX"]["content"]
            content["application/json"] = content.pop(next(iter(content)))
    made = {model.__name__: model for model in all_models()}
    for name, schema in document["components"]["schemas"].items():
        if "examples" in schema:
            schema["examples"] = made[name].model_json_schema()["examples"]
    return document


def _operation_id(route: APIRoute) -> str:
    return route.name


_KEEP_ALIVE_S: Final = 600
"""A test may be busy for long between two requests; its connection is to be there still."""
_GRACE_S: Final = 1
"""What a request that is being answered gets when the cluster stops."""


def prepare(server: Server) -> uvicorn.Config:
    """The app and all that serving it needs; it takes long, and touches nothing of the cluster."""
    config = uvicorn.Config(
        create_app(server),
        access_log=False,
        date_header=False,
        http="h11",
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
    gc.freeze()  # what was imported and made so far lives as long as the process
    await _UvicornServer(config, stop).serve(sockets=[sock])


class _UvicornServer(uvicorn.Server):
    """A server among others: signals are the process's, and it ends with an event."""

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
        app = self.config.app
        assert isinstance(app, FastAPI)
        app.state.feed.close()  # streams end by themselves, and are not waited for


class _LogForwarder(logging.Handler):
    """Hands what uvicorn has to say to fencepost's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line, and the exception that it is about."""
        logs.logger(part="control").log(
            record.levelno, "http", detail=record.getMessage(), exc_info=record.exc_info
        )


def _forward_logs(logger: logging.Logger) -> None:
    logger.handlers = [_LogForwarder()]
    logger.propagate = False
