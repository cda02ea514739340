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
    line,
)
from fencepost.verbs import partition_text
from fencepost.verbs.answers.topics import (
    CompactionState,
    LostState,
    PartitionState,
    RemoteSegmentState,
    RemoteState,
    ReplicaState,
    StepState,
    TierState,
)
from fencepost.verbs.partition_text import Mark, Part

_STYLES: Final[Mapping[Mark, str]] = {
    Mark.PLAIN: "",
    Mark.STRONG: STRONG,
    Mark.GOOD: GOOD,
    Mark.ODD: ODD,
    Mark.BAD: BAD,
}


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
    why = [] if state.explanation is None else [line(Text(state.explanation, ODD))]
    lost = [] if state.lost is None else _lost(state.lost)
    return [partition_line(state), *why, *lost, Table(tuple(headers), rows), *tier]


def _lost(lost: LostState) -> Sequence[Block]:
    """What an election lost: a line."""
    what = "" if lost.records is None else f", {_count(lost.records, 'record')}"
    committed = "" if lost.records is None else f", {lost.committed_records} committed"
    offsets = f"offsets {lost.start_offset} to {lost.end_offset} (exclusive)"
    return [line(Text(f"lost: {offsets} of broker {lost.broker}{what}{committed}", BAD))]


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
    return line(*map(styled, partition_text.partition_parts(state)))


def styled(part: Part) -> Text:
    """A part of a line as this terminal shows it."""
    return Text(part.text, _STYLES[part.mark])


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
    """What a replica does, and whether a test holds it."""
    mark = partition_text.replica_mark(replica, is_in_isr)
    return Text(replica.label, _STYLES[mark])


def replica_parts(state: PartitionState) -> Iterator[Cell]:
    """Each replica's log end, and what is not as usual: ``1 at 42, 3 held at 40 (2 behind)``."""
    yield from map(styled, partition_text.replica_parts(state))


def state_style(state: str) -> str:
    """How a state of a broker or a replica looks."""
    return _STYLES[partition_text.state_mark(state)]


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
