"""No request succeeds under a leader epoch that is not the broker's (KIP-320).

Fetch, ListOffsets and OffsetForLeaderEpoch say in which epoch their client believes the leader to
be. The epoch that a broker knows is taken from its answers alone, since the trace does not say
when an election reached it: from one that it gave before the request, or from this very answer.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import BoolArray, Int64Array, traced_batches_of
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.ordering import is_latest
from fencepost.pipeline.audit.trace_scan.scan import Stretch
from fencepost.pipeline.audit.trace_scan.session_epochs import changes, requested_epochs

NAME: Final = "no-stale-epoch"
_CHECKED: Final = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")
_COLUMNS: Final = (
    *("api", "broker", "replica_id", "number", "newest", "line", "time_ms", "answered_ms", "error"),
    *("session_id", "current_leader_epoch", "fetch_offset", "timestamp", "offset", "epoch"),
    "batches",
)
_NONE: Final = -1


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Every success under an epoch that the broker knew to be another."""
    for incarnation in evidence.incarnations:
        rows = incarnation.succeeded("Produce", *_CHECKED, columns=_COLUMNS)
        if not rows.num_rows:
            continue
        requested, shown = requested_epochs(rows), _shown_epochs(rows)
        yield from _by_itself(incarnation, rows, requested, shown)
        yield from _by_others(incarnation, rows, requested, np.maximum(requested, shown))


def _shown_epochs(rows: pa.Table) -> Int64Array:
    """The epoch that the broker had at least, as its answer shows; `_NONE` where it shows none."""
    shown = np.full(rows.num_rows, _NONE, np.int64)
    batches = traced_batches_of(rows)
    is_produced = pc.equal(rows["api"], "Produce").to_numpy()[batches.row]
    epochs = np.where(is_produced & ~batches.is_appended_as_sent, _NONE, batches.epoch)
    np.maximum.at(shown, batches.row, epochs)
    epoch = pc.fill_null(rows["epoch"].cast(pa.int64()), _NONE).to_numpy()
    tells = pc.is_in(rows["api"], pa.array(["ListOffsets", "OffsetForLeaderEpoch"])).to_numpy()
    found: Int64Array = np.maximum(shown, np.where(tells, epoch, _NONE))
    return found


def _by_itself(
    incarnation: TopicIncarnation, rows: pa.Table, requested: Int64Array, shown: Int64Array
) -> Iterator[Violation]:
    """Answers that show another epoch than their requests had."""
    for index in np.flatnonzero(_contradicts(rows, requested, shown)).tolist():
        found = f"and shows that it is in epoch {shown[index]}"
        yield _violation(incarnation, rows, index, int(requested[index]), found)


def _contradicts(rows: pa.Table, requested: Int64Array, shown: Int64Array) -> BoolArray:
    """Of each whether its answer shows another epoch than its request had.

    Latest is answered to clients in the leader's own epoch, which is neither older nor newer.
    """
    exact = is_latest(rows) & (shown >= 0)
    wrong: BoolArray = (requested >= 0) & ((shown > requested) | (exact & (shown != requested)))
    return wrong


def _by_others(
    incarnation: TopicIncarnation, rows: pa.Table, requested: Int64Array, known: Int64Array
) -> Iterator[Violation]:
    """Answers under an epoch older than one that the broker had answered in before."""
    brokers = rows["broker"].to_numpy()
    starts = _starts(incarnation, rows)
    order = np.lexsort((rows["newest"].to_numpy(), starts, brokers))
    begins = np.flatnonzero(changes(brokers[order]) | changes(starts[order])).tolist()
    for first, behind in pairwise([*begins, len(order)]):
        yield from _of_one_start(incarnation, rows, order[first:behind], requested, known)


def _of_one_start(
    incarnation: TopicIncarnation,
    rows: pa.Table,
    indexes: Int64Array,
    requested: Int64Array,
    known: Int64Array,
) -> Iterator[Violation]:
    """What one broker answered between two of its starts.

    :param indexes: Of its answers, by `newest`.
    """
    newest, numbers = rows["newest"].to_numpy()[indexes], rows["number"].to_numpy()[indexes]
    highest = np.maximum.accumulate(known[indexes])
    before = np.searchsorted(newest, numbers, side="left")
    epochs = np.where(before > 0, highest[np.maximum(before - 1, 0)], _NONE)
    stale = (requested[indexes] >= 0) & (requested[indexes] < epochs)
    for at in np.flatnonzero(stale).tolist():
        found = f"and was in epoch {epochs[at]} before"
        yield _violation(incarnation, rows, int(indexes[at]), int(requested[indexes[at]]), found)


