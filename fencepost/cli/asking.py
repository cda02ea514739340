"""What all commands that ask a running cluster have in common."""

import json
import os
from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar

import typer

from fencepost.cli.control import Control, default_url

T = TypeVar("T")

ControlUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--control",
        metavar="URL",
        envvar="FENCEPOST_CONTROL",
        help="The control API of the running cluster.",
        show_default="http://127.0.0.1:9644",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")]
TopicName: TypeAlias = Annotated[str, typer.Argument(metavar="TOPIC")]
PartitionIndex: TypeAlias = Annotated[int, typer.Argument(metavar="P", min=0)]
BrokerId: TypeAlias = Annotated[int, typer.Argument(metavar="B", help="Broker id.")]


def control_at(url: str | None, **settings: float) -> Control:
    """The control API at a URL; None is where the environment says."""
    return Control(url or default_url(os.environ), **settings)


def show(answer: T, as_json: bool, table: Callable[[T], None]) -> None:
    """Print an answer, as JSON or as a table for a person."""
    if as_json:
        print(json.dumps(answer), flush=True)
    else:
        table(answer)
