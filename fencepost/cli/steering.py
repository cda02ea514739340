"""The commands that tell a running cluster what to do; each shows what it made of it."""

import contextlib
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer

from fencepost.cli import tables
from fencepost.cli.asking import (
    AsJson,
    BrokerId,
    ControlUrl,
    PartitionIndex,
    TopicName,
    control_at,
    show,
)

CONTROLLER = "controller"


class Fence(StrEnum):
    """When the controller gives a broker up that it does not hear any more."""

    NOW = "now"
    TIMEOUT = "timeout"
    NEVER = "never"


FenceOption = Annotated[
    Fence,
    typer.Option(
        "--fence",
        help="When the controller takes the broker for offline: at once, after "
        "broker.session.timeout.ms, or never.",
    ),
]

broker = typer.Typer(
    name="broker", help="Stop, start, kill and isolate brokers.", no_args_is_help=True
)
clock = typer.Typer(name="clock", help="Let time pass on a manual clock.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add these commands to the others."""
    for command in (elect, hold, release, step, wipe, roll, events):
        app.command()(command)
    app.add_typer(broker)
    app.add_typer(clock)


# -- partitions and replicas --------------------------------------------------------------------


def elect(
    topic: TopicName,
    index: PartitionIndex,
    leader: Annotated[int, typer.Option("--leader", metavar="B", help="The new leader.")],
    unclean: Annotated[
        bool, typer.Option("--unclean", help="It may be outside the ISR; records may be lost.")
    ] = False,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a broker the leader of a partition; the leader epoch rises."""
    state = control_at(control).elect(topic, index, leader, unclean=unclean)
    show(state, as_json, tables.show_partition)


def hold(
    topic: TopicName,
    index: PartitionIndex,
    replica: BrokerId,
    at: Annotated[
        int | None, typer.Option("--at", metavar="N", min=0, help="Only from this offset on.")
    ] = None,
    leave_isr: Annotated[
        bool, typer.Option("--leave-isr", help="Drop it from the ISR now, not when it lags.")
    ] = False,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Keep the replica of broker B from fetching."""
    state = control_at(control).hold(topic, index, replica, at=at, leave_isr=leave_isr)
    show(state, as_json, tables.show_partition)


def release(
    topic: TopicName,
    index: PartitionIndex,
    replica: BrokerId,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let the replica of broker B fetch again."""
    show(control_at(control).release(topic, index, replica), as_json, tables.show_partition)


def step(
    topic: TopicName,
    index: PartitionIndex,
    replica: BrokerId,
    fetches: Annotated[int, typer.Option("--fetches", metavar="N", min=1, help="How many.")] = 1,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let the replica of broker B fetch so many times, and show what each fetch did."""
    state = control_at(control).step(topic, index, replica, fetches=fetches)
    show(state, as_json, tables.show_step)


def wipe(
    topic: TopicName,
    index: PartitionIndex,
    replica: BrokerId,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Lose the disk of the replica of broker B; it starts empty."""
    show(control_at(control).wipe(topic, index, replica), as_json, tables.show_partition)


def roll(
    topic: TopicName, index: PartitionIndex, control: ControlUrl = None, as_json: AsJson = False
) -> None:
    """Close the active segment of a partition."""
    show(control_at(control).roll(topic, index), as_json, tables.show_partition)


# -- brokers ------------------------------------------------------------------------------------


@broker.command("list")
def list_brokers(control: ControlUrl = None, as_json: AsJson = False) -> None:
    """List the brokers."""
    show(control_at(control).brokers(), as_json, tables.show_brokers)


@broker.command()
def stop(broker_id: BrokerId, control: ControlUrl = None, as_json: AsJson = False) -> None:
    """Shut broker B down in order: others lead where it led."""
    show(control_at(control).on_broker(broker_id, "stop"), as_json, tables.show_broker)


@broker.command()
def start(broker_id: BrokerId, control: ControlUrl = None, as_json: AsJson = False) -> None:
    """Start broker B on its port again."""
    show(control_at(control).on_broker(broker_id, "start"), as_json, tables.show_broker)


@broker.command()
def kill(
    broker_id: BrokerId,
    fence: FenceOption = Fence.NOW,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """End broker B at once, and its connections."""
    state = control_at(control).on_broker(broker_id, "kill", {"fence": fence})
    show(state, as_json, tables.show_broker)


@broker.command()
def isolate(
    broker_id: BrokerId,
    origin: Annotated[
        list[str],
        typer.Option(
            "--from", metavar="controller|B", help="The controller, or a broker. May be repeated."
        ),
    ],
    fence: Annotated[
        Fence | None,
        typer.Option(
            "--fence",
            help="When the controller takes it for offline where it is cut off from that: at "
            "once, after broker.session.timeout.ms, or never.",
            show_default=Fence.NOW,
        ),
    ] = None,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cut broker B off from the controller, or from other brokers; clients still reach it."""
    body: dict[str, object] = {"from": _origin(origin)}
    if fence is not None:
        body["fence"] = fence
    show(control_at(control).on_broker(broker_id, "isolate", body), as_json, tables.show_broker)


def _origin(given: Sequence[str]) -> str | list[int]:
    if list(given) == [CONTROLLER]:
        return CONTROLLER
    if not all(text.isascii() and text.isdigit() for text in given):
        raise typer.BadParameter(
            f"{' '.join(given)} is neither {CONTROLLER} nor broker ids", param_hint="--from"
        )
    return [int(text) for text in given]


@broker.command()
def rejoin(broker_id: BrokerId, control: ControlUrl = None, as_json: AsJson = False) -> None:
    """Mend all links of broker B."""
    show(control_at(control).on_broker(broker_id, "rejoin"), as_json, tables.show_broker)


# -- time and events ----------------------------------------------------------------------------


@clock.command()
def advance(
    ms: Annotated[int, typer.Argument(metavar="MS", min=0, help="Milliseconds.")],
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let time pass; all that is due meanwhile has happened when this returns."""
    show(control_at(control).advance(ms), as_json, tables.show_clock)


def events(
    since: Annotated[
        int | None,
        typer.Option("--since", metavar="N", min=0, help="Also earlier ones with a higher number."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=0, help="End after so many.")
    ] = None,
    control: ControlUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print what happens in the cluster, a line an event, until it ends or Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        for event in islice(control_at(control).events(since), count):
            show(event, as_json, tables.show_event)
