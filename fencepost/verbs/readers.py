"""What reads single values of JSON: functions of a value and its place, which add to problems.

`fencepost.verbs.reading` puts them together, as the types of a body's fields say.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, Final, TypeAlias

from msgspec import Meta

from fencepost.verbs.model import After, Before, Says
from fencepost.verbs.problems import LEFT_OUT, InvalidModel, Place, Problem, ProblemKind

Problems: TypeAlias = list[Problem]
Reader: TypeAlias = Callable[[Any, Place, Problems], Any]
"""Of a value, its place, and the problems that it adds to; then its result means nothing."""
LISTS: Final = (list, tuple, set, frozenset)
"""What stands for an array."""
_INTEGER: Final = re.compile(r"\s*[+-]?\d+(_\d+)*(\.0+)?\s*", re.ASCII)
_MAX_DIGITS: Final = 4300
"""Of a text that Python reads as an integer."""
_SWITCHES: Final = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


def tried(do: Callable[[], object], given: object, place: Place, problems: Problems) -> Any:  # noqa: ANN401  # what it makes
    """What a function makes of a value; what it refuses becomes a problem."""
    try:
        return do()
    except InvalidModel as error:
        for each in error.problems:
            add(problems, (*place, *each.place), each.text, each.given, each.kind)
    except ValueError as error:
        add(problems, place, str(error), given)
    return None


def add(
    problems: Problems, place: Place, text: str, given: object, kind: ProblemKind = "wrong"
) -> None:
    """Add a problem."""
    problems.append(Problem(place=place, text=text, given=given, kind=kind))


def _read_any(given: object, _place: Place, _problems: Problems) -> object:
    return given


def _read_str(given: object, place: Place, problems: Problems) -> object:
    if not isinstance(given, str):
        add(problems, place, "input should be a valid string", given, "not_text")
    return given


def _read_int(given: object, place: Place, problems: Problems) -> object:
    if not isinstance(given, int) or isinstance(given, bool):
        add(problems, place, "input should be a valid integer", given)
    return given


def _read_bool(given: object, place: Place, problems: Problems) -> object:
    if not isinstance(given, bool):
        add(problems, place, "input should be a valid boolean", given)
    return given


def _read_float(given: object, place: Place, problems: Problems) -> object:
    """A number with a fraction, for which a text may stand."""
    if isinstance(given, int | float | str):
        try:
            return float(given)
        except (ValueError, OverflowError):
            pass
    text = "input should be a valid number"
    if isinstance(given, str):
        text += ", unable to parse string as a number"
    add(problems, place, text, given)
    return None


def _read_none(given: object, place: Place, problems: Problems) -> object:
    if given is not None:
        add(problems, place, "input should be null", given)
    return None


def _read_int_text(given: object, place: Place, problems: Problems) -> object:
    if not isinstance(given, str):
        return _read_int(given, place, problems)
    if len(given) > _MAX_DIGITS:
        text = "unable to parse input string as an integer, exceeded maximum size"
    elif _INTEGER.fullmatch(given):
        return int(given.partition(".")[0])
    else:
        text = "input should be a valid integer, unable to parse string as an integer"
    add(problems, place, text, given)
    return None


def _read_bool_text(given: object, place: Place, problems: Problems) -> object:
    if not isinstance(given, str):
        return _read_bool(given, place, problems)
    found = _SWITCHES.get(given.lower())
    if found is None:
        text = "input should be a valid boolean, unable to interpret input"
        add(problems, place, text, given)
    return found


PLAIN: Final[Mapping[object, Reader]] = {
    object: _read_any,
    str: _read_str,
    int: _read_int,
    bool: _read_bool,
    float: _read_float,
    NoneType: _read_none,
}
TEXTUAL: Final[Mapping[object, Reader]] = {**PLAIN, int: _read_int_text, bool: _read_bool_text}
"""Where a text stands for a number or a switch as well."""


def literal(values: Sequence[object]) -> Reader:
    """One of some values."""
    known = {(type(each), each) for each in values}
    text = f"input should be {_alternatives(values)}"

    def read(given: object, place: Place, problems: Problems) -> object:
        kind = str if isinstance(given, str) else type(given)
        if isinstance(given, str | int) and (kind, given) in known:
            return given
        add(problems, place, text, given)
        return None

    return read


def enum(kind: type[Enum]) -> Reader:
    """A member of an enum, by its value."""
    text = f"input should be {_alternatives([each.value for each in kind])}"

    def read(given: object, place: Place, problems: Problems) -> object:
        try:
            return kind(given)
        except ValueError:
            add(problems, place, text, given)
            return None

    return read


def _alternatives(values: Sequence[object]) -> str:
    """Such as ``'a', 'b' or 'c'``."""
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last


def list_of(element: Reader) -> Reader:
    """An array of any length."""

    def read(given: object, place: Place, problems: Problems) -> object:
        if not isinstance(given, LISTS):
            add(problems, place, "input should be a valid array", given)
            return None
        return tuple([element(each, (*place, at), problems) for at, each in enumerate(given)])

    return read


def array_of(elements: Sequence[Reader]) -> Reader:
    """An array with one value for each of some types."""

    def read(given: object, place: Place, problems: Problems) -> object:
        if not isinstance(given, list | tuple):
            add(problems, place, "input should be a valid array", given)
            return None
        if len(given) > len(elements):
            text = _too_long(len(elements), len(given))
            add(problems, place, text, given)
            return None
        pairs = zip(elements, given, strict=False)
        made = [read(each, (*place, at), problems) for at, (read, each) in enumerate(pairs)]
        for at in range(len(given), len(elements)):
            add(problems, (*place, at), LEFT_OUT, given, "left_out")
        return tuple(made)

    return read


def object_of(read_key: Reader, read_value: Reader) -> Reader:
    """An object: its names and values are each of one type."""

    def read(given: object, place: Place, problems: Problems) -> object:
        if not isinstance(given, Mapping):
            add(problems, place, "input should be a valid object", given)
            return None
        return {
            read_key(name, (*place, str(name), "[key]"), problems): read_value(
                each, (*place, str(name)), problems
            )
            for name, each in given.items()
        }

    return read


# -- annotations --------------------------------------------------------------------------------


def annotated(read: Reader, annotations: Iterable[object]) -> Reader:
    """With what annotations add, the first of them innermost."""
    for each in annotations:
        match each:
            case Meta():
                read = _limited(read, each)
            case Before(function, _):
                read = _before(function, read)
            case After(function):
                read = _after(read, function)
            case Says(text):
                read = _saying(read, text)
            case _:
                raise TypeError(f"nothing is known of the annotation {each!r}")
    return read


def _before(function: Callable[[object], object], inner: Reader) -> Reader:
    def read(given: object, place: Place, problems: Problems) -> object:
        before = len(problems)
        made = tried(lambda: function(given), given, place, problems)
        return None if len(problems) > before else inner(made, place, problems)

    return read


def _after(inner: Reader, function: Callable[[Any], object]) -> Reader:
    def read(given: object, place: Place, problems: Problems) -> object:
        before = len(problems)
        made = inner(given, place, problems)
        if len(problems) > before:
            return None
        return tried(lambda: function(made), given, place, problems)

    return read


def _saying(inner: Reader, text: str) -> Reader:
    def read(given: object, place: Place, problems: Problems) -> object:
        before = len(problems)
        made = inner(given, place, problems)
        if len(problems) > before:
            problems[before:] = [Problem(place=place, text=text, given=given)]
        return made

    return read


def _limited(inner: Reader, limits: Meta) -> Reader:
    """A number between limits, or an array or text of a length between them."""

    def read(given: object, place: Place, problems: Problems) -> object:
        before = len(problems)
        made = inner(given, place, problems)
        if len(problems) == before:
            text = _beyond(limits, made)
            if text is not None:
                add(problems, place, text, given)
        return made

    return read


def _beyond(limits: Meta, value: Any) -> str | None:  # noqa: ANN401  # as the limits want it
    """In what way a value is beyond its limits; None where it is not."""
    if limits.ge is not None and not value >= limits.ge:
        return f"input should be greater than or equal to {limits.ge}"
    if limits.gt is not None and not value > limits.gt:
        return f"input should be greater than {limits.gt}"
    if limits.le is not None and not value <= limits.le:
        return f"input should be less than or equal to {limits.le}"
    if limits.max_length is not None and len(value) > limits.max_length:
        return _too_long(limits.max_length, len(value))
    if limits.min_length is not None and len(value) < limits.min_length:
        return f"array should have at least {_items(limits.min_length)}, not {len(value)}"
    return None


def _too_long(most: int, length: int) -> str:
    return f"array should have at most {_items(most)}, not {length}"


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'} after validation"
