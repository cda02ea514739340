"""The commands as typer knows them: help, completion, and all that ask a running cluster."""

import inspect
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from fencepost.cli import simulate, steering, tables
from fencepost.cli.asking import (
    AsJson,
    ControlUrl,
    PartitionIndex,
    TopicName,
    control_at,
    show,
)
from fencepost.cli.control import ControlError
from fencepost.cli.options import SERVE_OPTIONS, Option

HEALTHCHECK_TIMEOUT_S = 2.0

app = typer.Typer(
    name="fencepost",
    help="A Kafka cluster for tests that does what it is told, when it is told.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: Sequence[str]) -> int:
    """Run a command that is not ``serve``; the exit code."""
    try:
        app(list(arguments))
    except ControlError as error:
        print(f"fencepost: {error}", file=sys.stderr)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _serve(**given: Sequence[str] | str | None) -> None:
    """Hand over to the path that `fencepost.cli.main` takes at once where no help is asked for."""
    from fencepost.cli.serve import serve

    arguments = []
    for option in SERVE_OPTIONS:
        value = given[option.key]
        texts = [value] if isinstance(value, str) else value or ()
        arguments += [f"{option.flag}={text}" for text in texts]
    raise typer.Exit(serve(arguments))


def _parameter(option: Option) -> inspect.Parameter:
    declared = typer.Option(
        option.flag,
        metavar=option.metavar,
        envvar=option.variable,
        help=option.help,
        show_default=option.unset or option.default is not None,
    )
    kind = list[str] if option.repeated else str
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind | None if option.default is None else kind, declared],
    )


# typer reads a command's options from its signature; this one is made from their table.
_serve.__dict__["__signature__"] = inspect.Signature([_parameter(each) for each in SERVE_OPTIONS])
app.command(
    "serve",
    help="Serve a cluster until SIGTERM or Ctrl-C. Prints one line of JSON when every listener"
    " accepts: where the brokers are, where the control API is, and the process id.",
)(_serve)


@app.command()
def healthcheck(control: ControlUrl = None) -> None:
    """Exit with 0 when the cluster is up, with 1 when it is not."""
    control_at(control, timeout_s=HEALTHCHECK_TIMEOUT_S).check_health()


@app.command()
def topics(control: ControlUrl = None, as_json: AsJson = False) -> None:
    """List the topics."""
    show(control_at(control).topics(), as_json, tables.show_topics)


@app.command()
def partition(
    topic: TopicName, index: PartitionIndex, control: ControlUrl = None, as_json: AsJson = False
) -> None:
    """Show a partition: its leader, its epochs, and every replica's offsets."""
    show(control_at(control).partition(topic, index), as_json, tables.show_partition)


@app.command()
def reset(control: ControlUrl = None) -> None:
    """Forget every topic, group and record; the ports stay, and every broker runs."""
    control_at(control).reset()


steering.register(app)
simulate.register(app)
