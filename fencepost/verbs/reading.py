"""Reads data of JSON as a body, and names everything that is wrong with it.

msgspec stops at the first problem, and says it in words of Python. So a body is read by functions
that are made of the types of its fields, one for each, when the first of its kind is read. Nothing
is converted, but for what JSON has no type for: an array is read as a tuple, a text as a member of
an enum. In a query, and as the key of an object, a text stands for a number or a switch as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from fencepost.verbs import readers
from fencepost.verbs.model import Checked, FieldInfo
from fencepost.verbs.problems import LEFT_OUT, InvalidModel, Place
from fencepost.verbs.readers import Problems, Reader, add, tried

B = TypeVar("B", bound=Checked)
_MISSING: Final = object()


def read_checked(model: type[B], given: object) -> B:
    """Data as a body.

    :raises InvalidModel: With all that is wrong.
    """
    problems: Problems = []
    made: B = _model(model)(given, (), problems)
    if problems:
        raise InvalidModel(problems)
    return made


def read_value(kind: object, given: object, place: Place) -> Any:  # noqa: ANN401  # of this type
    """A value that HTTP has as text.

    :param kind: Its type, with annotations.
    :raises InvalidModel: With all that is wrong.
    """
    problems: Problems = []
    made = _text_reader(kind)(given, place, problems)
    if problems:
        raise InvalidModel(problems)
    return made


@cache
def _text_reader(kind: object) -> Reader:
    return _reader(kind, is_text=True)


# -- models -------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """A field, and what reads it."""

    info: FieldInfo
    is_required: bool
    read: Reader


@cache
def _model(model: type[Checked]) -> Reader:
    """What reads a body."""
    made = [
        _Field(info, info.is_required(), _reader(info.annotation, is_text=model.is_query))
        for info in model.model_fields.values()
    ]
    known = {each.info.json_name for each in made}
    no_object = f"input should be a valid object or instance of {model.__name__}"

    def read(given: object, place: Place, problems: Problems) -> object:
        if isinstance(given, model):
            return given
        before = len(problems)
        given = tried(lambda: model.read_first(given), given, place, problems)
        if len(problems) > before:
            return None
        if not isinstance(given, Mapping):
            add(problems, place, no_object, given, "not_object")
            return None
        for name in given:
            if name not in known:
                names = ", ".join(each.info.json_name for each in made)
                add(problems, place, f"there is no field {name!r}; there are {names}", given)
                return None
        values = _values(model, made, given, place, problems)
        if len(problems) > before:
            return None
        body = model(**values)
        body.set_given(values)
        tried(body.check, given, place, problems)
        return body

    return read


def _values(
    model: type[Checked],
    known: Iterable[_Field],
    given: Mapping[str, object],
    place: Place,
    problems: Problems,
) -> dict[str, Any]:
    """The fields that are given, by name."""
    values: dict[str, Any] = {}
    for info, is_required, read in known:
        value = given.get(info.json_name, _MISSING)
        if value is not _MISSING:
            inner = (*place, info.json_name)
            before = len(problems)
            found = values[info.name] = read(value, inner, problems)
            if len(problems) == before:
                tried(partial(model.check_field, info.name, found), value, inner, problems)
        elif is_required:
            add(problems, (*place, info.json_name), LEFT_OUT, given, "left_out")
    return values


# -- types --------------------------------------------------------------------------------------


def _reader(kind: Any, *, is_text: bool) -> Reader:  # noqa: ANN401  # any annotation
    """What reads values of a type.

    :param is_text: Whether numbers and switches are given as text.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return readers.annotated(_reader(arguments[0], is_text=is_text), arguments[1:])
    if origin in (Union, UnionType):
        return _union(arguments, is_text=is_text)
    if origin is Literal:
        return readers.literal(arguments)
    if origin is tuple:
        return _array(arguments, is_text=is_text)
    if origin is dict:
        return readers.object_of(
            _reader(arguments[0], is_text=True), _reader(arguments[1], is_text=is_text)
        )
    if issubclass(kind, Enum):
        return readers.enum(kind)
    if issubclass(kind, Checked):
        return _model(kind)
    return readers.TEXTUAL[kind] if is_text else readers.PLAIN[kind]


def _array(elements: Sequence[Any], *, is_text: bool) -> Reader:
    if elements[-1] is Ellipsis:
        return readers.list_of(_reader(elements[0], is_text=is_text))
    return readers.array_of([_reader(each, is_text=is_text) for each in elements])


# -- one of several types -----------------------------------------------------------------------


class _Form(NamedTuple):
    """One of the types that a value may have."""

    name: str
    """As a problem tells it from the others."""
    of: tuple[type, ...]
    """The types of Python that such values have in JSON; none where it is no array or object."""
    read: Reader


def _union(kinds: Sequence[Any], *, is_text: bool) -> Reader:
    """One of several types: what is wrong is said of those that what is given may be meant as."""
    forms = [_form(each, is_text=is_text) for each in kinds if each is not NoneType]
    may_be_null = NoneType in kinds

    def read(given: object, place: Place, problems: Problems) -> object:
        if given is None and may_be_null:
            return None
        meant = _meant(forms, given)
        wrong: list[Problems] = []
        for form in meant:
            found: Problems = []
            made = form.read(given, place, found)
            if not found:
                return made
            wrong.append(found)
        if len(meant) == 1:
            problems += wrong[0]
        else:
            for form, found in zip(meant, wrong, strict=True):
                for each in found:
                    inner = (*place, form.name, *each.place[len(place) :])
                    add(problems, inner, each.text, each.given, each.kind)
        return None

    return read


def _meant(forms: Sequence[_Form], given: object) -> Sequence[_Form]:
    """The forms that what is given may be meant as."""
    fitting = [each for each in forms if isinstance(given, each.of)]
    return fitting or [each for each in forms if not each.of] or forms[:1]


def _form(kind: Any, *, is_text: bool) -> _Form:  # noqa: ANN401  # any type
    read = _reader(kind, is_text=is_text)
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(plain)
    if origin is tuple:
        return _Form("array", readers.LISTS, read)
    if origin is dict:
        return _Form("object", (Mapping,), read)
    if origin is Literal:
        return _Form(f"literal[{','.join(map(repr, get_args(plain)))}]", (), read)
    if issubclass(plain, Checked):
        return _Form(plain.__name__, (Mapping, plain), read)
    return _Form(plain.__name__, (), read)
