"""The bodies and queries of the verbs on records."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    Field,
    Strict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.config import ConfigDict
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS, MAX_DELAY_MS, MAX_LISTED, Body, Listed
from fencepost.verbs.record_encoding import (
    NOT_TEXT,
    Encoding,
    NotEncodable,
    encode_text,
    encode_value,
    header_pairs,
)

MAX_INT64: Final = 2**63 - 1

Isolation = Literal["read_uncommitted", "read_committed"]
Offset = Annotated[int, Field(ge=0, le=MAX_INT64)]
Index = Annotated[int, Field(ge=0, le=2**31 - 1)]
TimeoutMs = Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]


def one_form(forms: Mapping[type, str], other: str) -> WrapValidator:
    """For a union: say what is wrong with the form that was chosen, and not with each.

    :param forms: The beginning of pydantic's name of a form, by the type of what is given.
    :param other: The form of what has none of these types.
    """

    def check(given: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            checked: object = handler(given)
        except ValidationError as error:
            form = next((forms[each] for each in forms if isinstance(given, each)), other)
            errors = [each for each in error.errors() if str(each["loc"][0]).startswith(form)]
            raise ValidationError.from_exception_data(
                error.title, [_without_form(each) for each in errors]
            ) from None
        return checked

    return WrapValidator(check)


def _without_form(error: ErrorDetails) -> InitErrorDetails:
    return InitErrorDetails(
        type=error["type"],
        loc=error["loc"][1:],
        input=error["input"],
        ctx=error.get("ctx", {}),
    )


HeaderPair = Annotated[tuple[str, str | None], Strict(False)]
Headers = Annotated[
    dict[str, str | None] | Listed[HeaderPair],
    one_form({dict: "dict", list: "tuple", tuple: "tuple"}, "dict"),
]
"""By name; or, where names repeat, an array of ``[name, value]``. A value may be null."""


class NewRecordBody(Body):
    """A record to produce."""

    key: str | None = None
    value: object = None
    """Text; with the encoding ``json`` any JSON. Null, or left out: a tombstone."""
    headers: Headers = Field(default_factory=dict)
    """By name, or an array of ``[name, value]`` where names repeat."""
    timestamp: Offset | None = None
    """Milliseconds since 1970-01-01 UTC; left out: the cluster's time."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"key": "17", "value": "two fence posts", "headers": {"trace": "a1"}},
                {"key": "17"},
                {"value": "again", "headers": [["retry", "1"], ["retry", "2"]]},
            ]
        }
    )


GivenRecord = Annotated[str | NewRecordBody, one_form({dict: "NewRecordBody"}, "str")]
"""A record; a text is one with this value."""
Records = Annotated[
    Listed[GivenRecord], Field(max_length=MAX_LISTED, json_schema_extra={"minItems": 1})
]
"""One at least. Pydantic's own limit would complain besides where all of them are wrong."""


class _EncodedBody(Body):
    """A body whose keys, values and headers have an encoding."""

    @model_validator(mode="after")
    def _is_encodable(self) -> Self:
        errors = list(self._encoding_errors())
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self

    def _encoding_errors(self) -> Iterator[InitErrorDetails]:
        yield from _record_errors(self, (), getattr(self, "encoding", "text"))


def _record_errors(
    given: Any,  # noqa: ANN401  # whatever has the fields of a record
    place: tuple[str | int, ...],
    encoding: Encoding,
) -> Iterator[InitErrorDetails]:
    """What of a record cannot be encoded.

    :param given: It has a key, a value and headers.
    """
    key, value = given.key, given.value
    yield from _errors(partial(encode_text, key, encoding), (*place, "key"), key)
    yield from _errors(partial(encode_value, value, encoding), (*place, "value"), value)
    pairs = given.headers.items() if isinstance(given.headers, dict) else enumerate(given.headers)
    for at, each in pairs:
        name, text = (at, each) if isinstance(at, str) else each
        inner = (*place, "headers", at)
        yield from _errors(partial(encode_text, name, "text"), inner, name)
        yield from _errors(partial(encode_text, text, encoding), inner, text)


def _errors(
    encode: Callable[[], object], place: tuple[str | int, ...], given: object
) -> Iterator[InitErrorDetails]:
    try:
        encode()
    except TypeError:
        yield InitErrorDetails(type=NOT_TEXT, loc=place, input=given)
    except NotEncodable as error:
        yield InitErrorDetails(
            type=PydanticCustomError("not_encodable", "{why}", {"why": str(error)}),
            loc=place,
            input=given,
        )


