"""Which requests a fault hits, as data, and how its fields are written in JSON.

The control API derives its models from these fields: a docstring below a field is the field's
description there. The command line imports this module, so it imports little.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

from fencepost.broker.core.errors import ControllerError
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import find_api

_VERSIONS: Final = re.compile(r"(?P<one>\d{1,5})|(?P<low>\d{0,5})-(?P<high>\d{0,5})", re.ASCII)
_JSON_FORM: Final = "json_form"


class Limits(NamedTuple):
    """The bounds of a number, as an annotation; None is no bound."""

    ge: int | None = None
    gt: int | None = None
    le: int | None = None


class JsonForm(NamedTuple):
    """How JSON writes a field whose type JSON does not have."""

    given: Any
    """The type that JSON gives."""
    answered: Any
    """The type that JSON is answered."""
    read: Callable[[Any], Any]
    write: Callable[[Any], object]

    def as_metadata(self) -> dict[str, "JsonForm"]:
        """The metadata of a dataclass's field that has this form."""
        return {_JSON_FORM: self}


def json_forms(data: type) -> dict[str, JsonForm]:
    """The fields of a dataclass that JSON writes in a form of its own."""
    return {
        each.name: each.metadata[_JSON_FORM] for each in fields(data) if _JSON_FORM in each.metadata
    }


def read_fields(data: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, read from JSON."""
    forms = json_forms(data)
    return {
        name: forms[name].read(value) if name in forms else value for name, value in given.items()
    }


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of an API, both inclusive; None is an open end."""

    low: int | None
    high: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``9``, ``4-8``, ``9-`` or ``-8``.

        :raises ControllerError: INVALID_REQUEST for any other text.
        """
        match = _VERSIONS.fullmatch(text.strip())
        if match is None or text.strip() == "-":
            raise ControllerError(
                ErrorCode.INVALID_REQUEST,
                f"versions: {text!r} is none: write 9, 4-8, 9- or -8, both ends inclusive",
            )
        if match["one"]:
            return cls(int(match["one"]), int(match["one"]))
        low, high = (int(end) if end else None for end in (match["low"], match["high"]))
        return cls(low, high)

    def __contains__(self, version: int) -> bool:
        if self.low is not None and version < self.low:
            return False
        return self.high is None or version <= self.high

    def __str__(self) -> str:
        if self.low == self.high and self.low is not None:
            return str(self.low)
        low, high = ("" if end is None else str(end) for end in (self.low, self.high))
        return f"{low}-{high}"


EVERY: Final = "*"
"""Stands for every API."""


@dataclass(frozen=True, slots=True)
class Apis:
    """The APIs of the requests that a fault hits."""

    named: tuple[Api, ...]
    """One or several, each once; none stands for every API."""

    @property
    def is_every(self) -> bool:
        """Whether it is every API."""
        return not self.named

    @classmethod
    def from_json(cls, given: str | int | Sequence[str | int]) -> Self:
        """Read Kafka's name of an API, its key, several of them, or ``*``.

        :raises ControllerError: INVALID_REQUEST where none is named, or ``*`` is not alone.
        :raises UnknownName: Where no such API is served.
        """
        names = (given,) if isinstance(given, str | int) else tuple(given)
        if names == (EVERY,):
            return cls(())
        if not names or EVERY in names:
            problem = f"name one API or several, or {EVERY!r} alone, which is every API"
            raise ControllerError(ErrorCode.INVALID_REQUEST, f"api: {problem}")
        return cls(tuple(dict.fromkeys(find_api(str(name)) for name in names)))

    def to_json(self) -> str | tuple[str, ...]:
        """``*``, the title of the one API, or the titles of all."""
        if self.is_every:
            return EVERY
        titles = tuple(api.title for api in self.named)
        return titles[0] if len(titles) == 1 else titles


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSelector:
    """Which records: those that have everything that is not None."""

    key: str | None = None
    """Exactly this key, as UTF-8."""
    value: str | None = None
    """Exactly this value, as UTF-8."""
    header: tuple[str, str | None] | None = None
    """The name of a header and its value, which may be null, as an array."""


Source: TypeAlias = Literal["clients", "brokers"]

_API: Final = JsonForm(
    given=str | int | tuple[str | int, ...],
    answered=str | tuple[str, ...],
    read=Apis.from_json,
    write=Apis.to_json,
)
_OPTIONAL_RECORD: Final = JsonForm(
    given=None,  # a model of its own
    answered=dict[str, object] | None,
    read=lambda given: None if given is None else RecordSelector(**given),
    write=lambda record: None if record is None else _given_fields(record),
)


def _given_fields(data: RecordSelector) -> dict[str, object]:
    values = {each.name: getattr(data, each.name) for each in fields(data)}
    return {name: value for name, value in values.items() if value is not None}


_OPTIONAL_VERSIONS: Final = JsonForm(
    given=str | int | None,
    answered=str | None,
    read=lambda given: None if given is None else Versions.parse(str(given)),
    write=lambda versions: None if versions is None else str(versions),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """Which requests a fault hits: those that match every selector that is not None."""

    api: Apis = field(metadata=_API.as_metadata())
    """Kafka's name of the API, such as ``Produce``, or its key, or an array of several; or ``"*"``:
    every API that can meet the rest of the fault."""
    versions: Versions | None = field(default=None, metadata=_OPTIONAL_VERSIONS.as_metadata())
    """Of the API, inclusive: ``9``, ``"4-8"``, ``"9-"`` or ``"-8"``."""
    broker: int | None = None
    """The broker that receives the request."""
    client_id: str | None = None
    """Of a client; a follower of this cluster has ``broker-2-fetcher-0``."""
    source: Source | None = None
    """Senders: clients, or other brokers of the cluster, such as followers. Left out: both."""
    topic: str | None = None
    """Named in the request. An error is then only this topic's."""
    partition: Annotated[int, Limits(ge=0)] | None = None
    """Of the topic, which is to be named too. An error is then only this partition's."""
    group: str | None = None
    """Group id."""
    transactional_id: str | None = None
    record: RecordSelector | None = field(default=None, metadata=_OPTIONAL_RECORD.as_metadata())
    """A record in the request, by its key, value or header; of Produce. An error is then only of
    the partitions with such a record."""

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Make the selectors that checked JSON describes.

        :raises ControllerError: INVALID_REQUEST where the versions are none.
        :raises UnknownName: Where the API is none.
        """
        return cls(**read_fields(cls, given))

    def to_json(self) -> dict[str, object]:
        """Every field as JSON has it."""
        forms = json_forms(type(self))
        written: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            written[each.name] = forms[each.name].write(value) if each.name in forms else value
        return written

    @property
    def selects_parts(self) -> bool:
        """Whether it may select only a part of a request."""
        return self.topic is not None or self.group is not None
