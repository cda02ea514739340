"""A command for every verb of the catalogue, made of what the catalogue says about it.

Arguments and options are read and checked by the request model of the verb.
"""

import contextlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import typer
from msgspec import Struct

from fencepost.cli import tables
from fencepost.cli.output import show, show_json
from fencepost.cli.parameters import ALWAYS, Kind, Parameter, parameters
from fencepost.cli.typer_options import (
    AsJson,
    ControlToken,
    ControlUrl,
    completer,
    control_connection,
)
from fencepost.cli.usage_errors import InvalidUsage, check_name, parse_pairs, suggest_existing
from fencepost.protocol.lookup import did_you_mean
from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import CATALOGUE, Method, Shape, Verb
from fencepost.verbs.model import decode
from fencepost.verbs.problems import InvalidModel, Problem, text_at
from fencepost.verbs.remote import Refused, Unreachable

Fields = dict[str, object]


class BoundArguments(Struct, frozen=True, kw_only=True):
    """What a verb is asked with."""

    path: Mapping[str, object]
    """The parameters in its path."""
    fields: Mapping[str, object]
    """The others that were given, as JSON has them."""
    body: Body | None
    """The others, checked."""


def bind_arguments(
    verb: Verb, known: Sequence[Parameter], texts: Mapping[str, object], said: Mapping[str, object]
) -> BoundArguments:
    """Make of a command's texts what its verb takes.

    :param texts: By `Parameter.key`; None, False and nothing at all where nothing was given.
    :param said: Fields that the words of the command give.
    :raises InvalidUsage: When something will not do.
    """
    path: Fields = {}
    fields: Fields = dict(said)
    for parameter in known:
        value = _value(parameter, texts[parameter.key])
        check_name(parameter, value)
        if parameter.is_in_path:
            path[parameter.name] = value
        else:
            _set_field(fields, parameter, value)
    _parse_json(known, fields)
    return BoundArguments(path=path, fields=fields, body=_checked(verb, known, fields))


def _value(parameter: Parameter, given: object) -> object:
    if parameter.kind.is_flag or not isinstance(given, (str, list)):
        return (not parameter.negates) if given else None
    if parameter.kind is Kind.PAIRS:
        parse_pairs(
            parameter.display_name,
            parameter.metavar,
            given,
            may_repeat_names=parameter.may_repeat_names,
        )
    if given == []:
        return None
    try:
        value = parameter.read(given)
    except ValueError as error:
        raise InvalidUsage(f"{parameter.display_name}: no JSON: {error}") from None
    if parameter.is_in_path and parameter.kind is Kind.NUMBER and not isinstance(value, int):
        raise InvalidUsage(f"{parameter.display_name}: {given!r} is not a number")
    return value


def _set_field(fields: Fields, parameter: Parameter, value: object) -> None:
    """Set a field, in the models that it is in."""
    if value is None:
        return
    inner = fields
    for name in parameter.field_path[:-1]:
        made = inner.setdefault(name, {})
        if not isinstance(made, dict):
            raise InvalidUsage(f"give --{name} or {parameter.flags[0]}, not both")
        inner = made
    if parameter.kind is Kind.NULL:
        if parameter.name in inner:
            raise InvalidUsage(f"give --{parameter.name} or {parameter.display_name}, not both")
        inner[parameter.name] = None
    else:
        inner[parameter.name] = None if parameter.may_be_always and value == ALWAYS else value


def _parse_json(known: Sequence[Parameter], fields: Fields) -> None:
    """Read the texts of which the encoding says that they are JSON."""
    if fields.get("encoding") != "json":
        return
    for parameter in known:
        text = fields.get(parameter.name)
        if parameter.kind is Kind.JSON and isinstance(text, str):
            try:
                fields[parameter.name] = json.loads(text)
            except ValueError as error:
                raise InvalidUsage(f"{parameter.display_name}: no JSON: {error}") from None


def _checked(verb: Verb, known: Sequence[Parameter], fields: Mapping[str, object]) -> Body | None:
    if verb.request_model is None:
        return None
    try:
        return verb.request_model.model_validate(fields)
    except InvalidModel as error:
        told = dict.fromkeys(_describe_problem(known, each) for each in error.problems)
        raise InvalidUsage("; ".join(told)) from None


def _describe_problem(known: Sequence[Parameter], problem: Problem) -> str:
    """What is wrong, by the option's name and not by the field's."""
    place = problem.place
    for parameter in known:
        if place[: len(parameter.field_path)] == parameter.field_path:
            break
    else:
        return text_at(place if len(place) > 1 else (), problem.text)
    given = problem.given
    shown = (
        f"{parameter.display_name} {given}"
        if isinstance(given, (str, int, float))
        else parameter.display_name
    )
    text = text_at((shown,), problem.text)
    if parameter.may_be_always:
        text += f" or {ALWAYS}"
    return text + (did_you_mean(given, parameter.choices) if isinstance(given, str) else "")


Command: TypeAlias = Callable[..., None]

BY_WORDS: Final = MappingProxyType({words: verb for verb in CATALOGUE for words in verb.commands})
"""The verb of each command."""
_PANELS: Final = MappingProxyType({Method.GET: "See", Method.POST: "Do", Method.DELETE: "Do"})
_CONTROL: Final = "control"
_TOKEN: Final = "control_token"  # noqa: S105  # a name
_AS_JSON: Final = "as_json"
_COUNT: Final = "most"


