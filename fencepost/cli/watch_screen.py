"""``fencepost watch`` on a terminal: one screen, whose height is shared out among its parts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text as Rich

from fencepost.cli import tables
from fencepost.cli.output import ODD, QUIET, STRONG, Cell, Text, interrupt_deferred, moment
from fencepost.cli.partition_tables import replica_parts, styled
from fencepost.cli.rich_output import rich, rich_line
from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.partition_text import leader_part

if TYPE_CHECKING:
    from fencepost.cli.watch import WatchState

MIN_EVENTS: Final = 4
"""Lines of events that are shown however many partitions there are."""
MAX_FAULTS: Final = 5
MAX_TRANSACTIONS: Final = 5
MIN_WIDTH: Final = 70
"""Columns of the terminal, below which partitions have lines and no table."""
_HEADERS: Final = ("partition", "leader", "epoch", "ISR", "high watermark", "replicas")

Lines = list[list[Segment]]


@contextmanager
def screen(url: str) -> Iterator[Callable[["WatchState"], None]]:
    """A screen of its own, which is gone in the end; what draws on it."""
    live = Live(console=Console(highlight=False), screen=True, auto_refresh=False)

    def draw(watched: "WatchState") -> None:
        with interrupt_deferred():
            live.update(Screen(watched, url), refresh=True)

    try:
        with interrupt_deferred():
            live.start()
        yield draw
    finally:
        with interrupt_deferred():
            live.stop()


class Screen:
    """What is seen of a cluster.

    :param url: Where it is.
    """

    def __init__(self, watched: "WatchState", url: str) -> None:
        self._watched = watched
        self._url = url

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Brokers, transactions and faults first; partitions and events share what is left."""
        height, width = console.size.height, options.max_width

        def lines(*parts: RenderableType) -> Lines:
            inner = options.update(width=width, height=None)
            return [line for part in parts for line in console.render_lines(part, inner)]

        head = lines(self._head(), self._brokers())
        below = lines(*self._transactions(), *self._faults())
        partitions = lines(*self._partitions(width))
        room = max(height - len(head) - len(below), 0)
        kept = min(len(partitions), max(room - MIN_EVENTS - 1, 1))
        left_out = self._left_out(len(partitions) - kept)
        if left_out:
            partitions = [*partitions[: max(kept - 1, 0)], *lines(rich(Text(left_out, QUIET)))]
        events = lines(*self._events(room - len(partitions) - 1))
        newest = events[len(events) - max(room - len(partitions) - 1, 0) :]
        shown = [*head, *partitions, *below, *lines(Rich()), *newest]
        for number, line in enumerate(shown):
            if number:
                yield Segment.line()
            yield from line

    def _head(self) -> Rich:
        clock = self._watched.cluster.clock
        now = f"{moment(clock.now_ms)}, {clock.mode} clock"
        return rich_line(Text(self._url, STRONG), "  ", now, Text("  Ctrl-C ends", QUIET))

    def _brokers(self) -> Rich:
        """As few lines as they fit in."""
        parts: list[Cell] = []
        for broker in self._watched.cluster.brokers:
            parts += "  ", Text(f"broker {broker.id} ", STRONG), *tables.broker_parts(broker)
        return rich_line(*parts[1:])

    def _partitions(self, width: int) -> Iterator[RenderableType]:
        states = list(self._watched.partitions.values())
        if not states:
            yield rich(Text("no partitions", QUIET))
        elif width >= MIN_WIDTH:
            yield _grid(states)
        else:
            yield from (rich_line(*tables.short(each).parts) for each in states)

    def _transactions(self) -> Iterator[Rich]:
        transactions = self._watched.transactions
        for transaction in transactions[:MAX_TRANSACTIONS]:
            yield rich_line(*tables.short(transaction).parts)
        if len(transactions) > MAX_TRANSACTIONS:
            left_out = len(transactions) - MAX_TRANSACTIONS
            yield rich(Text(f"and {left_out} more open transactions", QUIET))

    def _faults(self) -> Iterator[Rich]:
        faults = self._watched.faults
        for fault in faults[:MAX_FAULTS]:
            yield rich_line(Text(f"fault {fault.id}", ODD), " ", *tables.fault_parts(fault))
        if len(faults) > MAX_FAULTS:
            yield rich(Text(f"and {len(faults) - MAX_FAULTS} more faults", QUIET))

    def _events(self, most: int) -> Iterator[Rich]:
        events = list(self._watched.events)
        for event in events[max(len(events) - max(most, 0), 0) :]:
            yield rich_line(*tables.event(event).parts)

    def _left_out(self, lines: int) -> str:
        """What to say where not all partitions are shown."""
        if not lines and not self._watched.omitted:
            return ""
        shown = len(self._watched.partitions) + self._watched.omitted
        return f"not all of {shown} partitions are shown; --topic shows fewer"


def _grid(states: Sequence[PartitionState]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style=QUIET)
    for number, header in enumerate(_HEADERS):
        grid.add_column(header, overflow="fold", no_wrap=number == 0)
    for state in states:
        grid.add_row(*_row(state))
    return grid


def _row(state: PartitionState) -> Sequence[Rich]:
    is_whole = len(state.isr) == len(state.replicas)
    gate = "" if state.gate.open or state.leader < 0 else f" gate {state.gate.until_offset}"
    leader = leader_part(state)
    replicas = [*replica_parts(state)]
    if state.explanation is not None:
        replicas.append(Text(f"; {state.explanation}", ODD))
    return (
        rich(Text(f"{state.topic}-{state.partition}", STRONG)),
        rich(Text(leader.text.removeprefix("leader "), styled(leader).style)),
        rich(str(state.leader_epoch)),
        rich(Text(",".join(map(str, state.isr)) or "none", "" if is_whole else ODD)),
        rich_line(str(state.high_watermark), Text(gate, ODD)),
        rich_line(*replicas),
    )
