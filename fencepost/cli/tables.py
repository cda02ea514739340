"""What the command line shows to a person."""

import sys
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from fencepost.cli.control import Partition, Topic

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
        f" last stable offset {state['last_stable_offset']}"
    )
    table = _table("broker", "role", "state", "log start", "log end", "high watermark", "epochs")
    for each in state["replicas"]:
        table.add_row(
            str(each["broker"]),
            each["role"],
            each["state"],
            str(each["log_start_offset"]),
            str(each["log_end_offset"]),
            str(each["high_watermark"]),
            ", ".join(f"{entry['epoch']} from {entry['start_offset']}" for entry in each["epochs"]),
        )
    console.print(table)


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
