"""A follower that begins behind the tier fetches what is not tiered, and nothing else (KIP-1023).

An empty follower that its leader refuses asks where the earliest offset lies that waits to be
tiered, and begins there; with the old protocol (KIP-405) it begins where its leader's own log does.

- It begins where its leader has told it last.
- Where ``follower.fetch.last.tiered.offset.enable`` is true, and its cluster has ListOffsets v11,
  an empty one asks for the earliest that waits to be tiered.
- From then on it is not given what lies before, until its log is another.
- A leader refuses nothing that it has itself. Its own log never begins earlier than it did, so that
  what it shows afterwards tells: where it says that its log begins, and what it gives to followers.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import FOREVER, TopicIncarnation, TraceEvent
from fencepost.protocol.errors import ErrorCode

NAME: Final = "fetched-share"
_ENABLED: Final = "follower.fetch.last.tiered.offset.enable"
_LOCAL: Final = -4
_PENDING: Final = -6
_ASKED_BY_STARTERS: Final = (_LOCAL, _PENDING)
_FIRST_WITH_PENDING: Final = 11
_ANOTHER_LOG: Final = (
    Kind.LOG_STARTED_FROM_TIER,
    Kind.LOG_TRUNCATED,
    Kind.REPLICA_WIPED,
    Kind.REPLICAS_CHANGED,
    Kind.BROKER_CHANGED,
    Kind.TRACE_STARTED,
)
"""After these a broker may have a log that begins elsewhere."""


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Each begin behind the tier, and each refusal, by itself."""
    for incarnation in evidence.incarnations:
        yield from _refused(incarnation)
        for event in incarnation.events:
            if event.kind == Kind.LOG_STARTED_FROM_TIER and event.topic == incarnation.topic:
                yield from _wrong_start(incarnation, event)
                yield from _fetched_before(incarnation, event)


def _wrong_start(incarnation: TopicIncarnation, event: TraceEvent) -> Iterator[Violation]:
    row = _last_start_offset(incarnation, event)
    offset = event.details["offset"]
    if row is None:  # the trace began meanwhile
        return
    if offset != row["offset"]:
        yield _violation(
            incarnation,
            row,
            event.broker,
            offset,
            f"broker {event.broker} begins at offset {offset}, where its leader told it "
            f"{row['offset']} (ListOffsets {row['timestamp']})",
        )
    elif row["timestamp"] == _LOCAL and _should_bootstrap(incarnation, event, row):
        yield _violation(
            incarnation,
            row,
            event.broker,
            offset,
            f"broker {event.broker}, which was empty, begins where its leader's own log does, at "
            f"offset {offset}, and did not ask for the earliest that waits to be tiered, although "
            f"{_ENABLED} is true",
        )


def _last_start_offset(incarnation: TopicIncarnation, event: TraceEvent) -> dict[str, Any] | None:
    """The last start offset that the follower got from its leader."""
    rows = incarnation.succeeded("ListOffsets")
    asked = pc.is_in(rows["timestamp"], pa.array(_ASKED_BY_STARTERS, pa.int64()))
    own = pc.equal(rows["replica_id"], event.broker)
    before = pc.less(rows["line"], event.line)
    rows = rows.filter(pc.and_(before, pc.and_(asked, own)))
    found: list[dict[str, Any]] = rows.slice(max(rows.num_rows - 1, 0)).to_pylist()
    return found[0] if found else None


def _should_bootstrap(
    incarnation: TopicIncarnation, event: TraceEvent, row: dict[str, Any]
) -> bool:
    """Whether it was empty, and the feature on all the time."""
    values = incarnation.configs.values(_ENABLED, since=row["line"], until=event.line)
    is_empty = event.details["previous_offset"] == 0
    return is_empty and values == {"true"} and row["version"] >= _FIRST_WITH_PENDING


