"""``expect`` and ``until`` of a step, read and checked before anything is run.

An expectation may name only fields that the answer can have.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from types import GenericAlias, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import did_you_mean
from fencepost.scenario.actions.context import ActionAnswer
from fencepost.scenario.compare import OPERATORS
from fencepost.scenario.document import Data, Document, KeyPath, list_allowed, parse_reference
from fencepost.scenario.model import Expectation, PartitionExpectation, TraceExpectation
from fencepost.scenario.validation import check_keys, field_names, require_mapping, validate
from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.bodies import TraceFilter
from fencepost.verbs.model import Model


class UnknownField(Struct, frozen=True, kw_only=True):
    """A field that no answer has."""

    path: KeyPath
    known: tuple[str, ...]


def unknown_fields(expected: Data, kind: object, path: KeyPath = ()) -> Iterator[UnknownField]:
    """The fields that an expectation names and that values of a type do not have.

    :param kind: The type of the value that is compared, as models annotate their fields.
    """
    if not isinstance(expected, dict | list) or parse_reference(expected):
        return
    if isinstance(expected, list):
        for at, each in enumerate(expected):
            yield from unknown_fields(each, element_of(kind), (*path, at))
    else:
        for name, value in expected.items():
            check = _operator if name in OPERATORS else _field
            yield from check(name, value, kind, (*path, name))


def _operator(name: str, operand: Data, kind: object, path: KeyPath) -> Iterator[UnknownField]:
    if name in ("contains", "each"):
        yield from unknown_fields(operand, element_of(kind), path)
    elif name == "not":
        yield from unknown_fields(operand, kind, path)
    elif name == "one_of" and isinstance(operand, list):
        for at, each in enumerate(operand):
            yield from unknown_fields(each, kind, (*path, at))


def _field(name: str, value: Data, kind: object, path: KeyPath) -> Iterator[UnknownField]:
    element = element_of(kind)
    if name.isdigit() and element is not Any:
        yield from unknown_fields(value, element, path)
        return
    models = models_of(kind)
    if not models:
        return
    for model in models:
        found = model.model_fields.get(name)
        if found is not None:
            yield from unknown_fields(value, found.annotation, path)
            return
    known = tuple(dict.fromkeys(each for model in models for each in model.model_fields))
    yield UnknownField(path=path, known=known)


def models_of(kind: object) -> list[type[Model]]:
    """The models that a value may be of; none where it may have any fields."""
    if isinstance(kind, type) and issubclass(kind, Model):
        return [kind]
    if _is_union(kind):
        found = [models_of(each) for each in get_args(kind) if each is not NoneType]
        return [model for each in found for model in each] if all(found) else []
    return []


def element_of(kind: object) -> object:
    """The type of a list's elements; Any where nothing is known."""
    if _is_union(kind):
        found = [element_of(each) for each in get_args(kind) if each is not NoneType]
        return next((each for each in found if each is not Any), Any)
    origin = get_origin(kind)
    is_list = isinstance(origin, type) and issubclass(origin, Sequence) and origin is not str
    return get_args(kind)[0] if is_list and get_args(kind) else Any


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, UnionType)


_NAMES: Final = ("refused", "pending")
_STATES: Final = ("partition", "trace")
_AT_LEAST_ONE: Final[dict[str, Data]] = {"at_least": 1}


class Subject(Struct, frozen=True, kw_only=True):
    """What an expectation is about."""

    kind: object
    """The type of the answer; None where there is none."""
    is_verb: bool


NO_ANSWER: Final = Subject(kind=None, is_verb=False)


def read_expectation(
    document: Document,
    data: Data,
    path: KeyPath,
    subject: Subject,
    *,
    steps: Collection[str],
    background: Collection[str],
) -> Expectation:
    """An expectation.

    :param steps: The names of earlier steps.
    :param background: The names of actions in the background.
    :raises ScenarioFileError: When something in it is wrong.
    """
    given = require_mapping(document, data, path, path[-1] if isinstance(path[-1], str) else "this")
    if not given:
        raise document.error_at(path, "nothing is expected")
    states = {name: given[name] for name in _STATES if isinstance(given.get(name), dict | list)}
    fields = {
        name: value for name, value in given.items() if name not in _NAMES and name not in states
    }
    _check_fields(document, fields, path, subject)
    _check_patterns(document, given, path)
    return Expectation(
        path=path,
        fields=fields,
        partitions=tuple(
            _read_partition(document, each, place)
            for each, place in _as_list(states.get("partition"), (*path, "partition"))
        ),
        traces=tuple(
            _read_trace(document, each, place, steps)
            for each, place in _as_list(states.get("trace"), (*path, "trace"))
        ),
        refused=_read_refused(document, given, path, subject),
        pending=_read_pending(document, given, path, background),
    )


