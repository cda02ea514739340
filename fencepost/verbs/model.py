"""The ground of bodies and answers: a `msgspec.Struct` with a description of its fields.

The names of what callers use are those of pydantic's models (``model_validate``, ``model_dump``),
which tests know. A model costs next to nothing until data is read as one, and answers are written
and read by msgspec alone. `fencepost.verbs.reading` reads bodies, and names all that is wrong with
one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_origin,
)

from msgspec import NODEFAULT, DecodeError, Struct, StructMeta, convert, field, json
from msgspec.structs import fields, replace

from fencepost.verbs.problems import InvalidModel, Problem

Example: TypeAlias = Mapping[str, Any]
"""A model as JSON."""
Examples: TypeAlias = Sequence[Example]


class Before(NamedTuple):
    """An annotation: a function of what is given, whose result is read in its place.

    A ValueError of it is a problem of the field.
    """

    read: Callable[[object], object]
    given: Any = None
    """The type of what may be given, for its JSON Schema; None where it is the field's own."""


class After(NamedTuple):
    """An annotation: a function of a value that is of the right type, which refuses or changes it.

    A ValueError of it is a problem of the field.
    """

    read: Callable[[Any], object]


class Says(NamedTuple):
    """An annotation: the text about any wrong value, in place of all that is wrong with it."""

    text: str


class FieldInfo(Struct, frozen=True, kw_only=True):
    """A field of a model."""

    model: "type[Model]"
    name: str
    json_name: str
    """Its name in JSON."""
    annotation: Any
    """Its type, with the annotations of it."""
    default: Any = NODEFAULT
    default_factory: Callable[[], Any] | None = None

    @property
    def kind(self) -> Any:  # noqa: ANN401  # any type
        """Its type alone."""
        is_annotated = get_origin(self.annotation) is Annotated
        return get_args(self.annotation)[0] if is_annotated else self.annotation

    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is NODEFAULT and self.default_factory is None

    def get_default(self) -> Any:  # noqa: ANN401  # of any type
        """Its default."""
        return self.default if self.default_factory is None else self.default_factory()


class ModelMeta(StructMeta):
    """Makes every model frozen, and its fields given by name alone."""

    def __new__(  # noqa: PYI034  # a metaclass has no Self
        mcls: type["ModelMeta"],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = True,
        kw_only: bool = True,
        dict: bool = False,  # noqa: A002  # as msgspec names it
    ) -> "ModelMeta":
        """See `msgspec.Struct`."""
        if not dict:  # a class has it where its base does
            return super().__new__(mcls, name, bases, namespace, frozen=frozen, kw_only=kw_only)
        return super().__new__(
            mcls, name, bases, namespace, frozen=frozen, kw_only=kw_only, dict=True
        )

    @property
    def model_fields(self) -> Mapping[str, FieldInfo]:
        """The fields by name, in order."""
        return _fields(self)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Model(Struct, metaclass=ModelMeta, frozen=True, kw_only=True):
    """Data with named fields."""

    examples: ClassVar[Examples] = ()
    """For its description."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The fields in order, each with its value."""
        return ((name, getattr(self, name)) for name in self.__struct_fields__)

    @classmethod
    def model_validate(cls, given: object) -> Self:
        """Data as a model: an object of JSON, or one that is such a model already.

        :raises InvalidModel: Where it is none.
        """
        if isinstance(given, cls):
            return given
        try:
            made: Self = convert(given, cls)
        except ValueError as error:  # msgspec's own is one
            raise InvalidModel([Problem(text=_in_our_manner(error))]) from None
        return made

    @classmethod
    def model_validate_json(cls, content: str | bytes) -> Self:
        """A text of JSON as a model.

        :raises InvalidModel: Where it is none.
        """
        made: Self = decode(cls, content)
        return made

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
        exclude: Collection[str] = (),
    ) -> dict[str, Any]:
        """The fields as plain data.

        :param mode: ``json``: by the names that they have in JSON, and arrays are lists.
        :param exclude_unset: Without those that were not given.
        :param exclude: The names of others that are left out.
        """
        kept = _Kept(mode == "json", exclude_unset, exclude_defaults, exclude_none)
        made = _object(self, kept)
        return {name: value for name, value in made.items() if name not in exclude}

    def model_dump_json(self) -> str:
        """All fields as JSON."""
        return json.encode(self).decode()

    def model_copy(self, *, update: Mapping[str, object] | None = None) -> Self:
        """The same with other values of some fields, by name, which are not checked."""
        return replace(self, **(update or {}))

    @property
    def model_fields_set(self) -> frozenset[str]:
        """The names of the fields that were given, as far as it is known: that differ."""
        infos = type(self).model_fields.values()
        return frozenset(
            each.name
            for each in infos
            if each.is_required() or getattr(self, each.name) != each.get_default()
        )