def _starts(incarnation: TopicIncarnation, rows: pa.Table) -> Int64Array:
    """How often its broker had been started when each was answered: it may know less then."""
    starts = np.zeros(rows.num_rows, np.int64)
    lines, brokers = rows["line"].to_numpy(), rows["broker"].to_numpy()
    for event in incarnation.events:
        if event.kind == Kind.TRACE_STARTED:
            starts += lines > event.line
        elif event.kind == Kind.BROKER_CHANGED and event.details.get("state") == "running":
            starts += (lines > event.line) & (brokers == event.broker)
    return starts


def _violation(
    incarnation: TopicIncarnation, rows: pa.Table, index: int, requested: int, found: str
) -> Violation:
    row = rows.slice(index, 1).to_pylist()[0]
    return Violation(
        rule=NAME,
        topic=incarnation.topic,
        partition=incarnation.partition,
        message=f"broker {row['broker']} answers {row['api']} without an error under leader epoch "
        f"{requested}, {found}",
        broker=row["broker"],
        offset=row["offset"] if row["fetch_offset"] is None else row["fetch_offset"],
        epoch=requested,
        number=row["number"],
        time_ms=row["time_ms"],
    )


class EpochScan:
    """Leaves answers under epochs that the broker knew to be others, and those that show new ones.

    A broker knows, between two of its starts, no more epochs than there were elections.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Int64Array, Int64Array]] = {}
        """By broker and start: the epochs that were shown, each greater than the one before it,
        and the `newest` of the answers that were the first to show them."""

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        rows = stretch.incarnation.rows
        is_checked = pc.is_in(rows["api"], pa.array(["Produce", *_CHECKED]))
        succeeded = pc.and_(pc.is_valid(rows["answered_ms"]), pc.equal(rows["error"], 0))
        wanted = pc.fill_null(pc.and_(is_checked, succeeded), fill_value=False)
        at = np.flatnonzero(wanted.to_numpy())
        rows = rows.select(_COLUMNS).take(at)
        requested, shown = requested_epochs(rows), _shown_epochs(rows)
        left = _contradicts(rows, requested, shown)
        brokers, starts = rows["broker"].to_numpy(), _starts(stretch.incarnation, rows)
        order = np.lexsort((starts, brokers))
        begins = np.flatnonzero(changes(brokers[order]) | changes(starts[order])).tolist()
        for first, behind in pairwise([*begins, len(order)]):
            own = order[first:behind]
            key = (int(brokers[own[0]]), int(starts[own[0]]))
            left[own] |= self._of_one_start(key, rows.take(own), requested[own], shown[own])
        kept = np.zeros(stretch.incarnation.rows.num_rows, bool)
        kept[at[left]] = True
        stretch.kept.keep(kept)

    def _of_one_start(
        self, key: tuple[int, int], rows: pa.Table, requested: Int64Array, shown: Int64Array
    ) -> BoolArray:
        """Of each answer of a broker between two of its starts whether it is left."""
        numbers, newest = rows["number"].to_numpy(), rows["newest"].to_numpy()
        none = np.zeros(0, np.int64)
        epochs, since = self._known.get(key, (none, none))
        known = np.maximum(requested, shown)
        highest = np.maximum.accumulate(np.append(epochs[-1:] if len(epochs) else _NONE, known))
        rises = np.diff(highest) > 0
        epochs, since = np.append(epochs, known[rises]), np.append(since, newest[rises])
        self._known[key] = epochs, since
        before = np.searchsorted(since, numbers, side="left")
        shown_before = np.append(_NONE, epochs)[before]
        stale: BoolArray = (requested >= 0) & (requested < shown_before)
        return rises | stale


RULE: Final = Rule(
    name=NAME,
    about="No request succeeds under another leader epoch than the broker's.",
    source="KIP-320",
    needs_trace=True,
    order=3,
    severity=Severity.ANSWER,
    remedy="nothing stored is wrong: the client was to be refused, and to ask for the leader again",
    check=check,
    scan=EpochScan,
)
