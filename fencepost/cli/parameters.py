"""A verb's parameters as the command line takes them: made of its path and of the model it takes.

Values are read as text and converted to JSON's types. The models validate them, so that errors have
the same messages as over HTTP.
"""

import json
import re
from collections.abc import Iterator, Sequence
from enum import Enum, StrEnum, auto
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, Union, get_args, get_origin

from msgspec import Struct

from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import PATH_TYPES, Verb
from fencepost.verbs.fault_bodies import FaultAction
from fencepost.verbs.model import FieldInfo, Model

ALWAYS: Final = "always"
"""The word for null where null means no limit."""
_NUMBER: Final = re.compile(r"-?[0-9]+")
_METAVARS: Final = {
    "api": "API",
    "bandwidth": "BYTES",
    "broker": "B",
    "client_id": "ID",
    "error": "NAME|CODE",
    "group": "GROUP",
    "id": "ID",
    "leader": "B",
    "partition": "P",
    "pieces": "BYTES",
    "stale_metadata": "EPOCH",
    "topic": "TOPIC",
    "transactional_id": "ID",
    "versions": "LOW-HIGH",
}
_TEXT_FORMS: Final = {"offsets": "TOPIC:P:OFFSET"}
"""How an object is written as text, by the name of the option."""
_MILLISECONDS: Final = frozenset({"ms", "delay", "delay_ms", "throttle", "timeout_ms"})


class Kind(StrEnum):
    """How a text is read."""

    TEXT = auto()
    NUMBER = auto()
    FRACTION = auto()
    TEXT_OR_NUMBER = auto()
    FLAG = auto()
    """Without a value: it is there or not."""
    LIST = auto()
    """Given repeatedly, or with commas; or one of `Parameter.choices` in its place."""
    TEXTS = auto()
    """As a list, of texts alone."""
    LISTS = auto()
    """Given repeatedly, each time a list with commas."""
    PAIRS = auto()
    """Given repeatedly, as KEY=VALUE."""
    OBJECTS = auto()
    """Given repeatedly, as text or as a JSON object."""
    JSON = auto()
    """Text, or JSON where the encoding is ``json``."""
    NULL = auto()
    """Without a value: where it is there, its field is null."""
    PAIR = auto()
    """NAME=VALUE; the first may be given alone, and the second is null then."""
    TEXT_OR_LIST = auto()
    """One value, or several with commas."""
    ACTIONS = auto()
    """Given repeatedly, or with commas: an action of a fault, such as ``delay=200`` or ``drop``."""

    @property
    def is_repeated(self) -> bool:
        """Whether it may be given more than once."""
        return self in _REPEATED

    @property
    def is_flag(self) -> bool:
        """Whether it has no value on the command line."""
        return self in (Kind.FLAG, Kind.NULL)


_REPEATED: Final = frozenset(
    {Kind.LIST, Kind.TEXTS, Kind.LISTS, Kind.PAIRS, Kind.OBJECTS, Kind.ACTIONS}
)


