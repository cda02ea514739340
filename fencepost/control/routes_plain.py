"""What is for people and for Prometheus, and no verb: it answers no JSON."""

import asyncio
from importlib import import_module
from typing import Annotated, Final

from fastapi import Query
from fastapi.responses import HTMLResponse, Response

from fencepost.control.page import PAGE, POLICY
from fencepost.control.routing import Served, router

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", include_in_schema=False)
async def metrics(server: Served, topic: Annotated[list[str] | None, Query()] = None) -> Response:
    # Imported by the first who asks, and off the loop: it takes a tenth of a second and more.
    await asyncio.to_thread(import_module, "fencepost.control.metrics")
    from fencepost.control.metrics import exposition

    return Response(await exposition(server, topic or ()), media_type=_TEXT)


@router.get("/", include_in_schema=False)
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})
