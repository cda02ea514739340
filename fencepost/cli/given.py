"""What a command was given, read and checked by the model of its verb."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fencepost.cli.hints import check_name
from fencepost.cli.mistakes import Mistake, nearest
from fencepost.cli.parameters import ALWAYS, Kind, Parameter
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.problems import problem

Fields = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a verb is asked with."""

    path: Mapping[str, object]
    """The parameters in its path."""
    fields: Mapping[str, object]
    """The others that were given, as JSON has them."""
    body: Body | None
    """The others, checked."""


def read(
    verb: Verb, known: Sequence[Parameter], texts: Mapping[str, object], said: Mapping[str, object]
) -> Given:
    """Make of a command's texts what its verb takes.

    :param texts: By `Parameter.key`; None, False and nothing at all where nothing was given.
    :param said: Fields that the words of the command give.
    :raises Mistake: When something will not do.
    """
    path: Fields = {}
    fields: Fields = dict(said)
    for parameter in known:
        value = _value(parameter, texts[parameter.key])
        check_name(parameter, value)
        if parameter.is_in_path:
            path[parameter.name] = value
        else:
            _put(fields, parameter, value)
    return Given(path=path, fields=fields, body=_checked(verb, known, fields))


def _value(parameter: Parameter, given: object) -> object:
    if parameter.kind is Kind.FLAG or not isinstance(given, (str, list)):
        return given or None
    if parameter.kind is Kind.PAIRS:
        for text in given:
            if not text.partition("=")[0] or "=" not in text:
                raise Mistake(f"{parameter.shown}: {text!r} is not {parameter.metavar}")
    if given == []:
        return None
    value = parameter.read(given)
    if parameter.is_in_path and parameter.kind is Kind.NUMBER and not isinstance(value, int):
        raise Mistake(f"{parameter.shown}: {given!r} is not a number")
    return value


def _put(fields: Fields, parameter: Parameter, value: object) -> None:
    """Set a field, in the models that it is in."""
    inner = fields
    for name in parameter.place[:-1]:
        made = inner.setdefault(name, {})
        assert isinstance(made, dict)
        inner = made
    if value is not None:
        inner[parameter.name] = None if parameter.may_be_always and value == ALWAYS else value


def _checked(verb: Verb, known: Sequence[Parameter], fields: Mapping[str, object]) -> Body | None:
    if verb.takes is None:
        return None
    try:
        return verb.takes.model_validate(fields)
    except ValidationError as error:
        told = dict.fromkeys(_told(known, each) for each in error.errors())
        raise Mistake("; ".join(told)) from None


def _told(known: Sequence[Parameter], error: ErrorDetails) -> str:
    """What is wrong, by the option's name and not by the field's."""
    place = error["loc"]
    for parameter in known:
        if place[: len(parameter.place)] == parameter.place:
            break
    else:
        return problem(place if len(place) > 1 else (), error)
    given = error["input"]
    shown = (
        f"{parameter.shown} {given}" if isinstance(given, (str, int, float)) else parameter.shown
    )
    text = problem((shown,), error)
    if parameter.may_be_always:
        text += f" or {ALWAYS}"
    near = nearest(given, parameter.choices) if isinstance(given, str) else None
    return f"{text}; did you mean {near}?" if near else text
