"""What a shell offers when Tab is pressed: names, and what the running cluster has.

It is asked quickly, and where there is none, nothing is offered: a completion never complains.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import typer

from fencepost.cli.parameters import ALWAYS, Parameter
from fencepost.cli.typer_options import control_connection
from fencepost.protocol.lookup import api_names, error_names
from fencepost.verbs.answers.cluster import ClusterState
from fencepost.verbs.answers.faults import FaultState, TierFaultState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.catalogue import VERBS, Verb
from fencepost.verbs.remote import ControlConnection, VerbError

COMPLETION_TIMEOUT_S: Final = 3.0

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]
Source: TypeAlias = Callable[[typer.Context], Iterable[str]]


def completer(parameter: Parameter, verb: Verb) -> Completer | None:
    """What completes a parameter's value, if anything does."""
    asked = None if parameter.is_any_text else _SOURCES.get(parameter.name)
    if parameter.name == "id" and verb.response_model is TierFaultState:
        asked = tier_faults
    words = [*parameter.choices, *([ALWAYS] if parameter.may_be_always else [])]
    if asked is None and not words:
        return None

    def source(ctx: typer.Context) -> Iterator[str]:
        yield from words
        if asked is not None:
            yield from asked(ctx)

    return ignoring_errors(source)


def ignoring_errors(source: Source) -> Completer:
    """Those of a source that begin as what was typed; none where the cluster cannot be asked."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        with suppress(VerbError):
            found += source(ctx)
        return [each for each in found if each.startswith(incomplete)]

    return complete


def topics(ctx: typer.Context) -> Iterator[str]:
    """Names of the cluster's topics."""
    with _line(ctx) as line:
        for each in line.call_list(VERBS["topics"], TopicState, {}, {}):
            yield each.name


def brokers(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's brokers."""
    with _line(ctx) as line:
        for each in line.call(VERBS["cluster"], ClusterState, {}, {}).brokers:
            yield str(each.id)


def faults(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's faults."""
    with _line(ctx) as line:
        for each in line.call_list(VERBS["faults"], FaultState, {}, {}):
            yield str(each.id)


def tier_faults(ctx: typer.Context) -> Iterator[str]:
    """Ids of the cluster's tier faults."""
    with _line(ctx) as line:
        for each in line.call_list(VERBS["tier_faults"], TierFaultState, {}, {}):
            yield str(each.id)


def partitions(ctx: typer.Context) -> Iterator[str]:
    """Indices of the partitions of the topic that was named before."""
    named = ctx.params.get("topic_")
    with _line(ctx) as line:
        for each in line.call_list(VERBS["topics"], TopicState, {}, {}):
            if each.name == named:
                yield from map(str, range(each.partitions))


def scenarios() -> list[str]:
    """Names of the shipped scenarios."""
    # The file system is asked, and not the reader: that would import it.
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
    "id": faults,
    "configs": _configs,
    "api": lambda _ctx: api_names(),
    "error": lambda _ctx: error_names(),
}


def _line(ctx: typer.Context) -> AbstractContextManager[ControlConnection]:
    url = ctx.params.get("control")
    return control_connection(str(url) if url else None, timeout_s=COMPLETION_TIMEOUT_S)