class Parameter(Struct, frozen=True, kw_only=True):
    """One argument or option of a command."""

    field_path: tuple[str, ...]
    """Where its value belongs: names of fields, the outermost first."""
    is_in_path: bool = False
    is_argument: bool = False
    kind: Kind
    choices: tuple[str, ...] = ()
    """All possible values; of a list, words that may stand in its place."""
    may_be_always: bool = False
    """Whether it may be null, which is not what holds where it is left out."""
    is_any_text: bool = False
    """Whether it is none of the names that others of its name are."""
    may_repeat_names: bool = False
    """Whether two pairs may have the same name."""
    is_required: bool = False
    default: str | None = None
    """What holds where nothing is given, as text; None where there is nothing to say."""
    negates: bool = False
    """Whether it is a flag that sets its field to false."""
    info: FieldInfo | None = None
    """Its field; None of a parameter in the path."""

    @property
    def description(self) -> str:
        """The docstring of its field."""
        if self.kind is Kind.NULL:
            return f"Without a {self.name}."
        from fencepost.verbs.descriptions import field_description  # which few commands need

        return "" if self.info is None else field_description(self.info) or ""

    @property
    def name(self) -> str:
        """Of its field."""
        return self.field_path[-1]

    @property
    def key(self) -> str:
        """As a Python identifier, none of them a keyword."""
        prefix = "no_" if self.kind is Kind.NULL else ""
        return f"{prefix}{'_'.join(self.field_path)}_"

    @property
    def flags(self) -> tuple[str, ...]:
        """Such as ``--leave-isr``. What is given one by one may be named in the singular."""
        negates = self.negates or self.kind is Kind.NULL
        flag = f"--{'no-' if negates else ''}{self.name.replace('_', '-')}"
        if self.kind.is_repeated and flag.endswith("s"):
            return (flag.removesuffix("s"), flag)
        return (flag,)

    @property
    def display_name(self) -> str:
        """How a message names it."""
        return self.metavar if self.is_argument else self.flags[0]

    @property
    def metavar(self) -> str:
        """What stands for its value in a usage."""
        if self.kind in _METAVARS_OF_KINDS:
            return _METAVARS_OF_KINDS[self.kind]
        name = self._value
        return f"{name}|{ALWAYS}" if self.may_be_always else name

    @property
    def _value(self) -> str:
        if self.kind is Kind.LIST:
            return "|".join((*self.choices, "B"))
        if self.kind is Kind.OBJECTS:
            return f"{_TEXT_FORMS.get(self.name, 'TEXT')}|JSON"
        if self.kind is Kind.TEXTS:
            return self.name.removesuffix("s").upper()
        if self.choices:
            return "|".join(self.choices)
        if self.name in _METAVARS and not self.is_any_text:
            return _METAVARS[self.name]
        if self.name in _MILLISECONDS:
            return "MS"
        if self.is_argument:
            return self.name.upper()
        if self.kind in (Kind.TEXT, Kind.JSON):
            return "TEXT"
        return "N" if self.kind is Kind.NUMBER else "X"

    def read(self, given: str | Sequence[str]) -> object:
        """What JSON would have for it; a text that will not do as it is, for the model to refuse.

        :param given: A sequence where it may be repeated.
        """
        if not isinstance(given, str):
            return self._read_all(given)
        if self.kind in (Kind.NUMBER, Kind.TEXT_OR_NUMBER):
            return _number(given)
        if self.kind is Kind.PAIR:
            name, equals, value = given.partition("=")
            return [name, value if equals else None]
        if self.kind is Kind.TEXT_OR_LIST:
            return _list(given) if "," in given else _number(given)
        return _fraction(given) if self.kind is Kind.FRACTION else given

    def _read_all(self, given: Sequence[str]) -> object:
        if self.kind is Kind.PAIRS:
            return _pairs(given)
        if self.kind is Kind.OBJECTS:
            return [_object(text) for text in given]
        if self.kind is Kind.LISTS:
            return [_list(text) for text in given]
        if self.kind is Kind.TEXTS:
            return [part.strip() for text in given for part in text.split(",")]
        if self.kind is Kind.ACTIONS:
            return [_action(part.strip()) for text in given for part in text.split(",")]
        if len(given) == 1 and given[0] in self.choices:
            return given[0]
        return [element for text in given for element in _list(text)]


def _pairs(given: Sequence[str]) -> object:
    """By name; where names repeat, a list."""
    pairs = [(key, value) for key, _, value in (text.partition("=") for text in given)]
    by_name = dict(pairs)
    return by_name if len(by_name) == len(pairs) else [list(each) for each in pairs]


def _object(text: str) -> object:
    """What begins as a JSON object is one, and all else is text.

    :raises ValueError: When it is no JSON.
    """
    return json.loads(text) if text.lstrip().startswith("{") else text


_METAVARS_OF_KINDS: Final = {
    Kind.LISTS: "B,B,...",
    Kind.PAIRS: "KEY=VALUE",
    Kind.PAIR: "NAME=VALUE",
    Kind.ACTIONS: "ACTION,...",
}


def _action(text: str) -> object:
    """``delay=200`` is ``{"delay": 200}``; a word alone is an action without a value."""
    name, equals, value = text.partition("=")
    return {name: _number(value)} if equals else name


def _list(text: str) -> list[int | str]:
    return [_number(part.strip()) for part in text.split(",")]


def _number(text: str) -> int | str:
    return int(text) if _NUMBER.fullmatch(text) else text


