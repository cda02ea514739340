"""Options that the commands share, with their environment variables, and shell completion.

Completion offers names of the catalogue and of the running cluster. It has a short timeout and
reports no error: where no cluster answers, nothing is offered.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from fencepost.cli.parameters import ALWAYS, Kind, Parameter
from fencepost.cli.serve_options import Option
from fencepost.cli.usage_errors import InvalidUsage
from fencepost.protocol.lookup import api_names, error_names
from fencepost.verbs.answers.cluster import ClusterState
from fencepost.verbs.answers.faults import FaultState, TierFaultState
from fencepost.verbs.answers.groups import GroupsState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.catalogue import VERBS, Verb
from fencepost.verbs.control_token import InvalidToken, checked, from_environment
from fencepost.verbs.remote import TIMEOUT_S, ControlConnection, VerbError, default_url

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
ControlToken: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--control-token",
        metavar="TOKEN",
        help="The token that it needs where other machines can reach it.",
        show_default="FENCEPOST_CONTROL_TOKEN, or the content of FENCEPOST_CONTROL_TOKEN_FILE",
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print what the API answers, and no table.")
]


@contextmanager
def control_connection(
    url: str | None, token: str | None = None, *, timeout_s: float = TIMEOUT_S
) -> Iterator[ControlConnection]:
    """A connection to the control API at a URL, with a token; None stands for the environment's.

    :raises InvalidUsage: When no header can carry the token.
    """
    connection = ControlConnection(
        url or default_url(os.environ), timeout_s=timeout_s, token=control_token(token)
    )
    try:
        yield connection
    finally:
        connection.close()


def control_token(given: str | None) -> str | None:
    """The token that is given, else the environment's, else none.

    :raises InvalidUsage: When no header can carry it.
    """
    try:
        return checked(given) if given else from_environment(os.environ)
    except InvalidToken as error:
        raise InvalidUsage(str(error)) from None


def option(
    name: str,
    metavar: str | None,
    text: str,
    *,
    unset: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    file_okay: bool = True,
    dir_okay: bool = True,
) -> Any:  # noqa: ANN401  # as typer says itself: it stands in annotations and for defaults
    """Declare an option, which ``FENCEPOST_NAME`` sets as well.

    :param name: Without the dashes.
    :param metavar: None where it has no value, or its type lists the values.
    :param text: The help text.
    :param unset: The default as help shows it, where the value itself says too little.
    :param at_least: The lowest number, inclusive.
    :param at_most: The highest number, inclusive.
    :param file_okay: Whether an existing path may be a file.
    :param dir_okay: Whether an existing path may be a directory.
    """
    known = Option(name=name, metavar=metavar or "", help=text, unset=unset)
    return typer.Option(
        known.flag,
        metavar=metavar,
        envvar=known.variable,
        help=text,
        show_default=unset or True,
        min=at_least,
        max=at_most,
        file_okay=file_okay,
        dir_okay=dir_okay,
    )


COMPLETION_TIMEOUT_S: Final = 3.0

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]
Source: TypeAlias = Callable[[typer.Context], Iterable[str]]


def completer(parameter: Parameter, verb: Verb) -> Completer | None:
    """The completer of a parameter's value, if it has one."""
    values = None if parameter.is_any_text else _SOURCES.get(parameter.name)
    if parameter.kind is Kind.NUMBER and parameter.name == "from":  # an offset
        values = None
    if parameter.name == "id" and verb.response_model is TierFaultState:
        values = tier_faults
    words = [*parameter.choices, *([ALWAYS] if parameter.may_be_always else [])]
    if values is None and not words:
        return None

    def source(ctx: typer.Context) -> Iterator[str]:
        yield from words
        if values is not None:
            yield from values(ctx)

    return ignoring_errors(source)


def ignoring_errors(source: Source) -> Completer:
    """A completer from a source; it offers nothing where the cluster cannot be reached."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        with suppress(VerbError, InvalidUsage):
            found += source(ctx)
        return [each for each in found if each.startswith(incomplete)]

    return complete


def topics(ctx: typer.Context) -> Iterator[str]:
    """Names of the cluster's topics."""
    with _connection(ctx) as connection:
        for each in connection.call_list(VERBS["topics"], TopicState, {}, {}):
            yield each.name


def brokers(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's brokers."""
    with _connection(ctx) as connection:
        for each in connection.call(VERBS["cluster"], ClusterState, {}, {}).brokers:
            yield str(each.id)


def faults(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's faults."""
    with _connection(ctx) as connection:
        for each in connection.call_list(VERBS["faults"], FaultState, {}, {}):
            yield str(each.id)


def tier_faults(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's tier faults."""
    with _connection(ctx) as connection:
        for each in connection.call_list(VERBS["tier_faults"], TierFaultState, {}, {}):
            yield str(each.id)


def partitions(ctx: typer.Context) -> Iterator[str]:
    """Indices of the partitions of the topic that stands before on the command line."""
    named = ctx.params.get("topic_")
    with _connection(ctx) as connection:
        for each in connection.call_list(VERBS["topics"], TopicState, {}, {}):
            if each.name == named:
                yield from map(str, range(each.partitions))


def groups(ctx: typer.Context) -> Iterator[str]:
    """Names of the cluster's groups."""
    with _connection(ctx) as connection:
        for each in connection.call(VERBS["groups"], GroupsState, {}, {}).groups:
            yield each.group


def scenarios() -> list[str]:
    """Names of the shipped scenarios."""
    # The file system is read, because to import the loader takes long.
    shipped = Path(__file__).parent.parent / "scenario" / "shipped"
    return sorted(each.stem for each in shipped.glob("*.yaml"))


def _configs(_ctx: typer.Context) -> Iterator[str]:
    from fencepost.broker.configs.topic_configs import topic_configs

    yield from (f"{each.name}=" for each in topic_configs().values() if not each.hidden)


_SOURCES: Final[dict[str, Source]] = {
    "topic": topics,
    "partition": partitions,
    "broker": brokers,
    "leader": brokers,
    "from": brokers,
    "group": groups,
    "id": faults,
    "configs": _configs,
    "api": lambda _ctx: api_names(),
    "error": lambda _ctx: error_names(),
}


def _connection(ctx: typer.Context) -> AbstractContextManager[ControlConnection]:
    url, token = ctx.params.get("control"), ctx.params.get("control_token")
    return control_connection(
        str(url) if url else None, str(token) if token else None, timeout_s=COMPLETION_TIMEOUT_S
    )
