"""The parameters of the function that carries out a verb, read from an HTTP request.

Their names say where each comes from: ``server``, ``host`` (this server's own address, as the
client has connected to it), ``request``; the parameters of the path, as the catalogue types them;
``body`` (a POST's) and ``wanted`` (a GET's query), both of the verb's request model.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fencepost.control.asgi import Request
from fencepost.control.routing import Carrier, Operation
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import PATH_TYPES
from fencepost.verbs.problems import InvalidModel, Problem
from fencepost.verbs.reading import read_value

BODY: Final = "body"
QUERY: Final = "wanted"
_OF_REQUEST: Final[Mapping[str, Callable[[Request], object]]] = {
    "server": lambda request: request.control.server,
    "host": lambda request: request.local_host,
    "request": lambda request: request,
}
_NO_OBJECT: Final = (
    "the body is to be a JSON object, sent with the header Content-Type: application/json"
)


class Unreadable(Exception):
    """A body is no text, or is nested too deeply."""


class InvalidRequest(Exception):
    """A request has wrong parameters. Its text names every one of them."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__("; ".join(dict.fromkeys(texts)))


def parameters(function: Carrier) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function that carries out a verb."""
    return inspect.signature(function).parameters


async def bind(operation: Operation, request: Request) -> dict[str, object]:
    """The arguments for an operation's function.

    :raises InvalidRequest: Where some are missing or wrong.
    :raises Unreadable: Where the body is no text, or nested too deeply.
    """
    bound: dict[str, object] = {}
    wrong: list[str] = []
    model = operation.verb.request_model
    for name, parameter in parameters(operation.function).items():
        try:
            if name in _OF_REQUEST:
                bound[name] = _OF_REQUEST[name](request)
            elif name in PATH_TYPES:
                bound[name] = read_text(name, request.path_parameters[name], PATH_TYPES[name])
            elif name == QUERY:
                assert model is not None
                bound[name] = _read_query(model, request)
            else:
                assert name == BODY
                assert model is not None
                optional = parameter.default is not parameter.empty
                found = await _read_body(model, request, optional=optional)
                bound |= {} if found is None else {name: found}
        except InvalidRequest as error:
            wrong.append(str(error))
    if wrong:
        raise InvalidRequest(wrong)
    return bound


def read_text(name: str, text: str, kind: object) -> Any:  # noqa: ANN401  # of this type
    """A parameter that HTTP has as text.

    :raises InvalidRequest: Where it is not of this type.
    """
    try:
        return read_value(kind, text, (name,))
    except InvalidModel as error:
        raise InvalidRequest(each.line for each in error.problems) from None


def _read_query(model: type[Body], request: Request) -> Body:
    try:
        return model.model_validate(dict(request.query()))
    except InvalidModel as error:
        raise InvalidRequest(each.line for each in error.problems) from None


async def _read_body(model: type[Body], request: Request, *, optional: bool) -> Body | None:
    """The body; None where it is left out and may be."""
    content = await _read_json(request)
    if content is None and optional:
        return None
    if content is None:
        raise InvalidRequest((_NO_OBJECT,))
    try:
        return model.model_validate(content)
    except InvalidModel as error:
        raise InvalidRequest(map(_body_problem, error.problems)) from None


def _body_problem(problem: Problem) -> str:
    is_whole = not problem.place and problem.kind == "not_object"
    return _NO_OBJECT if is_whole else problem.line


async def _read_json(request: Request) -> object:
    """What a body says; None without one."""
    content = await request.body()
    if not content:
        return None
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        text = f"the body is no JSON: {error.msg} at character {error.pos}"
        raise InvalidRequest((text,)) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise Unreadable from error
