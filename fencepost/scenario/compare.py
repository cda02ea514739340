"""What was expected against what came.

A text, number, truth or null compares by being equal. A mapping compares the fields that it names.
A list compares element by element, and has as many; a mapping compares elements by their indices.
What is named like an operator says something else about the value.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from fencepost.scenario.document import Data, KeyPath, expand_ranges, list_index


class Mismatch(Struct, frozen=True, kw_only=True):
    """One thing that is not as expected."""

    path: KeyPath
    """In the expectation."""
    field: str
    """Of the answer, as one writes it."""
    expected: str
    """For a reader: a value, or a sentence about it."""
    actual: object


class _Missing:
    """Where there is no such field."""


MISSING: Final = _Missing()


def compare(
    expected: Data, came: object, path: KeyPath = (), field: str = ""
) -> Iterator[Mismatch]:
    """All that is not as expected; nothing where everything is.

    :param path: Of the expectation, in what it is part of.
    :param field: Of the value, likewise.
    """
    if isinstance(expected, dict):
        for name, value in expected.items():
            if name in OPERATORS:
                yield from OPERATORS[name](value, came, (*path, name), field)
            else:
                yield from _part(name, value, came, (*path, name), field)
    elif isinstance(expected, list):
        yield from _elements(expected, came, path, field)
    elif not _equal(expected, came):
        yield Mismatch(path=path, field=field, expected=_text(expected), actual=came)


def _part(name: str, expected: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    """A field of a mapping, or an element of a list by its index."""
    here = f"{field}.{name}" if field else name
    found = _field(came, name)
    if found is MISSING:
        yield Mismatch(path=path, field=here, expected=_text(expected), actual=MISSING)
    else:
        yield from compare(expected, found, path, here)


def _field(came: object, name: str) -> object:
    if isinstance(came, Mapping):
        return came.get(name, MISSING)
    index = list_index(name)
    if isinstance(came, Sequence) and not isinstance(came, str) and index is not None:
        return came[index] if index < len(came) else MISSING
    return MISSING


def _elements(expected: list[Data], came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    wanted: list[Data] = list(expand_ranges(expected))
    if not isinstance(came, list) or len(came) != len(wanted):
        yield Mismatch(path=path, field=field, expected=_text(expected), actual=came)
    elif any(isinstance(each, dict | list) for each in wanted):
        for at, (each, found) in enumerate(zip(wanted, came, strict=True)):
            yield from compare(each, found, (*path, at), f"{field}[{at}]")
    elif not all(map(_equal, wanted, came)):
        yield Mismatch(path=path, field=field, expected=_text(expected), actual=came)


def _equal(expected: object, came: object) -> bool:
    """1 is not true here."""
    return expected == came and isinstance(expected, bool) is isinstance(came, bool)


# -- operators ----------------------------------------------------------------------------------

Operator = Callable[[Data, object, KeyPath, str], Iterator[Mismatch]]


def _number(words: str, holds: Callable[[float, float], bool]) -> Operator:
    def operator(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
        good = (
            isinstance(operand, int | float)
            and isinstance(came, int | float)
            and not isinstance(came, bool)
            and holds(came, operand)
        )
        if not good:
            yield Mismatch(path=path, field=field, expected=f"{words} {operand}", actual=came)

    return operator


def _not(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    if not any(compare(operand, came)):
        yield Mismatch(path=path, field=field, expected=f"not {_text(operand)}", actual=came)


def _one_of(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    choices: list[Data] = list(expand_ranges(operand)) if isinstance(operand, list) else [operand]
    if all(any(compare(each, came)) for each in choices):
        yield Mismatch(path=path, field=field, expected=f"one of {_text(operand)}", actual=came)


def _contains(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    if isinstance(came, str):
        found = isinstance(operand, str) and operand in came
    else:
        found = isinstance(came, list) and any(not any(compare(operand, each)) for each in came)
    if not found:
        words = f"something like {_text(operand)} in it"
        yield Mismatch(path=path, field=field, expected=words, actual=came)


def _each(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    if not isinstance(came, list):
        yield Mismatch(path=path, field=field, expected="a list", actual=came)
        return
    for at, each in enumerate(came):
        yield from compare(operand, each, path, f"{field}[{at}]")


def _size(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    if not isinstance(came, list):
        yield Mismatch(path=path, field=field, expected="a list", actual=came)
        return
    yield from compare(operand, len(came), path, f"size of {field}" if field else "size")


def _matches(operand: Data, came: object, path: KeyPath, field: str) -> Iterator[Mismatch]:
    if not isinstance(came, str) or re.search(str(operand), came) is None:
        yield Mismatch(path=path, field=field, expected=f"text with {operand!r}", actual=came)


OPERATORS: Final = MappingProxyType(
    {
        "at_least": _number("at least", lambda came, limit: came >= limit),
        "at_most": _number("at most", lambda came, limit: came <= limit),
        "above": _number("above", lambda came, limit: came > limit),
        "below": _number("below", lambda came, limit: came < limit),
        "not": _not,
        "one_of": _one_of,
        "contains": _contains,
        "each": _each,
        "size": _size,
        "matches": _matches,
    }
)
"""By name. No field of any answer is named so."""


def _text(value: object) -> str:
    from json import dumps

    return dumps(value, default=str)
