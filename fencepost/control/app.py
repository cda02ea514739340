"""The control API over HTTP, as an ASGI application."""

from functools import cache
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute

from fencepost.broker.server.server import Server
from fencepost.control import errors, routes, routes_faults, routes_plain, routes_seen, routes_tier
from fencepost.control.feed import Feed
from fencepost.control.routing import router
from fencepost.verbs.described import models

API_VERSION: Final = "1"
ROUTES: Final = (routes, routes_faults, routes_plain, routes_seen, routes_tier)
"""Modules that fill the router."""
_DESCRIPTION: Final = (
    "What a test can see of a cluster and do to it. A request that changes something is answered "
    "when its effect is complete."
)


def create_app(server: Server) -> FastAPI:
    """The control API of a served cluster."""
    app = _bare_app()
    app.state.server = server
    app.state.feed = Feed(server.cluster.events)
    errors.install(app, router.routes)
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
    made = {model.__name__: model for model in models()}
    for name, schema in document["components"]["schemas"].items():
        if "examples" in schema:
            schema["examples"] = made[name].model_json_schema()["examples"]
    return document


def _operation_id(route: APIRoute) -> str:
    return route.name
