"""The commands as typer has them: help, completion, and all that call a running cluster."""

import inspect
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Final

import typer

from fencepost.cli.output import complain, show, show_json, show_text
from fencepost.cli.serve_options import SERVE_OPTIONS, Option
from fencepost.cli.tables import many
from fencepost.cli.typer_options import AsJson, ControlToken, ControlUrl, control_connection
from fencepost.cli.usage_errors import WRONG_USE, InvalidUsage, UsageError, explain
from fencepost.cli.verb_commands import BY_WORDS, add_verb
from fencepost.verbs.answers.cluster import BrokerState, ClusterState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import VerbError

FAILED: Final = 1
"""The exit code where the cluster refuses or does not answer."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C where it does not mean that all went well."""
MODULES: Final = MappingProxyType(
    {
        "check": "fencepost.cli.check",
        "watch": "fencepost.cli.watch",
        "scenario": "fencepost.cli.scenario",
        "simulate": "fencepost.cli.simulate",
        "audit": "fencepost.cli.audit",
        "load": "fencepost.cli.load",
        "stream": "fencepost.cli.stream",
        "spark": "fencepost.cli.spark",
    }
)
"""Commands with a module of their own, whose ``register`` adds them."""
GROUPS: Final = MappingProxyType(
    {
        "broker": "Stop, start, kill and isolate brokers.",
        "clock": "Advance a manual clock.",
        "fault": "Let requests meet errors, delays, ends of connections and the like.",
        "group": "Look at a group, wait for it, change its members, offsets and coordinator.",
        "records": "Produce, read and expect records.",
        "tier": "Use a partition's remote tier now, lose it, and let it fail or be late.",
        "topic": "Create and delete topics.",
        "transaction": "Look at a transaction, end it, and hold its markers.",
        "trace": "See what clients asked and what they were answered.",
    }
)
"""What the groups of commands are for; `LIST` of ``trace`` may be left out."""
LIST: Final = "list"
SHOW: Final = "show"
_PROGRAM: Final = "fencepost"
_HELP: Final = frozenset({"-h", "--help"})
_COMPLETING: Final = "_FENCEPOST_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run a command that is not ``serve``; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A client names itself as it likes; what the terminal cannot show is escaped.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(_with_words_first(_with_list_subcommand(arguments)))
    except VerbError as error:
        complain(f"{_PROGRAM}: {error}")
        return FAILED


def _run(arguments: Sequence[str]) -> int:
    try:
        code = make_app(arguments)(
            list(arguments), prog_name=_PROGRAM, complete_var=_COMPLETING, standalone_mode=False
        )
    except InvalidUsage as error:
        complain(f"{_path(arguments)}: {error}")
        return WRONG_USE
    except UsageError as error:
        for text in explain(error, _path(arguments)).splitlines():
            complain(text)
        return WRONG_USE
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return code if isinstance(code, int) else 0


def _with_list_subcommand(arguments: Sequence[str]) -> Sequence[str]:
    """``fencepost trace --api Fetch`` is ``fencepost trace list --api Fetch``."""
    if list(arguments[:1]) != ["trace"] or list(arguments[1:2]) in (["-h"], ["--help"]):
        return arguments
    rest = arguments[1:]
    return arguments if rest and not rest[0].startswith("-") else ["trace", LIST, *rest]


