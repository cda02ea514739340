"""Whether an expectation names fields that the answer can have, told before anything is run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from fencepost.control.scenario.compare import OPERATORS
from fencepost.control.scenario.document import Data, Path
from fencepost.control.scenario.references import reference


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownField:
    """A field that no answer has."""

    path: Path
    known: tuple[str, ...]


def unknown_fields(expected: Data, kind: object, path: Path = ()) -> Iterator[UnknownField]:
    """The fields that an expectation names and that values of a type do not have.

    :param kind: The type of the value that is compared, as models annotate their fields.
    """
    if not isinstance(expected, dict | list) or reference(expected):
        return
    if isinstance(expected, list):
        for at, each in enumerate(expected):
            yield from unknown_fields(each, _element(kind), (*path, at))
    else:
        for name, value in expected.items():
            check = _operator if name in OPERATORS else _field
            yield from check(name, value, kind, (*path, name))


def _operator(name: str, operand: Data, kind: object, path: Path) -> Iterator[UnknownField]:
    if name in ("contains", "each"):
        yield from unknown_fields(operand, _element(kind), path)
    elif name == "not":
        yield from unknown_fields(operand, kind, path)
    elif name == "one_of" and isinstance(operand, list):
        for at, each in enumerate(operand):
            yield from unknown_fields(each, kind, (*path, at))


def _field(name: str, value: Data, kind: object, path: Path) -> Iterator[UnknownField]:
    element = _element(kind)
    if name.isdigit() and element is not Any:
        yield from unknown_fields(value, element, path)
        return
    models = _models(kind)
    if not models:
        return
    for model in models:
        found = model.model_fields.get(name)
        if found is not None:
            yield from unknown_fields(value, found.annotation, path)
            return
    known = tuple(dict.fromkeys(each for model in models for each in model.model_fields))
    yield UnknownField(path=path, known=known)


def _models(kind: object) -> list[type[BaseModel]]:
    """The models that a value may be of; none where it may have any fields."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    if _is_union(kind):
        found = [_models(each) for each in get_args(kind) if each is not NoneType]
        return [model for each in found for model in each] if all(found) else []
    return []


def _element(kind: object) -> object:
    """The type of a list's elements; Any where nothing is known."""
    if _is_union(kind):
        found = [_element(each) for each in get_args(kind) if each is not NoneType]
        return next((each for each in found if each is not Any), Any)
    origin = get_origin(kind)
    is_list = isinstance(origin, type) and issubclass(origin, Sequence) and origin is not str
    return get_args(kind)[0] if is_list and get_args(kind) else Any


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, UnionType)
