"""Options as typer knows them, each with its environment variable."""

from typing import Any

import typer

from fencepost.cli.options import Option


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
