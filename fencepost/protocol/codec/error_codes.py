"""The error codes in an answer, wherever its API has them.

Every answer is searched, so the search is compiled: for each API and version a function with just
the loops that lead to a code.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.encoded_array import MAY_BE_ENCODED, EncodedArray
from fencepost.protocol.codec.schema import StructSchema, message_schema

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

NO_ERRORS: Final[tuple[int, ...]] = ()
_ERROR_CODE: Final = "error_code"
Finder: TypeAlias = Callable[[object], tuple[int, ...]]


def error_code_finder(api: Api, version: int, draft: "Draft | None" = None) -> Finder:
    """A function that lists the error codes of such an answer but 0, with repetitions."""
    key = api.key, version, draft
    find = _FINDERS.get(key)
    if find is None:
        find = _FINDERS[key] = _compiled(api.name, version, draft)
    return find


_FINDERS: Final[dict[tuple[int, int, "Draft | None"], Finder]] = {}


def _compiled(name: str, version: int, draft: "Draft | None") -> Finder:
    schema = message_schema(name, "response", version, draft)
    # A list grows in place: with a tuple, each code would cost a copy of those before it.
    last = " return tuple(found) if found else none"
    lines = ["def find(v0):", " found = []", *_lines(schema, 0), last]
    names: dict[str, Any] = {"none": NO_ERRORS, "encoded": EncodedArray}
    exec("\n".join(lines), names)
    find: Finder = names["find"]
    return find


def _lines(schema: StructSchema, depth: int) -> Iterator[str]:
    """The lines that search the struct in variable ``v<depth>``."""
    indent, struct = " " * (depth + 1), f"v{depth}"
    for field in schema.fields:
        if field.name == _ERROR_CODE:
            yield f"{indent}if {struct}.{field.name}: found.append({struct}.{field.name})"
        elif field.struct is not None and _has_code(field.struct):
            assert field.array
            assert not field.nullable
            elements = f"{struct}.{field.name}"
            if field.struct.cls.__name__ in MAY_BE_ENCODED:
                array = f"a{depth}"
                yield f"{indent}{array} = {elements}"
                yield f"{indent}if type({array}) is encoded: found += {array}.errors; {array} = ()"
                elements = array
            yield f"{indent}for v{depth + 1} in {elements}:"
            yield from _lines(field.struct, depth + 1)


def _has_code(schema: StructSchema) -> bool:
    return any(
        field.name == _ERROR_CODE or (field.struct is not None and _has_code(field.struct))
        for field in schema.fields
    )