def _with_words_first(arguments: Sequence[str]) -> Sequence[str]:
    """``fencepost group NAME wait`` is ``fencepost group wait NAME``; no word is ``show``."""
    first, rest = "".join(arguments[:1]), list(arguments[1:])
    words = [name.split()[1] for name in BY_WORDS if name.startswith(f"{first} ")]
    names_first = {name.split()[0] for name, verb in BY_WORDS.items() if verb.name_first}
    if first not in names_first or not rest or rest[0].startswith("-"):
        return arguments
    name, *more = rest
    has_second = bool(more) and not more[0].startswith("-")
    if name in words and (has_second or not more or not _HELP.isdisjoint(more)):
        return arguments
    word = more.pop(0) if has_second else SHOW
    return [first, word, name, *more]


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command that is asked for, or all of them where help is, a completion, or none of them.

    A command that is not asked for costs a millisecond, and there are many.
    """
    app = _group(_PROGRAM, "A Kafka cluster for tests that does what it is told, when it is told.")
    app.callback()(_program)
    asked = _requested_command(arguments)
    if asked is not None:
        _add(app, asked, with_help=not _HELP.isdisjoint(arguments))
        return app
    app.command(
        "serve",
        help="Serve a cluster until SIGTERM or Ctrl-C. Prints one line of JSON when every listener"
        " accepts: where the brokers are, where the control API is, and the process id.",
    )(_serve)
    for name in (*BY_WORDS, _BROKERS, *MODULES):
        _add(app, name, with_help=True)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        show_text(f"{_PROGRAM} {version(_PROGRAM)}")
        raise typer.Exit


def _program(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """The options of the program itself."""


def _requested_command(arguments: Sequence[str]) -> str | None:
    """The command that is asked for, by its words, if it is clear from the first of them."""
    if _COMPLETING in os.environ:
        return None
    for words in (arguments[:2], arguments[:1]):
        name = " ".join(words)
        if name in BY_WORDS or name in MODULES or name == _BROKERS:
            return name
    return None


def _path(arguments: Sequence[str]) -> str:
    """The words of the command that is asked for."""
    return f"{_PROGRAM} {_requested_command(arguments) or ''}".rstrip()


def _group(name: str, does: str) -> typer.Typer:
    app = typer.Typer(
        name=name,
        help=does,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)  # with it, a group of one command is a group all the same
    return app


def _add(app: typer.Typer, name: str, *, with_help: bool) -> None:
    """Add a command, and the group that it is in.

    :param with_help: Whether its options are described, which takes longer than to carry it out.
    """
    if name in MODULES:
        import_module(MODULES[name]).register(app)
        return
    group, _, last = name.rpartition(" ")
    if group:
        app = _group_in(app, group)
    if name == _BROKERS:
        app.command(last, rich_help_panel="See")(_list_brokers)
    else:
        add_verb(app, name, with_help=with_help)


def _group_in(app: typer.Typer, name: str) -> typer.Typer:
    """The group of that name, which is made where there is none."""
    for each in app.registered_groups:
        if each.typer_instance is not None and each.typer_instance.info.name == name:
            return each.typer_instance
    group = _group(name, GROUPS[name])
    app.add_typer(group)
    return group


_BROKERS: Final = f"broker {LIST}"


def _list_brokers(
    control: ControlUrl = None, control_token: ControlToken = None, as_json: AsJson = False
) -> None:
    """List the brokers."""
    with control_connection(control, control_token) as line:
        state = line.call(VERBS["cluster"], ClusterState, {}, {})
    if as_json:
        show_json(f"[{','.join(each.model_dump_json() for each in state.brokers)}]")
    else:
        show([many(BrokerState, state.brokers)])


def _serve(**given: Sequence[str] | str | bool | None) -> None:
    """Hand over to the path that `fencepost.cli.main` takes at once where no help is asked for."""
    from fencepost.cli.serve import serve

    arguments = []
    for option in SERVE_OPTIONS:
        value = given[option.key]
        if isinstance(value, bool):
            value = str(value).lower()
        texts = [value] if isinstance(value, str) else value or ()
        arguments += [f"{option.flag}={text}" for text in texts]
    raise typer.Exit(serve(arguments))


def _parameter(option: Option) -> inspect.Parameter:
    declared = typer.Option(
        option.flag,
        metavar=option.metavar or None,
        envvar=option.variable,
        help=option.help,
        show_default=option.unset or option.default is not None,
    )
    kind = bool if option.switch else list[str] if option.repeated else str
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default == "true" if option.switch else option.default,
        annotation=Annotated[kind | None if option.default is None else kind, declared],
    )


# typer reads a command's options from its signature; this one is made from their table.
_serve.__dict__["__signature__"] = inspect.Signature([_parameter(each) for each in SERVE_OPTIONS])
