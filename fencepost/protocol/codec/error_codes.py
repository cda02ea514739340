"""The error codes in an answer, wherever its API has them.

Every answer is looked through, so what does it is compiled: for each API and version a function
with just the loops that lead to a code.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.schema import StructSchema, message_schema

NO_ERRORS: Final[tuple[int, ...]] = ()
_ERROR_CODE: Final = "error_code"
Finder: TypeAlias = Callable[[object], tuple[int, ...]]


def error_code_finder(api: Api, version: int) -> Finder:
    """What finds every error code but 0 in such answers, each as often as it is there."""
    key = api.key, version
    find = _FINDERS.get(key)
    if find is None:
        find = _FINDERS[key] = _compiled(api.name, version)
    return find


_FINDERS: Final[dict[tuple[int, int], Finder]] = {}


def _compiled(name: str, version: int) -> Finder:
    shape = message_schema(name, "response", version)
    lines = ["def find(v0):", " found = none", *_lines(shape, 0), " return found"]
    names: dict[str, Any] = {"none": NO_ERRORS}
    exec("\n".join(lines), names)
    find: Finder = names["find"]
    return find


def _lines(shape: StructSchema, depth: int) -> Iterator[str]:
    """What looks through the struct in variable ``v<depth>``."""
    indent, struct = " " * (depth + 1), f"v{depth}"
    for field in shape.fields:
        if field.name == _ERROR_CODE:
            yield f"{indent}if {struct}.{field.name}: found += ({struct}.{field.name},)"
        elif field.struct is not None and _has_code(field.struct):
            assert field.array
            assert not field.nullable
            yield f"{indent}for v{depth + 1} in {struct}.{field.name}:"
            yield from _lines(field.struct, depth + 1)


def _has_code(shape: StructSchema) -> bool:
    return any(
        field.name == _ERROR_CODE or (field.struct is not None and _has_code(field.struct))
        for field in shape.fields
    )
