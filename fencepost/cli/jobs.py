"""What the commands that run on Spark have in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final, NoReturn

import typer

from fencepost.cli.declared import option
from fencepost.cli.mistakes import Mistake

CANNOT_RUN: Final = 2
"""The exit code of a job that could not be run, and so tells nothing."""

Master = Annotated[
    str | None,
    option(
        "master",
        "MASTER",
        "Where Spark runs, as for spark-submit: local[2], spark://host:7077, yarn ...",
        unset="local[*,4], or what spark-submit says",
    ),
]


@contextmanager
def running() -> Iterator[None]:
    """What cannot run, and a file that will not do, is told in one line; exits with 2 then."""
    from fencepost.pipeline.needs import CannotRunError

    try:
        yield
    except CannotRunError as error:
        _end(str(error))
    except OSError as error:
        _end(reason(error) if error.filename is None else f"{error.filename}: {reason(error)}")


def _end(why: str) -> NoReturn:
    print(f"fencepost: {why}", file=sys.stderr)
    raise typer.Exit(CANNOT_RUN) from None


def reason(error: OSError) -> str:
    """What the system says, without its number and the name of the file."""
    return error.strerror.lower() if error.strerror else str(error)


def pairs(flag: str, metavar: str, given: Sequence[str] | None) -> dict[str, str]:
    """What an option that may be repeated was given, such as ``sep=;``, by the names.

    :raises Mistake: When a text has no name, or no sign of equality.
    """
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise Mistake(f"{flag}: {text!r} is not {metavar}")
        found[name] = value
    return found