def add_verb(app: typer.Typer, words: str, *, with_help: bool) -> None:
    """Add a verb's command.

    :param app: Its name is the words of the command but the last.
    :param with_help: Whether its arguments and options are described.
    """
    verb, last = BY_WORDS[words], words.rsplit(maxsplit=1)[-1]
    does = verb.subcommands.get(last, verb.summary)
    add = app.command(last, help=does, rich_help_panel=_PANELS[verb.method])
    add(command(verb, last, with_help=with_help))


def command(verb: Verb, last_word: str = "", *, with_help: bool = False) -> Command:
    """What typer calls when a verb is to be carried out.

    :param last_word: Of the command; it is given where the verb wants it to be.
    :param with_help: Whether its arguments and options are described.
    """
    known = parameters(verb)
    said = {verb.subcommand_field: last_word} if verb.subcommand_field else {}

    def carry_out(**texts: object) -> None:
        given = bind_arguments(verb, known, texts, said)
        url, token = texts[_CONTROL], texts[_TOKEN]
        as_json = bool(texts[_AS_JSON])
        with control_connection(str(url) if url else None, str(token) if token else None) as line:
            try:
                if verb.shape is Shape.STREAM:
                    stream = line.call_stream(verb, verb.response_model, given.path, given.fields)
                    _follow(stream, texts[_COUNT], as_json=as_json)
                    return
                content = line.call_raw(verb, given.path, given.body)
            except Refused as error:
                more = suggest_existing(error, line, given.path, given.fields)
                raise Refused(error.code, f"{error.message}{more}") from None
        print_answer(verb, content, as_json=as_json)

    # typer reads a command's options from its signature; this one is made of the catalogue.
    carry_out.__dict__["__signature__"] = inspect.Signature(
        list(_signature(verb, known, with_help=with_help))
    )
    return carry_out


def print_answer(verb: Verb, content: bytes, *, as_json: bool) -> None:
    """Show what a verb answered.

    :param content: As it came.
    :raises Unreachable: When it is something else.
    """
    if as_json:
        show_json(content.decode())
        return
    try:
        if verb.shape is Shape.LIST:
            kind = verb.response_model
            show([tables.many(kind, decode(list[kind], content))])  # type: ignore[valid-type]  # known when it runs
        else:
            show(tables.one(verb.response_model.model_validate_json(content)))
    except InvalidModel as error:
        what = f"something else than {verb.response_model.__name__}: {error}"
        raise Unreachable(f"{verb.method} {verb.path} answered {what}") from None


def _follow(stream: Iterator[Answer], most: object, *, as_json: bool) -> None:
    """Print what comes, a line each, until it ends or Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        for answer in islice(stream, most if isinstance(most, int) else None):
            if as_json:
                show_json(answer.model_dump_json())
            else:
                show(tables.one(answer))


# -- what typer is told of a verb ---------------------------------------------------------------


def _signature(
    verb: Verb, known: Sequence[Parameter], *, with_help: bool
) -> Iterator[inspect.Parameter]:
    """First what is required, as Python asks for."""
    for each in known:
        yield _declared(each, verb, _help(each) if with_help else "")
    if verb.shape is Shape.STREAM:
        option = typer.Option("--count", metavar="N", min=0, help="End after N.")
        yield _keyword(_COUNT, Annotated[int | None, option], None)
    yield _keyword(_CONTROL, ControlUrl, None)
    yield _keyword(_TOKEN, ControlToken, None)
    yield _keyword(_AS_JSON, AsJson, False)


def _declared(parameter: Parameter, verb: Verb, text: str) -> inspect.Parameter:
    """A parameter as typer knows it: text, but for flags."""
    if parameter.is_argument:
        info = typer.Argument(
            metavar=parameter.metavar,
            help=text,
            autocompletion=completer(parameter, verb),
            show_default=False,
        )
    else:
        info = typer.Option(
            *parameter.flags,
            metavar=None if parameter.kind.is_flag else parameter.metavar,
            help=text,
            autocompletion=completer(parameter, verb),
            show_default=parameter.default is not None,
        )
    if parameter.kind.is_flag:
        return _keyword(parameter.key, Annotated[bool, info], False)
    kind: object = list[str] if parameter.kind.is_repeated else str
    if parameter.is_required:
        return _keyword(parameter.key, Annotated[kind, info], inspect.Parameter.empty)
    optional = kind | None  # type: ignore[operator]  # it is a type
    return _keyword(parameter.key, Annotated[optional, info], parameter.default)


def _keyword(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _help(parameter: Parameter) -> str:
    """The model's docstring, without the marks that only JSON needs."""
    text = " ".join(parameter.description.split()).replace("``", "").replace('"', "")
    text = text.replace("null", "always" if parameter.may_be_always else "left out")
    return f"{text}{_MORE_HELP.get(parameter.kind, '')}".strip()


_MORE_HELP: Final = {
    **{kind: " May be repeated." for kind in Kind if kind.is_repeated},
    Kind.ACTIONS: " Each is the name of an option above, such as drop or delay=200.",
    Kind.TEXT_OR_LIST: " Several are given with commas.",
}
