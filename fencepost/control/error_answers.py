"""The error answers of the control API: ``{"error": CODE, "message": TEXT}`` with their status.

The status is one of 4xx, or 500 for a bug. The code is Kafka's name of the error where Kafka has
one for it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.control.asgi import Response, json_response
from fencepost.control.request_binding import InvalidRequest, Unreadable
from fencepost.control.routing import Unmet
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import UnknownName

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


def refusal(error: Exception) -> Response | None:
    """The answer to a request that is refused; None where the error is a bug."""
    match error:
        case Unmet():
            return json_response(error.answer.model_dump(mode="json"), 409)
        case ControllerError():
            return _answer(_STATUS.get(error.code, 400), error.code.name, error.message)
        case UnknownName() | InvalidRequest():
            return _answer(400, ErrorCode.INVALID_REQUEST.name, str(error))
        case Unreadable():
            return _answer(400, ErrorCode.INVALID_REQUEST.name, _UNREADABLE)
        case _:
            return None


def no_route(asked: str) -> Response:
    """Nothing is there.

    :param asked: Method and path.
    """
    message = f"there is no {asked}; what there is: GET /openapi.json"
    return _answer(404, "NOT_FOUND", message)


def wrong_method(asked: str, methods: Iterable[str]) -> Response:
    """Something is there, for other methods.

    :param asked: Method and path.
    """
    allowed = ", ".join(sorted(methods))
    message = f"there is no {asked}, only {allowed}"
    return _answer(405, "METHOD_NOT_ALLOWED", message, {"allow": allowed})


def bug(error: Exception) -> Response:
    """The only answer of 5xx."""
    text = f"this is a bug in fencepost, its log has more: {type(error).__name__}: {error}"
    return _answer(500, ErrorCode.UNKNOWN_SERVER_ERROR.name, text)


def _answer(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    # A name in the message may hold what has no UTF-8: JSON can write lone surrogates.
    readable = message.encode("utf-8", "replace").decode()
    return json_response({"error": code, "message": readable}, status, headers)
