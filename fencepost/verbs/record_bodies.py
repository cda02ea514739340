"""The bodies and queries of the verbs on records."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, field

from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS, MAX_DELAY_MS, MAX_LISTED, Body, Listed
from fencepost.verbs.model import Examples
from fencepost.verbs.problems import InvalidModel, Place, Problem, ProblemKind
from fencepost.verbs.record_encoding import (
    Encoding,
    NotEncodable,
    encode_text,
    encode_value,
    header_pairs,
)

MAX_INT64: Final = 2**63 - 1

Isolation = Literal["read_uncommitted", "read_committed"]
Offset = Annotated[int, Meta(ge=0, le=MAX_INT64)]
Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]
TimeoutMs = Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)]


HeaderPair: TypeAlias = tuple[str, str | None]
Headers: TypeAlias = dict[str, str | None] | Listed[HeaderPair]
"""By name; or, where names repeat, an array of ``[name, value]``. A value may be null."""


class NewRecordBody(Body):
    """A record to produce."""

    key: str | None = None
    value: object = None
    """Text; with the encoding ``json`` any JSON. Null, or left out: a tombstone."""
    headers: Headers = field(default_factory=dict)
    """By name, or an array of ``[name, value]`` where names repeat."""
    timestamp: Offset | None = None
    """Milliseconds since 1970-01-01 UTC; left out: the cluster's time."""

    examples: ClassVar[Examples] = [
        {"key": "17", "value": "two fence posts", "headers": {"trace": "a1"}},
        {"key": "17"},
        {"value": "again", "headers": [["retry", "1"], ["retry", "2"]]},
    ]


GivenRecord: TypeAlias = str | NewRecordBody
"""A record; a text is one with this value."""
Records = Annotated[
    Listed[GivenRecord], Meta(max_length=MAX_LISTED, extra_json_schema={"minItems": 1})
]
"""One at least, which `ProduceBody` says in words of its own."""


class _EncodedBody(Body):
    """A body whose keys, values and headers have an encoding."""

    def check(self) -> None:
        """All of it can be encoded."""
        problems = list(self._encoding_problems())
        if problems:
            raise InvalidModel(problems)

    def _encoding_problems(self) -> Iterator[Problem]:
        yield from _record_problems(self, (), getattr(self, "encoding", "text"))


def _record_problems(
    given: Any,  # noqa: ANN401  # whatever has the fields of a record
    place: Place,
    encoding: Encoding,
) -> Iterator[Problem]:
    """What of a record cannot be encoded.

    :param given: It has a key, a value and headers.
    """
    key, value = given.key, given.value
    yield from _problems(partial(encode_text, key, encoding), (*place, "key"), key)
    yield from _problems(partial(encode_value, value, encoding), (*place, "value"), value)
    pairs = given.headers.items() if isinstance(given.headers, dict) else enumerate(given.headers)
    for at, each in pairs:
        name, text = (at, each) if isinstance(at, str) else each
        inner = (*place, "headers", at)
        yield from _problems(partial(encode_text, name, "text"), inner, name)
        yield from _problems(partial(encode_text, text, encoding), inner, text)


def _problems(encode: Callable[[], object], place: Place, given: object) -> Iterator[Problem]:
    kind: ProblemKind = "wrong"
    try:
        encode()
    except TypeError:
        kind, text = "not_text", "input should be a valid string"
    except NotEncodable as error:
        text = str(error)
    else:
        return
    yield Problem(place=place, text=text, kind=kind, given=given)


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
    headers: Headers = field(default_factory=dict)
    """By name, or an array of ``[name, value]`` where names repeat."""
    timestamp: Offset | None = None
    """Milliseconds since 1970-01-01 UTC; left out: the cluster's time."""
    encoding: Encoding = "text"
    """Of keys, values and headers. ``json``: values are any JSON, keys and headers are text."""
    acks: Literal["all", "1"] = "all"
    """``all``: answered when they are committed; ``1``: when the leader has them."""
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
    """In real time: how long they may take to be committed. They stay in the log beyond it."""

    def check(self) -> None:
        """It is one record or many, and they can be encoded."""
        super().check()
        has_one = any(
            (self.key is not None, self.value is not None, self.headers, self.timestamp is not None)
        )
        if has_one == (self.records is not None):
            raise ValueError("give records, or the key, value, headers and timestamp of one")
        if self.records == ():
            raise ValueError("records: give at least one")

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

    def _encoding_problems(self) -> Iterator[Problem]:
        yield from _record_problems(self, (), self.encoding)
        for at, each in enumerate(self.records or ()):
            place = ("records", at)
            if isinstance(each, str):
                yield from _problems(partial(encode_value, each, self.encoding), place, each)
            else:
                yield from _record_problems(each, place, self.encoding)

    examples: ClassVar[Examples] = [
        {"records": [{"key": "17", "value": "two fence posts"}, {"key": "18"}]},
        {
            "partition": 0,
            "records": [{"value": {"id": 17, "posts": 2}}],
            "encoding": "json",
        },
        {"key": "17", "value": "two fence posts", "acks": "1"},
    ]


class RecordsQuery(Body):
    """Which records of a partition to read, and how to show them."""

    is_query: ClassVar[bool] = True

    from_offset: Offset | None = field(default=None, name="from")
    """Inclusive; left out: the log start."""
    to: Offset | None = None
    """Exclusive; left out: the high watermark, or the last stable offset."""
    last: Annotated[int, Meta(ge=1, le=MAX_LISTED)] | None = None
    """Only the last ones, in place of ``from`` and ``limit``."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 100
    """The maximum; an answer of more than 8 MiB ends before."""
    encoding: Encoding = "text"
    """Of keys, values and headers; a record that it cannot show has another."""
    isolation: Isolation = "read_uncommitted"
    """``read_committed`` ends at the last stable offset, and leaves out what was aborted."""

    def check(self) -> None:
        """It is one range."""
        if self.last is not None and self.from_offset is not None:
            raise ValueError("give from or last, not both")
        if self.to is not None and self.from_offset is not None and self.to < self.from_offset:
            raise ValueError("to: it lies before from")


class ExpectBody(_EncodedBody):
    """The records that a topic is to have: all that is given must match.

    A record counts wherever it stands in the log, also one that was there before.
    """

    null_counts: ClassVar[frozenset[str]] = frozenset({"key", "value"})

    key: str | None = None
    """Null: a record without a key. Left out: any."""
    value: object = None
    """Null: a tombstone. Left out: any. With the encoding ``json`` JSON values are compared."""
    headers: Headers = field(default_factory=dict)
    """Headers that the record has, among others."""
    partition: Index | None = None
    """Left out: any."""
    count: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 1
    """How many such records, at least."""
    encoding: Encoding = "text"
    """Of the key, the value and the headers."""
    isolation: Isolation = "read_uncommitted"
    """``read_committed`` ends at the last stable offset, and leaves out what was aborted."""
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
    """In real time."""

    examples: ClassVar[Examples] = [
        {"key": "17", "value": "two fence posts", "timeout_ms": 5000},
        {"value": {"id": 17, "posts": 2}, "encoding": "json"},
        {"key": "17", "count": 2},
        {"key": "18", "value": None},
    ]


def encoded_headers(
    given: Mapping[str, str | None] | tuple[HeaderPair, ...], encoding: Encoding
) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as a record has them; they were checked."""
    pairs = header_pairs(dict(given) if isinstance(given, Mapping) else given)
    return tuple((name, encode_text(text, encoding)) for name, text in pairs)
