"""The routes that are no verbs and answer no JSON: the page at ``/``, and ``/metrics``.

The page is one file, without frameworks and without resources of other hosts. It uses the control
API as any other client does. ``/metrics`` is for Prometheus.
"""

import asyncio
import json
from importlib import import_module
from importlib.resources import files
from typing import Annotated, Final

from fastapi import Query
from fastapi.responses import HTMLResponse, Response

from fencepost.broker.core.events import Kind
from fencepost.control.routing import Served, router
from fencepost.verbs.bodies import FaultAction

_LISTS: Final = {
    '["the kinds of events"]': list(Kind),
    '["the actions of faults"]': list(FaultAction.model_fields),
    '["the actions that take no value"]': FaultAction.words(),
}
"""Lists of the server that the page's script needs, by the placeholder in the file."""


def _page() -> str:
    text = files("fencepost.control").joinpath("page.html").read_text("utf-8")
    for place, names in _LISTS.items():
        text = text.replace(place, json.dumps(names))
    return text


PAGE: Final = _page()
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The page may load nothing from other hosts, and no other page may show it within itself."""


_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", include_in_schema=False)
async def metrics(server: Served, topic: Annotated[list[str] | None, Query()] = None) -> Response:
    # Imported by the first request, and off the loop: it takes a tenth of a second and more.
    await asyncio.to_thread(import_module, "fencepost.control.metrics")
    from fencepost.control.metrics import exposition

    return Response(await exposition(server, topic or ()), media_type=_TEXT)


@router.get("/", include_in_schema=False)
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY})
