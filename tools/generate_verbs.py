"""Write fencepost/verbs/methods.py from the catalogue: ``python -m tools.generate_verbs``.

tests/verbs/test_methods.py fails when the file is not what this would write.
"""

import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fencepost.verbs.catalogue import CATALOGUE, PATH_TYPES, Shape, Verb
from fencepost.verbs.model import FieldInfo, Model

TARGET: Final = Path(__file__).resolve().parent.parent / "fencepost" / "verbs" / "methods.py"


def render() -> str:
    """The whole module, formatted."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    done = subprocess.run(command, input=_render(), capture_output=True, text=True, check=True)
    return done.stdout


def _render() -> str:
    lines = [
        '"""Every verb as a method, sync and async. Written by tools/generate_verbs.py.',
        "",
        "All raise `fencepost.verbs.remote.Refused` when the cluster refuses, and `Unreachable`",
        "where there is none.",
        '"""',
        "",
        "from collections.abc import AsyncIterator, Iterator, Mapping, Sequence",
        "from types import EllipsisType",
        "from typing import Literal",
        "",
        *_imports(),
        "from fencepost.verbs.catalogue import VERBS",
        "from fencepost.verbs.remote import Remote",
        "from fencepost.verbs.remote_async import AsyncRemote",
        "",
        "__tracebackhide__ = True  # pytest shows the line of the test, and none of this module",
        *_class("Verbs", "Remote", "The verbs of a cluster, for sync code.", is_async=False),
        *_class("AsyncVerbs", "AsyncRemote", "The verbs of a cluster, for asyncio.", is_async=True),
    ]
    return "\n".join(lines) + "\n"


def _imports() -> Iterator[str]:
    """Of what verbs answer."""
    used: dict[str, set[str]] = {}
    for verb in CATALOGUE:
        used.setdefault(verb.response_model.__module__, set()).add(verb.response_model.__name__)
    for module, names in sorted(used.items()):
        yield f"from {module} import {', '.join(sorted(names, key=str.casefold))}"


def _class(name: str, remote: str, does: str, *, is_async: bool) -> Iterator[str]:
    yield from ("", "", f"class {name}:", f'    """{does}', "")
    yield from ("    :param remote: Its control API.", '    """', "")
    yield f"    def __init__(self, remote: {remote}) -> None:"
    yield "        self.remote = remote"
    for verb in CATALOGUE:
        yield ""
        yield from _method(verb, is_async=is_async)


def _method(verb: Verb, *, is_async: bool) -> Iterator[str]:
    fields = {} if verb.request_model is None else verb.request_model.model_fields
    positional = [name for name in verb.positional if name in fields]
    named = [name for name in fields if name not in positional]
    yield from _signature(verb, fields, positional, named, is_async=is_async)
    yield f'        """{verb.summary}"""'
    path = ", ".join(f'"{name}": {name}' for name in verb.path_parameters)
    given = ", ".join(f'"{each.json_name}": {_given(name, each)}' for name, each in fields.items())
    call = {Shape.ONE: "call", Shape.LIST: "call_list", Shape.STREAM: "call_stream"}[verb.shape]
    wait = "await " if is_async and verb.shape is not Shape.STREAM else ""
    # The commas at the ends have the formatter put every argument on a line of its own.
    path, given = (f"{{{each}{',' if each else ''}}}" for each in (path, given))
    yield f"        return {wait}self.remote.{call}("
    yield f'            VERBS["{verb.name}"], {verb.response_model.__name__}, {path}, {given}'
    yield "        )"


def _given(name: str, field: FieldInfo) -> str:
    return f"{name} or {{}}" if field.default_factory is dict else name


def _signature(
    verb: Verb,
    fields: Mapping[str, FieldInfo],
    positional: list[str],
    named: list[str],
    *,
    is_async: bool,
) -> Iterator[str]:
    answer = verb.response_model.__name__
    if verb.shape is Shape.LIST:
        answer = f"list[{answer}]"
    elif verb.shape is Shape.STREAM:
        answer = f"{'AsyncIterator' if is_async else 'Iterator'}[{answer}]"
    parameters = [
        "self",
        *(f"{name}: {PATH_TYPES[name].__name__}" for name in verb.path_parameters),
    ]
    nulls = frozenset() if verb.request_model is None else verb.request_model.null_counts
    parameters += [_parameter(name, fields[name], nulls) for name in positional]
    if named:
        parameters += ["*", *(_parameter(name, fields[name], nulls) for name in named)]
    prefix = "async def" if is_async and verb.shape is not Shape.STREAM else "def"
    yield f"    {prefix} {verb.name}("
    yield from (f"        {each}," for each in parameters)
    yield f"    ) -> {answer}:"


def _parameter(name: str, field: FieldInfo, nulls: frozenset[str]) -> str:
    text = f"{name}: {_type(field.kind)}"
    if field.is_required():
        return text
    if name in nulls:
        return f"{name}: {_type(types.EllipsisType | field.kind)} = ..."
    default = field.get_default()
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, dict):
        return f"{text} | None = None"
    return f"{text} = {default!r}"


def _type(kind: Any) -> str:
    """How a caller may give what a field takes."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(_type(each) for each in arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is tuple:
        element = reduce(or_, (each for each in arguments if each is not ...))
        return f"Sequence[{_type(element)}]"
    if origin is dict:
        return f"Mapping[{', '.join(_type(each) for each in arguments)}]"
    return _plain(kind)


def _plain(kind: type) -> str:
    if kind is types.EllipsisType:
        return "EllipsisType"
    if kind is type(None):
        return "None"
    if issubclass(kind, Enum):
        return f"Literal[{', '.join(repr(each.value) for each in kind)}]"
    if issubclass(kind, Model):
        # A word may stand for some of an action's values.
        return f"{'str | ' if hasattr(kind, 'words') else ''}Mapping[str, object]"
    return kind.__name__


if __name__ == "__main__":
    TARGET.write_text(render())
