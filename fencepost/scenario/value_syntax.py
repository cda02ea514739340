"""``a0..a9``: many texts in one.

``$name.field.0``: a part of what an earlier step answered.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from fencepost.scenario.document import Data, KeyPath

T = TypeVar("T")

MAX_TEXTS: Final = 100_000
_RANGE: Final = re.compile(r"(?P<stem>.*?)(?P<first>[0-9]+)\.\.(?P<again>.*?)(?P<last>[0-9]+)")


def expand_ranges(given: Iterable[T]) -> Iterator[T | str]:
    """The elements of a list, with each range in place of its text.

    ``a0..a9`` is a0 to a9, both inclusive; where both ends have as many digits, so have all.
    """
    for each in given:
        found = _RANGE.fullmatch(each) if isinstance(each, str) else None
        if found is None or found["stem"] != found["again"]:
            yield each
            continue
        first, last = int(found["first"]), int(found["last"])
        width = len(found["first"]) if len(found["first"]) == len(found["last"]) else 0
        for number in range(first, min(last, first + MAX_TEXTS) + 1):
            yield f"{found['stem']}{number:0{width}}"


def collapse_ranges(texts: Iterable[object]) -> list[object]:
    """The opposite, for a reader: runs of three and more as ranges."""
    made: list[object] = []
    run: list[tuple[str, int]] = []

    def flush() -> None:
        if len(run) > 2:
            made.append(f"{run[0][0]}{run[0][1]}..{run[-1][0]}{run[-1][1]}")
        else:
            made.extend(f"{stem}{number}" for stem, number in run)
        run.clear()

    for each in texts:
        split = _split(each)
        if split is None:
            flush()
            made.append(each)
            continue
        if run and (run[-1][0], run[-1][1] + 1) != split:
            flush()
        run.append(split)
    flush()
    return made


def _split(text: object) -> tuple[str, int] | None:
    if not isinstance(text, str):
        return None
    stem = text.rstrip("0123456789")
    digits = text[len(stem) :]
    if not digits or (digits[0] == "0" and digits != "0"):
        return None
    return stem, int(digits)


_REFERENCE: Final = re.compile(r"\$(?P<name>[A-Za-z_][\w-]*)(?P<fields>(\.[\w-]+)*)")


class UnresolvedReference(Exception):
    """A reference names nothing that is there. The text says what."""


def parse_reference(value: object) -> tuple[str, list[str]] | None:
    """The name and the fields of a reference; None for any other value."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    return found["name"], found["fields"].split(".")[1:]


def find_references(data: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Where references stand in data, and the names in them."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from find_references(value, (*path, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from find_references(value, (*path, at))
    elif (found := parse_reference(data)) is not None:
        yield path, found[0]


def resolve(data: Data, answers: Mapping[str, Data]) -> Data:
    """Data with what its references refer to.

    :param answers: By the names of steps.
    :raises UnresolvedReference: When one has no such field.
    """
    if isinstance(data, dict):
        return {key: resolve(value, answers) for key, value in data.items()}
    if isinstance(data, list):
        return [resolve(each, answers) for each in data]
    found = parse_reference(data)
    if found is None:
        return data[1:] if isinstance(data, str) and data.startswith("$$") else data
    name, fields = found
    if name not in answers:
        raise UnresolvedReference(f"${name} has no answer yet")
    value = answers[name]
    for at, field in enumerate(fields):
        value = _part(value, field, f"${'.'.join([name, *fields[: at + 1]])}")
    return value


def _part(value: Data, field: str, text: str) -> Data:
    if isinstance(value, dict) and field in value:
        return value[field]
    if isinstance(value, list) and field.isdigit() and int(field) < len(value):
        return value[int(field)]
    if isinstance(value, dict):
        raise UnresolvedReference(f"there is no {text}; there are {', '.join(value)}")
    raise UnresolvedReference(f"there is no {text}")
