"""The docstrings below the fields of models, which describe them in OpenAPI and in help.

Python keeps no docstring of a field, so they are read from the source, when the first is wanted.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache

from fencepost.verbs.derived import Derived
from fencepost.verbs.model import FieldInfo, Model


def field_description(field: FieldInfo) -> str | None:
    """The docstring below a field, in its model or in the class that it comes from."""
    return _description(field.model, field.name)


@cache
def _description(model: type[Model], name: str) -> str | None:
    if issubclass(model, Derived) and name in model.descriptions:
        return model.descriptions[name]
    if issubclass(model, Derived) and model.documented_in is not None:
        owner, documented = model.documented_in.get(name, (None, None))
        if owner is not None and documented is None:
            return inspect.getdoc(owner)
        if owner is not None:
            return _docstrings(owner.__module__).get(owner.__name__, {}).get(str(documented))
    found = (
        _docstrings(base.__module__).get(base.__name__, {}).get(name) for base in model.__mro__
    )
    return next((text for text in found if text is not None), None)


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Of the fields of the classes of a module, by the names of both."""
    if not module.startswith("fencepost."):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef))
    return {each.name: dict(_fields(each)) for each in classes}


def _fields(made: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(made.body, made.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
