"""A partition and its replicas in words: what is unusual is named, and two leaders are explained.

It is the one place that words them: the control API sends a replica's label and a partition's
explanation, and the page, the command line and the report of a failing test show them. A line is
parts of text, each with a mark that says how a terminal emphasizes it.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from fencepost.verbs.answers.topics import PartitionState, ReplicaState


class Mark(StrEnum):
    """How a part of a line looks."""

    PLAIN = ""
    STRONG = "strong"
    GOOD = "good"
    ODD = "odd"
    BAD = "bad"


class Part(NamedTuple):
    """A part of a line."""

    text: str
    mark: Mark = Mark.PLAIN


_MARKS: Final = {
    "leading": Mark.GOOD,
    "fetching": Mark.GOOD,
    "idle": Mark.GOOD,
    "running": Mark.GOOD,
    "offline": Mark.BAD,
    "stopped": Mark.BAD,
    "killed": Mark.BAD,
}
_USUAL: Final = frozenset({"leading", "idle", "fetching"})
"""Labels that a line leaves out."""


def state_mark(state: str) -> Mark:
    """How a state of a broker or a replica looks."""
    return _MARKS.get(state, Mark.ODD)


def replica_label(state: str, *, is_zombie: bool, held: bool, held_at: int | None) -> str:
    """What a replica does, in words.

    :param state: As in `ReplicaState`.
    :param is_zombie: Whether it leads, but not by the word of the controller.
    :param held: Whether a test keeps it from fetching, now or as soon as it follows.
    """
    words = "zombie leader" if is_zombie else state
    if not held:
        return words
    at = "" if held_at is None else f" at {held_at}"
    if state == "held":
        return f"held{at}"
    if state == "leading":
        return f"held {'zombie ' if is_zombie else ''}leader{at}"
    return f"{words}, hold{at}"


def two_leaders(leader: int, leader_epoch: int, zombies: Sequence[tuple[int, int]]) -> str | None:
    """Why more than one broker leads; None where that is not so.

    :param leader: The leader by the word of the controller, -1 for none.
    :param zombies: The other brokers that lead, each with the epoch that it knows.
    """
    if not zombies:
        return None
    elected = "no leader: none" if leader < 0 else f"two leaders: broker {leader} leads"
    others = " and ".join(f"broker {broker} in epoch {epoch}" for broker, epoch in zombies)
    return (
        f"{elected} in epoch {leader_epoch} by the word of the controller, and still"
        f" {others}, which does not hear from the controller: it serves clients that have not heard"
        " of the election either, and truncates what it appends when it rejoins"
    )


def partition_parts(state: PartitionState) -> Iterator[Part]:
    """The state of a partition at the controller and at the leader."""
    yield Part(f"{state.topic}-{state.partition}", Mark.STRONG)
    yield Part(": ")
    yield leader_part(state)
    yield Part(f" in epoch {state.leader_epoch}, ")
    is_whole = len(state.isr) == len(state.replicas)
    yield Part(f"ISR {join_numbers(state.isr)}", Mark.PLAIN if is_whole else Mark.ODD)
    yield Part(f", high watermark {state.high_watermark}")
    yield Part(f", last stable offset {state.last_stable_offset}")
    if not state.gate.open and state.leader >= 0:
        yield Part(f", gate closed until {state.gate.until_offset}", Mark.ODD)


def leader_part(state: PartitionState) -> Part:
    """``leader 1``; a leader that is held is named as such."""
    if state.leader < 0:
        return Part("no leader", Mark.BAD)
    for each in state.replicas:
        if each.broker == state.leader and each.held:
            return Part(f"held leader {state.leader}", Mark.ODD)
    return Part(f"leader {state.leader}")


def replica_parts(state: PartitionState) -> Iterator[Part]:
    """Each replica's log end, and what is not as usual: ``1 at 42, 3 held at 40 (2 behind)``."""
    ends = {each.broker: each.log_end_offset for each in state.replicas}
    for number, each in enumerate(state.replicas):
        if number:
            yield Part(", ")
        name = "zombie leader" if each.zombie else each.state
        usual = "" if name in _USUAL else f" {name}"
        yield Part(f"{each.broker}{usual}", replica_mark(each, each.broker in state.isr))
        yield Part(f" at {each.log_end_offset}")
        notes = list(_notes(each, ends.get(state.leader, -1)))
        if notes:
            yield Part(f" ({', '.join(notes)})", Mark.ODD)


def replica_mark(replica: ReplicaState, is_in_isr: bool) -> Mark:
    """How a replica looks: one that is held, a zombie, or out of the ISR is odd."""
    mark = Mark.ODD if replica.held or replica.zombie else state_mark(replica.state)
    return mark if is_in_isr or mark is not Mark.GOOD else Mark.ODD


def _notes(replica: ReplicaState, leader_end: int) -> Iterator[str]:
    behind = leader_end - replica.log_end_offset
    if behind > 0:
        yield f"{behind} behind"
    elif behind < 0 <= leader_end:
        yield f"{-behind} ahead"
    if replica.held and replica.held_at is not None:
        yield f"hold at {replica.held_at}"
    elif replica.held and replica.state != "held":
        yield "hold"


def partition_text(state: PartitionState) -> str:
    """A partition and its replicas in one line, and why it has two leaders where it has."""
    parts = (*partition_parts(state), Part("; replicas "), *replica_parts(state))
    why = "" if state.explanation is None else f"; {state.explanation}"
    return "".join(part.text for part in parts) + why


def join_numbers(values: Iterable[object]) -> str:
    """Such as ``1, 2``."""
    return ", ".join(map(str, values)) or "none"
