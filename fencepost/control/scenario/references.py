"""``$name.field.0``: a part of what an earlier step answered."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from fencepost.control.scenario.document import Data, Path

_REFERENCE: Final = re.compile(r"\$(?P<name>[A-Za-z_][\w-]*)(?P<fields>(\.[\w-]+)*)")


class Unresolved(Exception):
    """A reference names nothing that is there. The text says what."""


def reference(value: object) -> tuple[str, list[str]] | None:
    """The name and the fields of a reference; None for any other value."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    return found["name"], found["fields"].split(".")[1:]


def references(data: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Where references stand in data, and the names in them."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from references(value, (*path, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from references(value, (*path, at))
    elif (found := reference(data)) is not None:
        yield path, found[0]


def resolve(data: Data, answers: Mapping[str, Data]) -> Data:
    """Data with what its references refer to.

    :param answers: By the names of steps.
    :raises Unresolved: When one has no such field.
    """
    if isinstance(data, dict):
        return {key: resolve(value, answers) for key, value in data.items()}
    if isinstance(data, list):
        return [resolve(each, answers) for each in data]
    found = reference(data)
    if found is None:
        return data[1:] if isinstance(data, str) and data.startswith("$$") else data
    name, fields = found
    if name not in answers:
        raise Unresolved(f"${name} has no answer yet")
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
        raise Unresolved(f"there is no {text}; there are {', '.join(value)}")
    raise Unresolved(f"there is no {text}")
