"""The OpenAPI document of the control API, made of the catalogue.

It takes long to make, so `tools/generate_openapi.py` writes it to ``openapi.json`` beside this
file, and that is what the control API answers. A GET's request
model is its query, field by field. What the verbs refuse is of status 4XX.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from fencepost.control.request_binding import BODY, parameters
from fencepost.control.routes_events import (
    LAST_EVENT_ID,
    LINES_TYPE,
    STREAM_TYPE,
    LastEventId,
)
from fencepost.control.routing import OPERATIONS, Operation
from fencepost.verbs.answers import ErrorAnswer
from fencepost.verbs.catalogue import PATH_TYPES, Method, Shape, Verb
from fencepost.verbs.model import Model
from fencepost.verbs.model_schema import Schemas, model_schema

API_VERSION: Final = "1"
_DESCRIPTION: Final = (
    "What a test can see of a cluster and do to it. A request that changes something is answered "
    "when its effect is complete."
)
_REFS: Final = "#/components/schemas/{model}"
_PATH_TYPES: Final = {str: "string", int: "integer"}
_JSON: Final = "application/json"
_Json: TypeAlias = dict[str, Any]


@cache
def description() -> _Json:
    """The document, the same for every cluster."""
    schemas = Schemas(dict.fromkeys(_models()), _REFS)
    paths: dict[str, _Json] = {}
    for operation in OPERATIONS.values():
        verb = operation.verb
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fencepost", "description": _DESCRIPTION, "version": API_VERSION},
        "paths": paths,
        "components": {"schemas": dict(schemas.definitions)},
    }


def _models() -> Iterator[type[Model]]:
    """The models of bodies and answers, which are shared by reference."""
    yield ErrorAnswer
    for operation in OPERATIONS.values():
        verb = operation.verb
        yield verb.response_model
        if operation.conflict is not None:
            yield operation.conflict[0]
        if verb.request_model is not None and verb.method is Method.POST:
            yield verb.request_model


def _reference(model: type[Model]) -> _Json:
    return {"$ref": _REFS.format(model=model.__name__)}


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _operation(operation: Operation) -> _Json:
    verb = operation.verb
    described: _Json = {
        "summary": _title(verb.name),
        "description": verb.summary,
        "operationId": verb.name,
    }
    found = list(_parameters(verb))
    if found:
        described["parameters"] = found
    if verb.request_model is not None and verb.method is Method.POST:
        described["requestBody"] = _body(operation, verb.request_model)
    return {**described, "responses": _responses(operation)}


def _body(operation: Operation, model: type[Model]) -> _Json:
    default = parameters(operation.function)[BODY].default
    schema = _reference(model)
    if isinstance(default, Model):
        given = default.model_dump(mode="json", exclude_none=True)
        return {"content": {_JSON: {"schema": {**schema, "default": given}}}}
    return {"content": {_JSON: {"schema": schema}}, "required": True}


# -- parameters ---------------------------------------------------------------------------------


def _parameters(verb: Verb) -> Iterator[_Json]:
    for name in verb.path_parameters:
        schema = {"type": _PATH_TYPES[PATH_TYPES[name]], "title": _title(name)}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    if verb.request_model is not None and verb.method is Method.GET:
        yield from _query(verb.request_model)
    if verb.shape is Shape.STREAM:
        header: _Json = {
            "anyOf": [Schemas([]).kind(LastEventId), {"type": "null"}],
            "title": LAST_EVENT_ID.title(),
        }
        yield {"name": LAST_EVENT_ID, "in": "header", "required": False, "schema": header}


def _query(model: type[Model]) -> Iterator[_Json]:
    whole = model_schema(model, reference=_REFS)
    required = whole.get("required", ())
    for name, schema in whole["properties"].items():
        # The default of a parameter that may be left out is its absence.
        shown = {k: v for k, v in schema.items() if (k, v) != ("default", None)}
        parameter = {"name": name, "in": "query", "required": name in required, "schema": shown}
        if "description" in schema:
            parameter["description"] = schema["description"]
        yield parameter


# -- responses ----------------------------------------------------------------------------------


def _responses(operation: Operation) -> _Json:
    found = {"200": _answer(operation.verb), "4XX": _response(ErrorAnswer, "Refused")}
    if operation.conflict is not None:
        found["409"] = _response(*operation.conflict)
    return found


def _response(model: type[Model], text: str) -> _Json:
    return {"description": text, "content": {_JSON: {"schema": _reference(model)}}}


def _answer(verb: Verb) -> _Json:
    model = verb.response_model
    match verb.shape:
        case Shape.ONE:
            return _response(model, "Successful Response")
        case Shape.LIST:
            title = f"Response {_title(verb.name)}"
            schema = {"items": _reference(model), "type": "array", "title": title}
            return {"description": "Successful Response", "content": {_JSON: {"schema": schema}}}
        case Shape.STREAM:
            content: Mapping[str, _Json] = {
                STREAM_TYPE: {"schema": {"type": "string", **_reference(model)}},
                LINES_TYPE: {},
            }
            text = "The data of each event; without follow, each is a line"
            return {"description": text, "content": content}
