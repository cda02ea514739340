"""Refusals: every one is ``{"error": CODE, "message": TEXT}`` with a status of 4xx.

The code is Kafka's own name of the error where Kafka has one for it.
"""

from collections.abc import Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

from fencepost.broker.core.errors import ControllerError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import UnknownName
from fencepost.verbs.models import problem

_STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.BROKER_ID_NOT_REGISTERED: 404,
    ErrorCode.REPLICA_NOT_AVAILABLE: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: 409,
    ErrorCode.BROKER_NOT_AVAILABLE: 409,
    ErrorCode.REQUEST_TIMED_OUT: 409,
}
"""Every other refusal is 400."""
_NO_OBJECT: Final = (
    "the body is to be a JSON object, sent with the header Content-Type: application/json"
)

_UNREADABLE: Final = "the body is no JSON: it is no UTF-8, or nested too deeply"


def install_error_handlers(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Let the app answer every error in this form.

    :param routes: All that there are, to say what a path allows.
    """
    app.state.routes = routes
    app.add_exception_handler(ControllerError, _refused)
    app.add_exception_handler(UnknownName, _unknown_name)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ControllerError)
    return _answer(_STATUS.get(error.code, 400), error.code.name, error.message)


async def _unknown_name(_request: Request, error: Exception) -> JSONResponse:
    return _answer(400, ErrorCode.INVALID_REQUEST.name, str(error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    message = "; ".join(dict.fromkeys(map(_problem, error.errors())))
    return _answer(400, ErrorCode.INVALID_REQUEST.name, message)


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


def _problem(error: dict[str, Any]) -> str:
    place: Sequence[str | int] = error["loc"]
    kind = error["type"]
    if kind == "json_invalid":
        return f"the body is no JSON: {error['ctx']['error']} at character {place[-1]}"
    if place == ("body",) and kind != "value_error":
        return _NO_OBJECT
    return problem(place[1:], error)


def _methods(request: Request) -> list[str]:
    """What may be done with the path of a request."""
    routes: Sequence[BaseRoute] = request.app.state.routes
    return sorted(
        method
        for route in routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    )
