"""The error codes in an answer, wherever its API has them.

Every answer is looked through, so what does it is compiled: for each API and version a function
with just the loops that lead to a code.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, TypeAlias

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.schema import Shape, message_shape

NO_ERRORS: Final[tuple[int, ...]] = ()
_ERROR_CODE: Final = "error_code"
_Find: TypeAlias = Callable[[object], tuple[int, ...]]


def errors_in(api: Api, version: int, answer: object) -> tuple[int, ...]:
    """Every error code of an answer but 0; as often as it is there."""
    return _finder(api.name, version)(answer)


@cache
def _finder(name: str, version: int) -> _Find:
    shape = message_shape(name, "response", version)
    lines = ["def find(v0):", " found = none", *_lines(shape, 0), " return found"]
    names: dict[str, Any] = {"none": NO_ERRORS}
    exec("\n".join(lines), names)
    found: _Find = names["find"]
    return found


def _lines(shape: Shape, depth: int) -> Iterator[str]:
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


def _has_code(shape: Shape) -> bool:
    return any(
        field.name == _ERROR_CODE or (field.struct is not None and _has_code(field.struct))
        for field in shape.fields
    )