def _fraction(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def usage(verb: Verb) -> str:
    """A command as one types it; what may be left out in brackets."""
    words = " ".join(filter(None, (verb.command, "|".join(verb.subcommands))))
    known = [_usage(each) for each in parameters(verb)]
    if verb.name_first:
        first, last = words.rsplit(maxsplit=1)
        words = f"{first} {known.pop(0)} {last}"
    return " ".join(["fencepost", words, *known])


def _usage(parameter: Parameter) -> str:
    if parameter.is_argument:
        return parameter.metavar
    flag = parameter.flags[0]
    text = flag if parameter.kind.is_flag else f"{flag} {parameter.metavar}"
    return text if parameter.is_required else f"[{text}]"


# -- of a verb ----------------------------------------------------------------------------------


def parameters(verb: Verb) -> tuple[Parameter, ...]:
    """All parameters of a verb's command: those in its path, its arguments, its options."""
    path = [
        Parameter(
            field_path=(name,),
            is_in_path=True,
            is_argument=True,
            kind=Kind.NUMBER if PATH_TYPES[name] is int else Kind.TEXT,
            is_required=True,
        )
        for name in verb.path_parameters
    ]
    if verb.request_model is None:
        return tuple(path)
    fields = [
        each
        for each in _fields(verb.request_model, (), verb.positional)
        if each.field_path != (verb.subcommand_field,)
    ]
    arguments = [each for each in fields if each.is_argument]
    arguments.sort(key=lambda each: verb.positional.index(each.name))
    return (*path, *arguments, *(each for each in fields if not each.is_argument))


def _fields(
    model: type[Model], outer: tuple[str, ...], positional: Sequence[str]
) -> Iterator[Parameter]:
    """Those of a model; of a model in it, what that consists of stands beside the others."""
    for name, field in model.model_fields.items():
        place = (*outer, field.json_name)
        inner = _model(field.kind)
        if inner is None:
            yield _parameter(place, field, is_argument=not outer and name in positional)
        for each in (inner,) if inner is not None else _alternatives(field):
            yield from _fields(each, place, ())
        if issubclass(model, Body) and name in model.null_counts:
            yield Parameter(field_path=place, kind=Kind.NULL, info=field)


def _parameter(place: tuple[str, ...], field: FieldInfo, *, is_argument: bool) -> Parameter:
    types = list(_types(field.kind))
    is_required = field.is_required() and not any(_alternatives(field))
    default = None if field.is_required() or field.default_factory else field.default
    kind = _kind(types)
    return Parameter(
        field_path=place,
        is_argument=is_argument,
        kind=kind,
        choices=tuple(_choices(types)),
        may_repeat_names=kind is Kind.PAIRS and any(get_origin(each) is tuple for each in types),
        is_any_text=Literal[True] in types and str in types,
        may_be_always=NoneType in types and default is not None,
        is_required=is_required,
        default=None if default in (None, ()) or kind is Kind.FLAG else str(default),
        negates=kind is Kind.FLAG and default is True,
        info=field,
    )


def _model(annotation: object) -> type[Model] | None:
    """The model that a field has, which may be left out; None where it has something else."""
    kinds = [each for each in _types(annotation) if each is not NoneType]
    if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], Model):
        return kinds[0]
    return None


def _alternatives(field: FieldInfo) -> Iterator[type[Model]]:
    """Models that may be given in place of a plain value."""
    for each in _types(field.kind):
        model = _model(each)
        if model is not None:
            yield model


def _types(annotation: object) -> Iterator[object]:
    """The types that a value may have, without their annotations."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _types(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _types(each)
    else:
        yield annotation


def _kind(types: Sequence[object]) -> Kind:
    origins = {get_origin(each): each for each in types}
    if dict in origins:
        return Kind.PAIRS
    if tuple in origins:
        return _kind_of_tuple(get_args(origins[tuple]), may_be_one=str in types)
    if bool in types or (Literal[True] in types and str not in types):
        return Kind.FLAG
    if int in types:
        return Kind.TEXT_OR_NUMBER if str in types else Kind.NUMBER
    if object in types:
        return Kind.JSON
    return Kind.FRACTION if float in types else Kind.TEXT


def _kind_of_tuple(elements: Sequence[object], *, may_be_one: bool) -> Kind:
    """The kind of an array, by its elements.

    :param may_be_one: Whether one of them may be given in its place.
    """
    if may_be_one:
        return Kind.TEXT_OR_LIST
    if Ellipsis not in elements:
        return Kind.PAIR
    kinds = list(_types(elements[0]))
    if kinds == [FaultAction]:
        return Kind.ACTIONS
    if any(map(_model, kinds)):
        return Kind.OBJECTS
    if kinds == [str]:
        return Kind.TEXTS
    return Kind.LISTS if get_origin(kinds[0]) is tuple else Kind.LIST


def _choices(types: Sequence[object]) -> Iterator[str]:
    for each in types:
        if get_origin(each) is Literal:
            yield from (str(value) for value in get_args(each) if isinstance(value, str))
        elif isinstance(each, type) and issubclass(each, Enum):
            yield from (str(value.value) for value in each)