def _check_patterns(document: Document, data: Data, path: KeyPath) -> None:
    """Whether what follows ``matches`` is a regular expression, wherever it stands."""
    if isinstance(data, list):
        for at, each in enumerate(data):
            _check_patterns(document, each, (*path, at))
    elif isinstance(data, dict):
        for name, value in data.items():
            if name == "matches" and not parse_reference(value):
                _check_pattern(document, str(value), (*path, name))
            _check_patterns(document, value, (*path, name))


def _check_pattern(document: Document, pattern: str, path: KeyPath) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise document.error_at(path, f"no regular expression: {error}") from None


def _as_list(data: Data, path: KeyPath) -> list[tuple[Data, KeyPath]]:
    if isinstance(data, list):
        return [(each, (*path, at)) for at, each in enumerate(data)]
    return [] if data is None else [(data, path)]


def _check_fields(
    document: Document, fields: dict[str, Data], path: KeyPath, subject: Subject
) -> None:
    if not fields:
        return
    if subject.kind is None:
        first = next(iter(fields))
        raise document.error_at_key((*path, first), f"there is no answer that could have {first!r}")
    for unknown in unknown_fields(fields, subject.kind, path):
        name = str(unknown.path[-1])
        hint = list_allowed(name, unknown.known)
        raise document.error_at_key(unknown.path, f"the answer has no field {name!r}{hint}")
    error = fields.get("error")
    if _is_of_client(subject) and isinstance(error, str):
        _check_error(document, error, (*path, "error"))


def _is_of_client(subject: Subject) -> bool:
    return isinstance(subject.kind, type) and issubclass(subject.kind, ActionAnswer)


def _check_error(document: Document, error: str, path: KeyPath) -> None:
    """Kafka never answers an error that it does not have: the name is mistyped."""
    names = ErrorCode.__members__
    if error not in names and not error.lstrip("-").isdigit() and not error.startswith("$"):
        hint = did_you_mean(error, names)
        raise document.error_at(path, f"Kafka has no error {error!r}{hint}")


def _read_partition(document: Document, data: Data, path: KeyPath) -> PartitionExpectation:
    given = require_mapping(document, data, path, "partition")
    fields = {key: value for key, value in given.items() if key not in ("topic", "partition")}
    topic, index = given.get("topic"), given.get("partition", 0)
    if not isinstance(topic, str):
        raise document.error_at_key(path, "the topic of the partition is left out")
    if not isinstance(index, int):
        raise document.error_at((*path, "partition"), "the partition's number is to be a number")
    for unknown in unknown_fields(fields, PartitionState, path):
        name = str(unknown.path[-1])
        hint = list_allowed(name, unknown.known)
        raise document.error_at_key(unknown.path, f"a partition has no field {name!r}{hint}")
    return PartitionExpectation(path=path, topic=topic, partition=index, fields=fields)


def _read_trace(
    document: Document, data: Data, path: KeyPath, steps: Collection[str]
) -> TraceExpectation:
    given = require_mapping(document, data, path, "trace")
    check_keys(document, given, path, [*field_names(TraceFilter), "where", "size"])
    since = given.get("since")
    if isinstance(since, str) and since not in steps:
        hint = list_allowed(since, steps) if steps else "; no step has a name yet (as: NAME)"
        raise document.error_at((*path, "since"), f"no step before is named {since!r}{hint}")
    filters = {key: value for key, value in given.items() if key not in ("since", "where", "size")}
    _, filters = validate(document, TraceFilter, filters, path)
    where = given.get("where", {})
    for unknown in unknown_fields(where, ExchangeState, (*path, "where")):
        name = str(unknown.path[-1])
        hint = list_allowed(name, unknown.known)
        raise document.error_at_key(unknown.path, f"an exchange has no field {name!r}{hint}")
    return TraceExpectation(
        path=path,
        filters=filters,
        since=since if isinstance(since, str | int) else None,
        where=where,
        size=given.get("size", _AT_LEAST_ONE),
    )


def _read_refused(
    document: Document, given: dict[str, Data], path: KeyPath, subject: Subject
) -> str | None:
    refused = given.get("refused")
    if refused is None:
        return None
    if not subject.is_verb:
        why = "only verbs are refused; what a client is answered is its error"
        raise document.error_at_key((*path, "refused"), why)
    if not isinstance(refused, str):
        raise document.error_at((*path, "refused"), "refused is to be the name of an error")
    return refused


def _read_pending(
    document: Document, given: dict[str, Data], path: KeyPath, background: Collection[str]
) -> str | None:
    pending = given.get("pending")
    if pending is None:
        return None
    if not isinstance(pending, str) or pending not in background:
        hint = list_allowed(str(pending), background) if background else ""
        raise document.error_at(
            (*path, "pending"), f"no action {pending!r} is in the background{hint}"
        )
    return pending


def list_of(kind: object) -> object:
    """The type of a list."""
    return GenericAlias(tuple, (kind, ...))
