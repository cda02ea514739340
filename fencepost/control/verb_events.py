"""The verbs of a test as events: each that changes something, before the events of its effect.

The arguments are kept with the event, so long texts and lists are shortened.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.server.server import Server
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import UnknownName
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.model import Model

MAX_TEXT: Final = 200
"""Characters of an argument that are kept."""
MAX_ELEMENTS: Final = 10
"""Elements of an array, or fields of an object, that are kept."""
_OF_EVENTS: Final = ("topic", "partition", "broker")
"""Parameters of a path that an event has fields for."""


def recorded(verb: Verb, function: Callable[..., Any]) -> Callable[..., Awaitable[object]]:
    """A route that emits an event before it carries out its verb, and one where it is refused."""

    @wraps(function)
    async def record_and_call(**given: object) -> object:
        server = given["server"]
        assert isinstance(server, Server)
        emit = server.cluster.events.emit
        where, details = _described(verb, given)
        emit(Kind.VERB, **where, **details)
        try:
            return await function(**given)
        except (ControllerError, UnknownName) as error:
            code = error.code if isinstance(error, ControllerError) else ErrorCode.INVALID_REQUEST
            emit(Kind.VERB_REFUSED, **where, **details, error=code.name, message=str(error))
            raise

    return record_and_call


def _described(verb: Verb, given: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where a verb acts, and its other arguments, as far as they were given."""
    path = {name: given[name] for name in verb.path_parameters}
    where = {name: value for name, value in path.items() if name in _OF_EVENTS}
    arguments = {name: value for name, value in path.items() if name not in _OF_EVENTS}
    body = given.get("body")
    if isinstance(body, Model):
        arguments |= body.model_dump(mode="json", exclude_defaults=True)
    return where, {"verb": verb.name, "arguments": shortened(arguments)}


def shortened(value: object) -> object:
    """A value of JSON without what a line has no room for."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}..."
    if isinstance(value, Mapping):
        kept = list(value.items())[:MAX_ELEMENTS]
        more = {"...": len(value) - len(kept)} if len(kept) < len(value) else {}
        return {name: shortened(each) for name, each in kept} | more
    if isinstance(value, list | tuple):
        more_elements = [f"... {len(value) - MAX_ELEMENTS}"] if len(value) > MAX_ELEMENTS else []
        return [*map(shortened, value[:MAX_ELEMENTS]), *more_elements]
    return value
