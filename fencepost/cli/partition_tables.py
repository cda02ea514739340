"""The tables of a partition and its replicas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fencepost.cli.output import (
    BAD,
    GOOD,
    ODD,
    STRONG,
    Block,
    Cell,
    Line,
    Table,
    Text,
    join_numbers,
    line,
)
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    RemoteSegmentState,
    RemoteState,
    ReplicaState,
    StepState,
    TierState,
)

_STATES: Final[Mapping[str, str]] = {
    "leading": GOOD,
    "fetching": GOOD,
    "idle": GOOD,
    "running": GOOD,
    "offline": BAD,
    "stopped": BAD,
    "killed": BAD,
}
"""How a state looks; all others are odd."""


def partition_answer(
    answer: PartitionState | StepState | TierState | CompactionState,
) -> Sequence[Block]:
    """What is shown of an answer about one partition."""
    match answer:
        case PartitionState():
            return partition(answer)
        case StepState():
            return [step(answer)]
        case TierState():
            return tier(answer)
        case CompactionState():
            return [compaction(answer)]


def partition(state: PartitionState) -> Sequence[Block]:
    """A line for the partition, then a row for each replica; then its tier, where it has one."""
    headers = ["broker", "role", "state", "log start", "log end", "high watermark", "epochs"]
    if state.remote is not None:
        headers.insert(4, "local start")
    rows = tuple(tuple(_replica_row(each, state)) for each in state.replicas)
    tier = [] if state.remote is None else remote(state.remote)
    return [partition_line(state), Table(tuple(headers), rows), *tier]


def remote(state: RemoteState) -> Sequence[Block]:
    """The leader's view of the tier: a line, and a row for each segment."""
    return [remote_line(state), *([_remote_segments(state.segments)] if state.segments else [])]


def remote_line(state: RemoteState) -> Line:
    """Where the tier begins and ends."""
    name = Text("tier", STRONG)
    if state.last_tiered_offset < 0:
        return line(name, ": nothing, or its leader does not know of it")
    return line(
        name,
        f": from {state.start_offset} to {state.last_tiered_offset}, "
        f"next to be uploaded is {state.pending_upload_offset}",
    )


def _remote_segments(segments: Sequence[RemoteSegmentState]) -> Table:
    rows = tuple(
        (each.id, str(each.start_offset), str(each.end_offset), str(each.bytes), _epochs(each))
        for each in segments
    )
    return Table(("remote segment", "from", "to", "bytes", "epochs"), rows)


def tier(state: TierState) -> Sequence[Block]:
    """The effects, a line each, and the content of the tier."""
    done = [
        *(f"uploaded {_span(each)}" for each in state.uploaded),
        *(
            f"broker {each.broker} let go of {_count(each.segments, 'segment')} and begins at "
            f"{each.local_log_start_offset}"
            for each in state.deleted_locally
        ),
        *(f"expired {_span(each)}" for each in state.expired),
    ]
    if state.lost_objects:
        done.append(f"lost {_count(state.lost_objects, 'object')}")
    return [*(line(each) for each in done or ["nothing to do"]), *remote(state.remote)]


def _span(segment: RemoteSegmentState) -> str:
    return f"{segment.start_offset} to {segment.end_offset}, {segment.bytes} bytes ({segment.id})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def compaction(state: CompactionState) -> Table:
    """One row a replica."""
    rows = tuple((str(each.broker), str(each.dropped)) for each in state.replicas)
    return Table(("broker", "records dropped"), rows)


def partition_line(state: PartitionState) -> Line:
    """The state of a partition at the controller and at the leader."""
    name = f"{state.topic}-{state.partition}"
    where = f"leader {state.leader}" if state.leader >= 0 else "no leader"
    return line(
        Text(name, STRONG),
        ": ",
        Text(where, "" if state.leader >= 0 else BAD),
        f" in epoch {state.leader_epoch}, ",
        Text(
            f"ISR {join_numbers(state.isr)}", "" if len(state.isr) == len(state.replicas) else ODD
        ),
        f", high watermark {state.high_watermark}",
        f", last stable offset {state.last_stable_offset}",
        Text(_gate(state), ODD),
    )


def _gate(state: PartitionState) -> str:
    """What ListOffsets waits for, where it does."""
    if state.gate.open or state.leader < 0:
        return ""
    return f", gate closed until {state.gate.until_offset}"


def _replica_row(replica: ReplicaState, state: PartitionState) -> Iterator[Cell]:
    yield str(replica.broker)
    yield replica.role
    yield replica_state(replica, is_in_isr=replica.broker in state.isr)
    yield str(replica.log_start_offset)
    if state.remote is not None:
        yield str(replica.local_log_start_offset)
    yield str(replica.log_end_offset)
    yield str(replica.high_watermark)
    yield _epochs(replica)


def _epochs(of: ReplicaState | RemoteSegmentState) -> str:
    return ", ".join(f"{each.epoch} from {each.start_offset}" for each in of.epochs)


def replica_state(replica: ReplicaState, *, is_in_isr: bool = True) -> Text:
    """The state of a replica, and whether a test holds it."""
    style = state_style(replica.state)
    if replica.held:
        style = ODD
    text: str = replica.state
    if replica.held and replica.held_at is not None:
        text = f"{text}, hold at {replica.held_at}"
    elif replica.held and replica.state != "held":
        text = f"{text}, hold"
    return Text(text, style if is_in_isr or style != GOOD else ODD)


def replica_parts(state: PartitionState) -> Iterator[Cell]:
    """Each replica's log end, and what is not as usual: ``1 at 42, 3 held at 40 (2 behind)``."""
    ends = {each.broker: each.log_end_offset for each in state.replicas}
    for number, each in enumerate(state.replicas):
        yield ", " if number else ""
        looks = replica_state(each, is_in_isr=each.broker in state.isr)
        usual = each.state in ("leading", "idle", "fetching")
        yield Text(f"{each.broker}{'' if usual else f' {each.state}'}", looks.style)
        yield f" at {each.log_end_offset}"
        notes = list(_notes(each, ends.get(state.leader, -1)))
        if notes:
            yield Text(f" ({', '.join(notes)})", ODD)


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


def state_style(state: str) -> str:
    """How a state of a broker or a replica looks."""
    return _STATES.get(state, ODD)


def step(state: StepState) -> Table:
    """One row a request."""
    headers = ("request", "to", "epoch", "log end", "answer", "appended", "truncated to")
    rows = tuple(
        (
            each.api if each.asked is None else f"{each.api} {each.asked}",
            str(each.leader),
            str(each.leader_epoch),
            str(each.fetch_offset),
            Text(each.error or "no answer", GOOD if each.error == "NONE" else BAD),
            str(each.appended),
            "-" if each.truncated_to is None else str(each.truncated_to),
            str(each.log_end_offset),
            str(each.high_watermark),
        )
        for each in state.fetches
    )
    return Table((*headers, "log end then", "high watermark"), rows)