class ProduceBody(_EncodedBody):
    """Records to produce: ``records``, or the key, value, headers and timestamp of one."""

    partition: Index | None = None
    """Left out: where Kafka's default partitioner (murmur2) sends a key; records without a key
    go together to the partition whose log ends first."""
    records: Records | None = None
    """Records; a text is the value of one. Those of one partition are appended as one batch."""
    key: str | None = None
    """Of one record, in place of ``records``; so are the next three."""
    value: object = None
    """Text; with the encoding ``json`` any JSON. Null, or left out: a tombstone."""
    headers: Headers = Field(default_factory=dict)
    """By name, or an array of ``[name, value]`` where names repeat."""
    timestamp: Offset | None = None
    """Milliseconds since 1970-01-01 UTC; left out: the cluster's time."""
    encoding: Encoding = "text"
    """Of keys, values and headers. ``json``: values are any JSON, keys and headers are text."""
    acks: Literal["all", "1"] = "all"
    """``all``: answered when they are committed; ``1``: when the leader has them."""
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
    """In real time: how long they may take to be committed. They stay in the log beyond it."""

    @model_validator(mode="after")
    def _is_one_or_many(self) -> Self:
        has_one = any(
            (self.key is not None, self.value is not None, self.headers, self.timestamp is not None)
        )
        if has_one == (self.records is not None):
            raise ValueError("give records, or the key, value, headers and timestamp of one")
        if self.records == ():
            raise ValueError("records: give at least one")
        return self

    def all_records(self) -> tuple[NewRecordBody, ...]:
        """The records, one or many."""
        if self.records is not None:
            return tuple(
                NewRecordBody(value=each) if isinstance(each, str) else each
                for each in self.records
            )
        one = NewRecordBody(
            key=self.key, value=self.value, headers=self.headers, timestamp=self.timestamp
        )
        return (one,)

    def _encoding_errors(self) -> Iterator[InitErrorDetails]:
        yield from _record_errors(self, (), self.encoding)
        for at, each in enumerate(self.records or ()):
            place = ("records", at)
            if isinstance(each, str):
                yield from _errors(partial(encode_value, each, self.encoding), place, each)
            else:
                yield from _record_errors(each, place, self.encoding)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"records": [{"key": "17", "value": "two fence posts"}, {"key": "18"}]},
                {
                    "partition": 0,
                    "records": [{"value": {"id": 17, "posts": 2}}],
                    "encoding": "json",
                },
                {"key": "17", "value": "two fence posts", "acks": "1"},
            ]
        }
    )


class RecordsQuery(Body):
    """Which records of a partition to read, and how to show them."""

    model_config = ConfigDict(strict=False)  # a query is all text

    from_offset: Offset | None = Field(default=None, alias="from")
    """Inclusive; left out: the log start."""
    to: Offset | None = None
    """Exclusive; left out: the high watermark, or the last stable offset."""
    last: Annotated[int, Field(ge=1, le=MAX_LISTED)] | None = None
    """Only the last ones, in place of ``from`` and ``limit``."""
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 100
    """The maximum; an answer of more than 8 MiB ends before."""
    encoding: Encoding = "text"
    """Of keys, values and headers; a record that it cannot show has another."""
    isolation: Isolation = "read_uncommitted"
    """``read_committed`` ends at the last stable offset, and leaves out what was aborted."""

    @model_validator(mode="after")
    def _is_one_range(self) -> Self:
        if self.last is not None and self.from_offset is not None:
            raise ValueError("give from or last, not both")
        if self.to is not None and self.from_offset is not None and self.to < self.from_offset:
            raise ValueError("to: it lies before from")
        return self


class ExpectBody(_EncodedBody):
    """The records that a topic is to have: all that is given must match.

    A record counts wherever it stands in the log, also one that was there before.
    """

    null_counts: ClassVar[frozenset[str]] = frozenset({"key", "value"})

    key: str | None = None
    """Null: a record without a key. Left out: any."""
    value: object = None
    """Null: a tombstone. Left out: any. With the encoding ``json`` JSON values are compared."""
    headers: Headers = Field(default_factory=dict)
    """Headers that the record has, among others."""
    partition: Index | None = None
    """Left out: any."""
    count: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 1
    """How many such records, at least."""
    encoding: Encoding = "text"
    """Of the key, the value and the headers."""
    isolation: Isolation = "read_uncommitted"
    """``read_committed`` ends at the last stable offset, and leaves out what was aborted."""
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
    """In real time."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"key": "17", "value": "two fence posts", "timeout_ms": 5000},
                {"value": {"id": 17, "posts": 2}, "encoding": "json"},
                {"key": "17", "count": 2},
                {"key": "18", "value": None},
            ]
        }
    )


def encoded_headers(
    given: Mapping[str, str | None] | tuple[HeaderPair, ...], encoding: Encoding
) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as a record has them; they were checked."""
    pairs = header_pairs(dict(given) if isinstance(given, Mapping) else given)
    return tuple((name, encode_text(text, encoding)) for name, text in pairs)
