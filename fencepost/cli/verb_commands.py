"""A command for every verb of the catalogue, made of what the catalogue says about it."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import typer
from pydantic import TypeAdapter, ValidationError

from fencepost.cli import tables
from fencepost.cli.asking import AsJson, ControlUrl, line_to
from fencepost.cli.blocks import show
from fencepost.cli.completing import completer
from fencepost.cli.given import read
from fencepost.cli.hints import hint
from fencepost.cli.parameters import Kind, Parameter, parameters
from fencepost.verbs.answers.base import Answer
from fencepost.verbs.catalogue import CATALOGUE, Method, Shape, Verb
from fencepost.verbs.problems import problems
from fencepost.verbs.remote import Refused, Unreachable

Command: TypeAlias = Callable[..., None]

BY_WORDS: Final = MappingProxyType({words: verb for verb in CATALOGUE for words in verb.commands})
"""The verb of each command."""
_PANELS: Final = MappingProxyType({Method.GET: "See", Method.POST: "Do", Method.DELETE: "Do"})
_CONTROL: Final = "control"
_AS_JSON: Final = "as_json"
_MOST: Final = "most"


def add_verb(app: typer.Typer, words: str) -> None:
    """Add a verb's command.

    :param app: Its name is the words of the command but the last.
    """
    verb, last = BY_WORDS[words], words.rsplit(maxsplit=1)[-1]
    does = verb.last_words.get(last, verb.does)
    add = app.command(last, help=does, rich_help_panel=_PANELS[verb.method])
    add(command(verb, last))


def command(verb: Verb, last_word: str = "") -> Command:
    """What typer calls when a verb is to be carried out.

    :param last_word: Of the command; it is given where the verb wants it to be.
    """
    known = parameters(verb)
    said = {verb.last_word: last_word} if verb.last_word else {}

    def carry_out(**texts: object) -> None:
        given = read(verb, known, texts, said)
        url = texts[_CONTROL]
        as_json = bool(texts[_AS_JSON])
        with line_to(str(url) if url else None) as line:
            try:
                if verb.shape is Shape.STREAM:
                    stream = line.call_stream(verb, verb.answers, given.path, given.fields)
                    _follow(stream, texts[_MOST], as_json=as_json)
                    return
                content = line.ask(verb, given.path, given.body)
            except Refused as error:
                more = hint(error, line, given.path, given.fields)
                raise Refused(error.code, f"{error.message}{more}") from None
        print_answer(verb, content, as_json=as_json)

    # typer reads a command's options from its signature; this one is made of the catalogue.
    carry_out.__dict__["__signature__"] = inspect.Signature(list(_signature(verb, known)))
    return carry_out


def print_answer(verb: Verb, content: bytes, *, as_json: bool) -> None:
    """Show what a verb answered.

    :param content: As it came.
    :raises Unreachable: When it is something else.
    """
    if as_json:
        print(content.decode(), flush=True)
        return
    try:
        if verb.shape is Shape.LIST:
            kind = verb.answers
            adapter = TypeAdapter(list[kind])  # type: ignore[valid-type]  # known when it runs
            answers = adapter.validate_json(content)
            show([tables.many(kind, answers)])
        else:
            show(tables.one(verb.answers.model_validate_json(content)))
    except ValidationError as error:
        what = f"something else than {verb.answers.__name__}: {problems(error)}"
        raise Unreachable(f"{verb.method} {verb.path} answered {what}") from None


def _follow(stream: Iterator[Answer], most: object, *, as_json: bool) -> None:
    """Print what comes, a line each, until it ends or Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        for answer in islice(stream, most if isinstance(most, int) else None):
            if as_json:
                print(answer.model_dump_json(), flush=True)
            else:
                show(tables.one(answer))


# -- what typer is told of a verb ---------------------------------------------------------------


def _signature(verb: Verb, known: Sequence[Parameter]) -> Iterator[inspect.Parameter]:
    """First what is required, as Python asks for."""
    for each in known:
        yield _declared(each, verb)
    if verb.shape is Shape.STREAM:
        option = typer.Option("--count", metavar="N", min=0, help="End after so many.")
        yield _keyword(_MOST, Annotated[int | None, option], None)
    yield _keyword(_CONTROL, ControlUrl, None)
    yield _keyword(_AS_JSON, AsJson, False)


def _declared(parameter: Parameter, verb: Verb) -> inspect.Parameter:
    """A parameter as typer knows it: text, but for flags."""
    if parameter.is_argument:
        info = typer.Argument(
            metavar=parameter.metavar,
            help=_help(parameter),
            autocompletion=completer(parameter, verb),
            show_default=False,
        )
    else:
        info = typer.Option(
            *parameter.flags,
            metavar=None if parameter.kind is Kind.FLAG else parameter.metavar,
            help=_help(parameter),
            autocompletion=completer(parameter, verb),
            show_default=parameter.default is not None,
        )
    if parameter.kind is Kind.FLAG:
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
    """What the model's docstring says, for somebody who writes no JSON."""
    text = " ".join(parameter.description.split()).replace("``", "").replace('"', "")
    text = text.replace("null", "always" if parameter.may_be_always else "left out")
    repeated = " May be repeated." if parameter.kind.is_repeated else ""
    return f"{text}{repeated}".strip()
