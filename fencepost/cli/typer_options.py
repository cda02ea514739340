"""What all commands that ask a running cluster have in common.

Options as typer knows them, each with its environment variable.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeAlias

import typer

from fencepost.cli.serve_options import Option
from fencepost.verbs.remote import TIMEOUT_S, ControlConnection, default_url

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
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print what the API answers, and no table.")
]


@contextmanager
def control_connection(
    url: str | None, *, timeout_s: float = TIMEOUT_S
) -> Iterator[ControlConnection]:
    """A connection to the control API at a URL; None is where the environment says."""
    line = ControlConnection(url or default_url(os.environ), timeout_s=timeout_s)
    try:
        yield line
    finally:
        line.close()


def option(
    name: str,
    metavar: str | None,
    text: str,
    *,
    unset: str | None = None,
    at_least: float | None = None,
    file_okay: bool = True,
    dir_okay: bool = True,
) -> Any:  # noqa: ANN401  # as typer says itself: it stands in annotations and for defaults
    """Declare an option, which ``FENCEPOST_NAME`` sets as well.

    :param name: Without the dashes.
    :param metavar: None where it has no value, or its type tells all that it may be.
    :param text: What help says of it.
    :param unset: What holds where nothing is given, if the default does not say it.
    :param at_least: The lowest number that it may be, inclusive.
    :param file_okay: Of a path that is there: whether it may be a file.
    :param dir_okay: Of a path that is there: whether it may be a directory.
    """
    known = Option(name=name, metavar=metavar or "", help=text, unset=unset)
    return typer.Option(
        known.flag,
        metavar=metavar,
        envvar=known.variable,
        help=text,
        show_default=unset or True,
        min=at_least,
        file_okay=file_okay,
        dir_okay=dir_okay,
    )