def _fetched_before(incarnation: TopicIncarnation, event: TraceEvent) -> Iterator[Violation]:
    """What it was given afterwards, although it had left it to the tier."""
    start = event.details["offset"]
    until = _log_replaced_at(
        event.broker, (each for each in incarnation.events if each.line > event.line)
    )
    rows = incarnation.succeeded("Fetch")
    wanted = pc.and_(
        pc.and_(pc.equal(rows["replica_id"], event.broker), pc.greater(rows["bytes"], 0)),
        pc.and_(pc.greater(rows["number"], event.newest), pc.less(rows["fetch_offset"], start)),
    )
    wanted = pc.and_(wanted, pc.less(rows["line"], until))
    for row in rows.filter(pc.fill_null(wanted, fill_value=False)).to_pylist():
        yield _violation(
            incarnation,
            row,
            event.broker,
            start,
            f"broker {event.broker} fetched from offset {row['fetch_offset']}, although it had "
            f"begun at {start} and left to the tier what comes before",
        )


def _log_replaced_at(broker: int | None, events: Iterable[TraceEvent]) -> int:
    """The line in which a broker's log may be another one, for the first time in some events."""
    lines = (e.line for e in events if e.kind in _ANOTHER_LOG and e.broker in (None, broker))
    return next(lines, FOREVER)


def _refused(incarnation: TopicIncarnation) -> Iterator[Violation]:
    """Offsets that a leader said are in the tier alone, and had itself."""
    fetches = incarnation.exchanges("Fetch")
    is_moved = pc.equal(fetches["error"], ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
    moved = pc.and_(is_moved, pc.is_valid(fetches["fetch_offset"]))
    refusals = fetches.filter(pc.fill_null(moved, fill_value=False)).to_pylist()
    if not refusals:
        return
    shown, starts = _local_starts(incarnation)
    brokers, numbers, lines = (shown[each].to_numpy() for each in ("broker", "number", "line"))
    for row in refusals:
        until = _log_replaced_at(
            row["broker"], (e for e in incarnation.events if e.newest >= row["number"])
        )
        later = (brokers == row["broker"]) & (numbers > row["newest"]) & (lines < until)
        start = int(starts[later].min(initial=FOREVER))
        if start <= row["fetch_offset"]:
            yield _violation(
                incarnation,
                row,
                row["broker"],
                row["fetch_offset"],
                f"broker {row['broker']} refused offset {row['fetch_offset']} to broker "
                f"{row['replica_id']}, as if it were in the tier alone, and has itself what comes "
                f"from offset {start} on",
            )


def _local_starts(incarnation: TopicIncarnation) -> tuple[pa.Table, Int64Array]:
    """Answers that show where a leader's own log begins, and the offset: there or before."""
    rows = incarnation.succeeded("ListOffsets", "Fetch")
    is_start = pc.and_(pc.equal(rows["timestamp"], _LOCAL), pc.greater_equal(rows["offset"], 0))
    is_given = pc.and_(pc.greater(rows["bytes"], 0), pc.greater_equal(rows["fetch_offset"], 0))
    is_share = pc.and_(pc.greater_equal(rows["replica_id"], 0), is_given)
    has_start = pc.if_else(pc.equal(rows["api"], "Fetch"), is_share, is_start)
    rows = rows.filter(pc.fill_null(has_start, fill_value=False))
    return rows, pc.coalesce(rows["fetch_offset"], rows["offset"]).to_numpy()


def _violation(
    incarnation: TopicIncarnation,
    row: dict[str, Any],
    broker: int | None,
    offset: int,
    message: str,
) -> Violation:
    return Violation(
        rule=NAME,
        topic=incarnation.topic,
        partition=incarnation.partition,
        message=message,
        broker=broker,
        offset=offset,
        epoch=row["current_leader_epoch"],
        number=row["number"],
        time_ms=row["time_ms"],
    )


RULE: Final = Rule(
    name=NAME,
    about="A follower that begins behind the tier begins where it should, and gets the rest.",
    source="KIP-1023, KIP-405",
    needs_trace=True,
    order=6,
    severity=Severity.ANSWER,
    remedy=(
        "nothing stored is wrong: the follower has copied more than it had to, or waits for "
        "what it has been refused"
    ),
    check=check,
)