class Checked(Model, dict=True):
    """A model that `fencepost.verbs.reading` reads, and that has checks of its own."""

    is_query: ClassVar[bool] = False
    """Whether it is read from a query, which is all text."""

    @classmethod
    def read_first(cls, given: object) -> object:
        """What is read in place of what is given, before any field.

        :raises ValueError: With what is wrong with the whole.
        """
        return given

    @classmethod
    def check_field(cls, name: str, value: object, /) -> None:
        """Check a field that has been read.

        :raises ValueError: With what is wrong with it.
        """

    def check(self) -> None:
        """Check the whole, once its fields are right.

        :raises ValueError: With what is wrong; an `InvalidModel` names the places of several.
        """

    @property
    def model_fields_set(self) -> frozenset[str]:
        """The names of the fields that were given; where it was not read, of those that differ."""
        given: frozenset[str] | None = self.__dict__.get("given")
        return super().model_fields_set if given is None else given

    def set_given(self, names: Iterable[str]) -> None:
        """Note which fields were given."""
        self.__dict__["given"] = frozenset(names)

    def model_copy(self, *, update: Mapping[str, object] | None = None) -> Self:
        """See `Model.model_copy`; what is updated is given."""
        made = super().model_copy(update=update)
        made.set_given(self.model_fields_set | (update or {}).keys())
        return made


def decode(kind: type[Any], content: str | bytes) -> Any:  # noqa: ANN401  # a value of this type
    """A text of JSON as a model, or as a list of models.

    :raises InvalidModel: Where it is none.
    """
    try:
        return json.decode(content, type=kind)
    except (DecodeError, ValueError) as error:
        raise InvalidModel([Problem(text=_in_our_manner(error))]) from None


def _in_our_manner(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].lower()}{text[1:]}"


@cache
def _fields(model: type[Model]) -> Mapping[str, FieldInfo]:
    return {
        each.name: FieldInfo(
            model=model,
            name=each.name,
            json_name=each.encode_name,
            annotation=each.type,
            default=each.default,
            default_factory=None if each.default_factory is NODEFAULT else each.default_factory,
        )
        for each in fields(model)
    }


# -- as plain data ------------------------------------------------------------------------------


class _Kept(NamedTuple):
    """Which fields are in plain data, and how."""

    as_json: bool
    without_unset: bool
    without_defaults: bool
    without_none: bool

    def has(self, model: Model, info: FieldInfo, value: object) -> bool:
        if self.without_none and value is None:
            return False
        if self.without_defaults and not info.is_required() and value == info.get_default():
            return False
        return not self.without_unset or info.name in model.model_fields_set


def _object(model: Model, kept: _Kept) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for info in type(model).model_fields.values():
        value = getattr(model, info.name)
        if kept.has(model, info, value):
            made[info.json_name if kept.as_json else info.name] = _plain(value, kept)
    return made


def _plain(value: object, kept: _Kept) -> Any:  # noqa: ANN401  # as the value
    if isinstance(value, Model):
        return _object(value, kept)
    if isinstance(value, list | tuple):
        plain = [_plain(each, kept) for each in value]
        return plain if kept.as_json or isinstance(value, list) else tuple(plain)
    if isinstance(value, Mapping):
        return {_key(name, kept): _plain(each, kept) for name, each in value.items()}
    return value.value if kept.as_json and isinstance(value, Enum) else value


def _key(name: object, kept: _Kept) -> object:
    return str(name) if kept.as_json else name
