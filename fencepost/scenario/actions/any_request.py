"""Any request from plain data, and any answer as plain data, by Kafka's names in snake_case."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from msgspec import field

from fencepost.control.message_json import SHORT, batch_summary
from fencepost.protocol.apis import Api
from fencepost.protocol.codec.schema import RECORD_KINDS, FieldSchema, StructSchema, message_schema
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import UnknownName, find_api
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionBody,
    ActionContext,
    InvalidAction,
    ScenarioClients,
)
from fencepost.scenario.document import Data


def named_api(text: str) -> Api:
    """An API by its key or its name in any spelling.

    :raises InvalidAction: When there is none.
    """
    try:
        return find_api(text)
    except UnknownName as error:
        raise InvalidAction(f"there is no API {text!r}{error.hint}") from None


def to_request(api: Api, version: int, data: Mapping[str, object]) -> object:
    """A request of an API.

    :raises InvalidAction: When it has no such version, or the data is none of its.
    """
    if not api.serves(version):
        known = f"from {api.min_version} to {api.max_version}"
        raise InvalidAction(f"version {version} of {api.title} is not one {known}")
    return _struct(message_schema(api.name, "request", version), data, api.title)


def to_plain_data(api: Api, version: int, answer: object) -> dict[str, Data]:
    """An answer of an API, just the fields that its version has."""
    return _plain(message_schema(api.name, "response", version), answer)


def error_codes(data: Data) -> Iterator[int]:
    """All error codes in an answer, from the outside in."""
    if isinstance(data, dict):
        code = data.get("error_code")
        if isinstance(code, int):
            yield code
        for value in data.values():
            yield from error_codes(value)
    elif isinstance(data, list):
        for each in data:
            yield from error_codes(each)


# -- requests -----------------------------------------------------------------------------------


def _struct(shape: StructSchema, data: object, place: str) -> object:
    if not isinstance(data, Mapping):
        raise InvalidAction(f"{place} is to be a mapping")
    known = {field.name: field for field in shape.fields}
    for name in data:
        if name not in known:
            raise InvalidAction(f"{place} has no field {name!r}; it has {', '.join(known)}")
    return shape.cls(
        **{name: _field(known[name], value, f"{place}.{name}") for name, value in data.items()}
    )


def _field(field: FieldSchema, value: object, place: str) -> object:
    if value is None:
        return None
    if field.array:
        if not isinstance(value, list):
            raise InvalidAction(f"{place} is to be a list")
        return tuple(_value(field, each, f"{place}[{at}]") for at, each in enumerate(value))
    return _value(field, value, place)


def _value(field: FieldSchema, value: object, place: str) -> object:
    try:
        match field.kind:
            case "struct":
                assert field.struct is not None
                return _struct(field.struct, value, place)
            case "uuid":
                return UUID(str(value))
            case "bytes" | "records":
                return b64decode(str(value), validate=True)
            case "string":
                return str(value)
            case "bool":
                return _typed(value, bool)
            case "float64":
                return float(str(_typed(value, int | float)))
            case _:
                return _typed(value, int)
    except ValueError as error:
        raise InvalidAction(f"{place}: {error}") from None


def _typed(value: object, kind: Any) -> object:  # noqa: ANN401  # a type or a union
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = "true or false" if kind is bool else "a number"
        raise ValueError(f"{value!r} is not {wanted}")
    return value


# -- answers ------------------------------------------------------------------------------------


def _plain(shape: StructSchema, message: object) -> dict[str, Data]:
    return {field.name: _plain_field(field, getattr(message, field.name)) for field in shape.fields}


def _plain_field(field: FieldSchema, value: Any) -> Data:  # noqa: ANN401  # by its kind
    if value is None:
        return None
    if field.kind in RECORD_KINDS:
        buffers = value if field.kind == "batches" else [value]
        # What it tells is plain data, in a type of its own.
        return batch_summary(buffers, SHORT.batches)  # type: ignore[return-value]  # see above
    if field.array:
        return [_plain_value(field, each) for each in value]
    return _plain_value(field, value)


def _plain_value(field: FieldSchema, value: Any) -> Data:  # noqa: ANN401  # by its kind
    match field.kind:
        case "struct":
            assert field.struct is not None
            return _plain(field.struct, value)
        case "uuid":
            return str(value)
        case "bytes":
            return b64encode(value).decode()
        case _:
            plain: Data = value
            return plain


# -- the action ---------------------------------------------------------------------------------


class CallBody(ActionBody):
    """Any request of any API."""

    api: str
    """Kafka's name, such as ``DescribeGroups``, or the key."""
    request: dict[str, object] = field(default_factory=dict)
    """Its fields by Kafka's names in snake_case; those left out have Kafka's defaults."""


class CallAnswer(ActionAnswer):
    """Any answer. Its error is the first one in it that is not NONE."""

    response: dict[str, object] | None


async def _call(clients: ScenarioClients, context: ActionContext, body: CallBody) -> CallAnswer:
    api = named_api(body.api)
    connection = await clients.any_broker_connection(context, body)
    version = body.version
    if version is None:
        version = await connection.best_version(api, timeout_s=context.timeout_s)
    request = to_request(api, version, body.request)
    answer = await connection.ask_any(api, version, request, timeout_s=context.timeout_s)
    response = to_plain_data(api, version, answer)
    throttle_time_ms = response.get("throttle_time_ms", 0)
    assert isinstance(throttle_time_ms, int)
    error = next((code for code in error_codes(response) if code != ErrorCode.NONE), 0)
    return CallAnswer(
        **context.common_fields(error=error, version=version, throttle_time_ms=throttle_time_ms),
        response={**response},
    )


ACTIONS: Final = (Action("call", None, CallBody, CallAnswer, "Send any request.", _call),)
