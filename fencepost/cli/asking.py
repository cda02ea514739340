"""What all commands that ask a running cluster have in common."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer

from fencepost.verbs.remote import TIMEOUT_S, Line, default_url

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
def line_to(url: str | None, *, timeout_s: float = TIMEOUT_S) -> Iterator[Line]:
    """A connection to the control API at a URL; None is where the environment says."""
    line = Line(url or default_url(os.environ), timeout_s=timeout_s)
    try:
        yield line
    finally:
        line.close()
