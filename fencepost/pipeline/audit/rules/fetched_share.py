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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_event import FOREVER, TraceEvent
from fencepost.pipeline.audit.trace_scan.scan import Stretch
from fencepost.protocol.errors import ErrorCode

NAME: Final = "fetched-share"
_ENABLED: Final = "follower.fetch.last.tiered.offset.enable"
_LOCAL: Final = -4
_PENDING: Final = -6
_ASKED_BY_STARTERS: Final = (_LOCAL, _PENDING)
_FIRST_WITH_PENDING: Final = 11
_AT: Final = "at_row"
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
    rows = incarnation.rows.filter(pa.array(_is_told_start(incarnation.rows)))
    own = pc.equal(rows["replica_id"], event.broker)
    rows = rows.filter(pc.and_(pc.less(rows["line"], event.line), own))
    found: list[dict[str, Any]] = rows.slice(max(rows.num_rows - 1, 0)).to_pylist()
    return found[0] if found else None


def _is_told_start(rows: pa.Table) -> BoolArray:
    """Of each exchange whether it tells where a follower may begin."""
    asked = pc.is_in(rows["timestamp"], pa.array(_ASKED_BY_STARTERS, pa.int64()))
    return _flags(pc.and_(_is_success(rows, "ListOffsets"), asked))


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
    rows = incarnation.rows.filter(pa.array(_is_before_start(incarnation, event)))
    for row in rows.to_pylist():
        yield _violation(
            incarnation,
            row,
            event.broker,
            start,
            f"broker {event.broker} fetched from offset {row['fetch_offset']}, although it had "
            f"begun at {start} and left to the tier what comes before",
        )


def _is_before_start(incarnation: TopicIncarnation, event: TraceEvent) -> BoolArray:
    """Of each exchange whether it gave a follower what it had left to the tier."""
    until = _log_replaced_at(
        event.broker, (each for each in incarnation.events if each.line > event.line)
    )
    rows = incarnation.rows
    given = pc.and_(_is_success(rows, "Fetch"), pc.greater(rows["bytes"], 0))
    own = pc.and_(pc.equal(rows["replica_id"], event.broker), pc.less(rows["line"], until))
    later = pc.and_(
        pc.greater(rows["number"], event.newest),
        pc.less(rows["fetch_offset"], event.details["offset"]),
    )
    return _flags(pc.and_(pc.and_(given, own), later))


def _is_success(rows: pa.Table, api: str) -> pa.ChunkedArray:
    """Of each exchange whether it is of an API, and was answered without an error."""
    succeeded = pc.and_(pc.is_valid(rows["answered_ms"]), pc.equal(rows["error"], ErrorCode.NONE))
    return pc.and_(pc.equal(rows["api"], api), succeeded)


def _flags(column: pa.ChunkedArray) -> BoolArray:
    found: BoolArray = pc.fill_null(column, fill_value=False).to_numpy()
    return found


def _log_replaced_at(broker: int | None, events: Iterable[TraceEvent]) -> int:
    """The line in which a broker's log may be another one, for the first time in some events."""
    lines = (e.line for e in events if e.kind in _ANOTHER_LOG and e.broker in (None, broker))
    return next(lines, FOREVER)


def _refused(incarnation: TopicIncarnation) -> Iterator[Violation]:
    """Offsets that a leader said are in the tier alone, and had itself."""
    refusals = incarnation.rows.filter(pa.array(_is_refusal(incarnation.rows))).to_pylist()
    if not refusals:
        return
    shown, starts = _local_starts(incarnation.rows)
    brokers, numbers, lines = (shown[each].to_numpy() for each in ("broker", "number", "line"))
    for row in refusals:
        until = _may_show_until(incarnation, row)
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


