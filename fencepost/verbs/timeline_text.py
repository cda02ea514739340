"""The timeline as lines of plain text, for a person."""

from collections.abc import Iterator
from typing import Final

from fencepost.verbs.answers.cluster import TimelineLine, TimelineState

_KIND_WIDTH: Final = len("request")


def timeline_text(state: TimelineState) -> Iterator[str]:
    """What happened, the time since the first line before each; then the state at the end."""
    yield from what_happened(state)
    yield from state_at_the_end(state)


def what_happened(state: TimelineState) -> Iterator[str]:
    """The lines of the timeline, and what is left out."""
    begin = state.lines[0].time_ms if state.lines else 0
    width = max((len(_since(line.time_ms, begin)) for line in state.lines), default=0)
    for line in state.lines:
        yield _line(line, begin, width)
    for left_out in state.left_out:
        yield f"not shown: {left_out}"


def state_at_the_end(state: TimelineState) -> Iterator[str]:
    """The seed, unusual brokers, partitions, groups and open transactions."""
    yield f"seed {state.seed}"
    yield from state.brokers
    yield from state.partitions
    yield from (f"group {group}" for group in state.groups)
    yield from (f"transaction {transaction}" for transaction in state.transactions)


def _line(line: TimelineLine, begin: int, width: int) -> str:
    head = f"{_since(line.time_ms, begin):>{width}}  {line.kind:<{_KIND_WIDTH}}  {line.text}"
    if line.times == 1:
        return head
    return f"{head} ({line.times} times until {_since(line.until_ms, begin)})"


def _since(time_ms: int, begin: int) -> str:
    return f"+{time_ms - begin} ms"
