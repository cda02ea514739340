"""What the command line shows to a person."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from fencepost.cli.control import Broker, Clock, Event, Partition, Replica, Step, Topic

UNBROKEN: Final = 1000
"""Columns; more than any line here takes."""


def show_topics(topics: Sequence[Topic]) -> None:
    """One line a topic."""
    table = _table("topic", "partitions", "replication factor", "topic id")
    for each in topics:
        table.add_row(
            each["name"],
            str(each["partitions"]),
            str(each["replication_factor"]),
            each["topic_id"],
        )
    _console().print(table)


def show_partition(state: Partition) -> None:
    """A line for the partition, then one line a replica."""
    console = _console()
    console.print(
        f"{state['topic']}-{state['partition']}: leader {state['leader']}"
        f" in epoch {state['leader_epoch']}, ISR {_numbers(state['isr'])},"
        f" high watermark {state['high_watermark']},"
        f" last stable offset {state['last_stable_offset']}{_gate(state)}"
    )
    table = _table("broker", "role", "state", "log start", "log end", "high watermark", "epochs")
    for each in state["replicas"]:
        table.add_row(
            str(each["broker"]),
            each["role"],
            _state(each),
            str(each["log_start_offset"]),
            str(each["log_end_offset"]),
            str(each["high_watermark"]),
            ", ".join(f"{entry['epoch']} from {entry['start_offset']}" for entry in each["epochs"]),
        )
    console.print(table)


def _gate(state: Partition) -> str:
    """What ListOffsets waits for, where it does."""
    if state["gate"]["open"] or state["leader"] < 0:
        return ""
    return f", gate closed until {state['gate']['until_offset']}"


def _state(replica: Replica) -> str:
    """What it is doing, and whether a test keeps it from that."""
    if not replica["held"]:
        return replica["state"]
    if replica["held_at"] is not None:
        return f"{replica['state']}, hold at {replica['held_at']}"
    return replica["state"] if replica["state"] == "held" else f"{replica['state']}, hold"


def show_step(state: Step) -> None:
    """One line a request."""
    headers = ("request", "to", "epoch", "log end", "answer", "appended", "truncated to")
    table = _table(*headers, "log end then", "high watermark")
    for each in state["fetches"]:
        cut = each["truncated_to"]
        table.add_row(
            each["api"],
            str(each["leader"]),
            str(each["leader_epoch"]),
            str(each["fetch_offset"]),
            each["error"] or "no answer",
            str(each["appended"]),
            "" if cut is None else str(cut),
            str(each["log_end_offset"]),
            str(each["high_watermark"]),
        )
    _console().print(table)


def show_broker(state: Broker) -> None:
    """One broker."""
    show_brokers([state])


def show_brokers(brokers: Sequence[Broker]) -> None:
    """One line a broker."""
    table = _table("broker", "address", "state", "fenced", "isolated from")
    for each in brokers:
        table.add_row(
            str(each["id"]),
            f"{each['host']}:{each['port']}",
            each["state"],
            "yes" if each["fenced"] else "no",
            ", ".join(map(str, each["isolated_from"])),
        )
    _console().print(table)


def show_clock(clock: Clock) -> None:
    """What time it is."""
    print(f"{_time(clock['now_ms'])}, {clock['now_ms']} ms")


def show_event(event: Event) -> None:
    """One line, at once."""
    topic, index, broker = event["topic"], event["partition"], event["broker"]
    words = [str(event["number"]), _time(event["time_ms"]), event["kind"]]
    if topic is not None:
        words.append(topic if index is None else f"{topic}-{index}")
    if broker is not None:
        words.append(f"broker {broker}")
    words += (f"{name}={_plain(value)}" for name, value in event["details"].items())
    print(*words, flush=True)


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _time(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _console() -> Console:
    """Standard output; where it is no terminal, a line is as long as it has to be."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else UNBROKEN)


def _table(*headers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        # A cell is folded where there is no room for it, never cut off; the first is kept whole.
        table.add_column(header, overflow="fold", no_wrap=number == 0)
    return table


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values)) or "none"
