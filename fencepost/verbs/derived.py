"""Models of the fields of dataclasses: a fault's are those of `fencepost.broker.faults.rules`.

A field whose type JSON does not have says itself how JSON writes it. The descriptions are the
docstrings of the dataclasses, which `fencepost.verbs.descriptions` reads when they are needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import reduce
from operator import or_
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from msgspec import Meta

from fencepost.broker.faults.kinds import KINDS, Action
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import RecordSelector, Selectors, json_forms
from fencepost.verbs.model import Model, ModelMeta, Says

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

M = TypeVar("M", bound=Model)
Fields = dict[str, tuple[Any, Any]]
"""By name the type and the default, `_REQUIRED` where there is none."""
Documented = Mapping[str, tuple[type, str | None]]
_REQUIRED: Final = ...
_SAID: Final = {
    "api": "input should be Kafka's name of an API, its key, an array of these, or '*'",
}
"""The text about any wrong value of a field that has several types."""
_ANSWERED_ACTIONS: Final[Mapping[str, Any]] = {
    "action": dict[str, object] | None,
    "sequence": tuple[dict[str, object], ...] | None,
}


class Derived:
    """A model whose fields are those of a dataclass."""

    __slots__ = ()

    documented_in: ClassVar[Documented | None] = None
    """For each field the class and its field whose docstring describes it, or the class alone.

    None where the fields are still to be added.
    """
    descriptions: ClassVar[Mapping[str, str]] = {}
    """Of fields that are described otherwise than in the dataclass."""

    @classmethod
    def is_complete(cls) -> bool:
        """Whether the fields of the dataclass have been added."""
        return cls.documented_in is not None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a field that is derived
            """The dataclass has the type of the field."""


def add_fields(
    derived: Fields, documented_in: Documented, descriptions: Mapping[str, str] | None = None
) -> Callable[[type[M]], type[M]]:
    """Decorate a model: its own fields come first, the derived ones after them."""

    def decorate(model: type[M]) -> type[M]:
        defaults = {name: value for name, (_, value) in derived.items() if value is not _REQUIRED}
        namespace = {
            "__module__": model.__module__,
            "__qualname__": model.__qualname__,
            "__doc__": model.__doc__,
            "__annotations__": {name: kind for name, (kind, _) in derived.items()},
            **defaults,
            "documented_in": documented_in,
            "descriptions": descriptions or {},
        }
        return cast("type[M]", ModelMeta(model.__name__, (model,), namespace))

    return decorate


def given_fault(action: type[Model], record: type[Model]) -> Callable[[type[M]], type[M]]:
    """Add the fields of a fault as a test gives them."""
    derived, documented = _given(FaultRule)
    derived["record"] = (record | None, None)
    derived["action"] = (action | None, None)
    steps: Any = tuple[action, ...]  # type: ignore[valid-type]  # known when it runs
    derived["sequence"] = (steps | None, None)
    return add_fields(derived, documented)


def given_selectors(record: type[Model]) -> Callable[[type[M]], type[M]]:
    """Add the selectors of a fault as a test gives them."""
    derived, documented = _given(Selectors)
    derived["record"] = (record | None, None)
    return add_fields(derived, documented)


def given_record() -> Callable[[type[M]], type[M]]:
    """Add the fields that select a record."""
    return add_fields(*_given(RecordSelector))


def _given(data: "type[DataclassInstance]") -> tuple[Fields, Documented]:
    """The fields of a dataclass as a test gives them, and where they are described."""
    forms = json_forms(data)
    derived: Fields = {}
    for each in fields(data):
        default = _REQUIRED if each.default is MISSING else each.default
        given = forms[each.name].given if each.name in forms else each.type
        kind = _json_type(given)
        if each.name in _SAID:
            kind = Annotated[kind, Says(_SAID[each.name])]
        derived[each.name] = (kind, default)
    documented: dict[str, tuple[type, str | None]] = {
        each.name: (owner, each.name)
        for each in fields(data)
        for owner in data.__mro__
        if each.name in vars(owner).get("__annotations__", {})
    }
    return derived, documented


def given_action() -> Callable[[type[M]], type[M]]:
    """Add one field for each kind of fault."""
    derived: Fields = {}
    documented: dict[str, tuple[type, str | None]] = {}
    for name, kind in KINDS.items():
        value_type, field_name = _value_of(kind)
        derived[name] = (value_type | None, None)
        documented[name] = (kind, field_name)
    return add_fields(derived, documented)


def answered_fault(descriptions: Mapping[str, str]) -> Callable[[type[M]], type[M]]:
    """Add the fields of a fault as it is answered.

    :param descriptions: Of fields that are described otherwise than where they are given.
    """
    forms = json_forms(FaultRule)
    derived: Fields = {}
    for each in fields(FaultRule):
        answered = forms[each.name].answered if each.name in forms else each.type
        if each.name in _ANSWERED_ACTIONS:
            answered = _ANSWERED_ACTIONS[each.name]
        derived[each.name] = (_without_limits(answered), _REQUIRED)
    return add_fields(derived, {}, descriptions)


def _value_of(kind: type[Action]) -> tuple[Any, str | None]:
    """The type of an action's value in JSON, and the field that has it; true without a field."""
    values = fields(kind)  # type: ignore[arg-type]  # every kind is a dataclass
    if not values:
        return Literal[True], None
    (value,) = values
    forms = json_forms(kind)
    given = forms[value.name].given if value.name in forms else value.type
    return _json_type(given), value.name


def _json_type(annotation: Any) -> Any:  # noqa: ANN401  # any annotation of a field
    """The annotation as models have it: with its bounds, and an enum as its values."""
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, map(_json_type, get_args(annotation)))
    if get_origin(annotation) is Annotated:
        inner, limits = get_args(annotation)
        constraints = {name: value for name, value in limits._asdict().items() if value is not None}
        return Annotated[inner, Meta(**constraints)]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return Literal[tuple(each.value for each in annotation)]
    return annotation


def _without_limits(annotation: Any) -> Any:  # noqa: ANN401  # as above
    if get_origin(annotation) in (Union, UnionType):
        return reduce(or_, map(_without_limits, get_args(annotation)))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