def _is_refusal(rows: pa.Table) -> BoolArray:
    """Of each exchange whether it told a follower that an offset is in the tier alone."""
    is_moved = pc.equal(rows["error"], ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
    says_offset = pc.and_(pc.equal(rows["api"], "Fetch"), pc.is_valid(rows["fetch_offset"]))
    return _flags(pc.and_(is_moved, says_offset))


def _may_show_until(incarnation: TopicIncarnation, refusal: dict[str, Any]) -> int:
    """The line from which on what the leader shows says nothing of a refusal."""
    return _log_replaced_at(
        refusal["broker"], (e for e in incarnation.events if e.newest >= refusal["number"])
    )


def _local_starts(rows: pa.Table) -> tuple[pa.Table, Int64Array]:
    """Answers that show where a leader's own log begins, and the offset: there or before."""
    is_start = pc.and_(pc.equal(rows["timestamp"], _LOCAL), pc.greater_equal(rows["offset"], 0))
    is_given = pc.and_(pc.greater(rows["bytes"], 0), pc.greater_equal(rows["fetch_offset"], 0))
    is_share = pc.and_(pc.greater_equal(rows["replica_id"], 0), is_given)
    has_start = _flags(pc.and_(_is_success(rows, "Fetch"), is_share))
    has_start |= _flags(pc.and_(_is_success(rows, "ListOffsets"), is_start))
    rows = rows.append_column(_AT, pa.array(np.arange(rows.num_rows))).filter(pa.array(has_start))
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


@dataclass(slots=True, kw_only=True)
class _Refusal:
    """A refusal for which a leader may still show that it was wrong."""

    broker: int
    newest: int
    until: int
    offset: int
    """What was refused."""
    least: int
    """The least offset that was shown."""


class FetchedShareScan:
    """Leaves what followers were told last before they began, what they got nevertheless, and
    refusals with what shows best that they were wrong.

    Its state goes by followers that begin behind the tier, and by refusals.
    """

    def __init__(self) -> None:
        self._refusals: list[_Refusal] = []

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        incarnation = stretch.incarnation
        begins = [
            event
            for event in incarnation.events
            if event.kind == Kind.LOG_STARTED_FROM_TIER and event.topic == incarnation.topic
        ]
        for event in begins:
            stretch.kept.keep(_is_before_start(incarnation, event))
        self._hold_told_starts(stretch, begins)
        refusals = _is_refusal(incarnation.rows)
        stretch.kept.keep(refusals)
        for row in incarnation.rows.filter(pa.array(refusals)).to_pylist():
            self._refusals.append(
                _Refusal(
                    broker=row["broker"],
                    newest=row["newest"],
                    until=_may_show_until(incarnation, row),
                    offset=row["fetch_offset"],
                    least=FOREVER,
                )
            )
        if self._refusals:
            self._hold_shown(stretch)

    def _hold_told_starts(self, stretch: Stretch, begins: Sequence[TraceEvent]) -> None:
        """The last one before each begin of its follower."""
        if not begins:
            return
        rows = stretch.incarnation.rows
        told = np.flatnonzero(_is_told_start(rows))
        rows = rows.select(["replica_id", "line"]).take(told)
        replicas, lines = (rows[name].to_numpy() for name in ("replica_id", "line"))
        for event in begins:
            before = np.flatnonzero((replicas == event.broker) & (lines < event.line))
            if len(before):
                last = before[np.argmax(lines[before])]
                stretch.kept.hold((NAME, "told", event.broker, event.line), int(told[last]))

    def _hold_shown(self, stretch: Stretch) -> None:
        """The least start that was shown after each refusal that it shows to be wrong."""
        shown, starts = _local_starts(stretch.incarnation.rows)
        brokers, numbers, lines, at = (
            shown[each].to_numpy() for each in ("broker", "number", "line", _AT)
        )
        for number, refusal in enumerate(self._refusals):
            own = (brokers == refusal.broker) & (numbers > refusal.newest)
            own &= (lines < refusal.until) & (starts <= refusal.offset) & (starts < refusal.least)
            if own.any():
                found = np.flatnonzero(own)
                least = found[np.argmin(starts[found])]
                refusal.least = int(starts[least])
                stretch.kept.hold((NAME, "shown", number), int(at[least]))


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
    scan=FetchedShareScan,
)
