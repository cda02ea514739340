"""The models of the verbs: validation errors as one line of text, and descriptions of fields.

The docstrings below the fields become their descriptions in OpenAPI and in the help of commands.
Pydantic can read them itself, at every import of the models, which takes a fifth of a command's
time. So they are read when the first schema is made.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import CATALOGUE
from fencepost.verbs.derived import Derived


def problems(error: ValidationError) -> str:
    """All errors, each once."""
    return "; ".join(dict.fromkeys(problem(each["loc"], each) for each in error.errors()))


def problem(place: Sequence[str | int], error: ErrorDetails | Mapping[str, object]) -> str:
    """One error as text.

    :param place: The path of the field, outermost first.
    """
    text = str(error["msg"]).removeprefix("Value error, ")
    for python, json in (("tuple", "array"), ("Tuple", "Array"), ("dictionary", "object")):
        text = text.replace(python, json)
    name = dotted_path(place)
    return f"{name}: {text[:1].lower()}{text[1:]}" if name else text


def dotted_path(place: Sequence[str | int]) -> str:
    """A path of fields as text: ``assignments[0][1]``."""
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".")


def all_models() -> list[type[BaseModel]]:
    """All models of requests and answers: those of the verbs, and others defined so far."""
    for verb in CATALOGUE:
        _ = verb.request_model, verb.response_model  # which imports their modules
    made = (*_subclasses(Body), *_subclasses(Answer))
    return [
        each for each in made if not issubclass(each, Derived) or each.documented_in is not None
    ]


_described: Final[set[type[BaseModel]]] = set()


def add_descriptions() -> None:
    """Describe the fields of `all_models`; another call does so for those made since."""
    made = all_models()
    new = [model for model in made if model not in _described]
    for model in new:
        _add_descriptions(model)
    if new:
        _rebuild(made)
    _described.update(new)


def _rebuild(models: Sequence[type[BaseModel]]) -> None:
    """Build the schemas again: they may have been built without the descriptions.

    A schema has those of the models in it: none that is outdated may be left when the first is
    built.
    """
    for model in models:
        if "__pydantic_core_schema__" in model.__dict__:
            del model.__pydantic_core_schema__
    for model in models:
        model.model_rebuild(force=True)


def _subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and those derived from it, in the order in which they were made."""
    yield model
    for each in model.__subclasses__():
        yield from _subclasses(each)


def _add_descriptions(model: type[BaseModel]) -> None:
    if issubclass(model, Derived) and model.documented_in is not None:
        for name, (owner, documented) in model.documented_in.items():
            known = _docstrings(owner.__module__).get(owner.__name__, {})
            text = inspect.getdoc(owner) if documented is None else known.get(documented)
            model.model_fields[name].description = text
    for base in model.__mro__:
        known = _docstrings(base.__module__).get(base.__name__, {})
        for name, field in model.model_fields.items():
            if field.description is None:
                field.description = known.get(name)


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
