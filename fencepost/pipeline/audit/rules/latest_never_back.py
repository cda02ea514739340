"""The latest offset never goes back (KIP-207).

Of two answers to clients of which one was given before the other was asked for, the later is not
smaller. Answers of different isolation levels are not compared, nor those to brokers or debuggers.

A fall is explained where a leader was elected uncleanly, or may have been, and where the later
answer is of a leader that had not learnt of its successor yet: a client that sends leader epochs
(KIP-320) gets an error from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.ordering import IS_ANSWERED, is_latest
from fencepost.pipeline.audit.trace_scan.scan import Stretch

NAME: Final = "latest-never-back"
_BELOW_ALL: Final = -2
"""Below every offset in an answer: the least is -1."""
_UNCLEAN: Final = "unclean.leader.election.enable"
_COLUMNS: Final = ("number", "newest", "line", "time_ms", "offset", "epoch", "broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A latest offset as a client got it."""

    number: int
    newest: int
    line: int
    time_ms: int
    offset: int
    epoch: int | None
    """None where the version has no epochs (below v4), or the topic none."""
    broker: int


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Every answer that is below an earlier one."""
    for incarnation in evidence.incarnations:
        rows = incarnation.rows.filter(pa.array(is_latest(incarnation.rows)))
        for level in pc.unique(rows["isolation_level"]).to_pylist():
            yield from _of_level(incarnation, rows.filter(pc.equal(rows["isolation_level"], level)))


def _of_level(incarnation: TopicIncarnation, rows: pa.Table) -> Iterator[Violation]:
    offsets = rows["offset"].to_numpy()
    numbers, newest = rows["number"].to_numpy(), rows["newest"].to_numpy()
    # Line by line: an answer came before a question where its `newest` is below that number.
    order = np.argsort(newest, kind="stable")
    highest = np.maximum.accumulate(offsets[order])
    rises = np.diff(highest, prepend=_BELOW_ALL) > 0
    first_of = np.maximum.accumulate(np.where(rises, np.arange(len(order)), 0))
    before = np.searchsorted(newest[order], numbers, side="left")
    has_before = np.flatnonzero(before > 0)
    back = has_before[offsets[has_before] < highest[before[has_before] - 1]]
    for index in back.tolist():
        most = order[first_of[before[index] - 1]]
        yield _violation(incarnation, _answer(rows, int(most)), _answer(rows, index))


def _answer(rows: pa.Table, index: int) -> _Answer:
    row: dict[str, Any] = rows.select(_COLUMNS).slice(index, 1).to_pylist()[0]
    epoch = row.pop("epoch")
    return _Answer(**row, epoch=None if epoch is None or epoch < 0 else epoch)


def _violation(incarnation: TopicIncarnation, first: _Answer, second: _Answer) -> Violation:
    return Violation(
        rule=NAME,
        topic=incarnation.topic,
        partition=incarnation.partition,
        message=f"latest is {second.offset} by broker {second.broker}{_of_epoch(second)}, and was "
        f"{first.offset} by broker {first.broker}{_of_epoch(first)} before",
        explanation=_explanation(incarnation, first, second),
        broker=second.broker,
        offset=second.offset,
        end_offset=first.offset,
        epoch=second.epoch,
        number=second.number,
        time_ms=second.time_ms,
    )


def _of_epoch(answer: _Answer) -> str:
    return "" if answer.epoch is None else f" in epoch {answer.epoch}"


def _explanation(incarnation: TopicIncarnation, first: _Answer, second: _Answer) -> str | None:
    stale = _stale(incarnation, first, second)
    if stale is not None:
        return stale
    unclean = "true" in incarnation.configs.values(_UNCLEAN, since=first.line, until=second.line)
    if unclean and not incarnation.configs.is_apache:
        return f"{_UNCLEAN} is true, and so no leader waits for its high watermark"
    until = -1 if second.epoch is None else second.epoch
    return incarnation.explain_loss(
        epoch=first.epoch, number=first.number, until=until, before=second.line
    )


def _stale(incarnation: TopicIncarnation, first: _Answer, second: _Answer) -> str | None:
    """That the later answer is of who was no leader any more."""
    if first.epoch is not None and second.epoch is not None:
        if second.epoch >= first.epoch:
            return None
        return f"broker {second.broker} had not heard yet of epoch {first.epoch}"
    term = next((r for r in reversed(incarnation.leader_terms) if r.line < second.line), None)
    if term is None or term.leader == second.broker:
        return None
    return f"broker {second.broker} was no leader any more, and had not heard of it yet"


class LatestScan:
    """Leaves answers that are below an earlier one, and the first of those that were highest then.

    Of each isolation level the first answer is left too: findings are in the order of these.
    """

    def __init__(self) -> None:
        self._highest: dict[int, int] = {}
        self._back: set[int] = set()
        """Lines of answers that are below an earlier one, and were not seen yet."""

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        turns = stretch.turns.select(["line", "offset", "isolation_level", IS_ANSWERED])
        number_of_row = np.cumsum(turns[IS_ANSWERED].to_numpy()) - 1
        wanted = np.flatnonzero(is_latest(stretch.turns))
        levels = turns["isolation_level"].take(wanted)
        for level in pc.unique(levels).drop_null().to_pylist():
            of_level = wanted[pc.equal(levels, level).to_numpy()]
            self._of_level(stretch, turns.take(of_level), number_of_row[of_level], level)

    def _of_level(
        self, stretch: Stretch, turns: pa.Table, number_of_row: Int64Array, level: int
    ) -> None:
        """:param number_of_row: Of each answer which of the rows of the stretch it is."""
        answered, offsets = turns[IS_ANSWERED].to_numpy(), turns["offset"]
        offsets = pc.fill_null(offsets, _BELOW_ALL).to_numpy()
        lines = turns["line"].to_numpy()
        kept = np.zeros(stretch.incarnation.rows.num_rows, bool)
        before = self._highest.get(level)
        if before is None and answered.any():
            kept[number_of_row[answered][0]] = True
        least = _BELOW_ALL if before is None else before
        highest = np.maximum.accumulate(np.append(least, np.where(answered, offsets, _BELOW_ALL)))
        rises = np.flatnonzero(np.diff(highest) > 0)
        back = np.flatnonzero(~answered & (offsets < highest[:-1]))
        self._back.update(lines[back].tolist())
        # Of each the rise before it; where there is none, it was in an earlier stretch.
        rise = np.searchsorted(rises, back) - 1
        kept[number_of_row[rises[rise[rise >= 0]]]] = True
        if (rise < 0).any():
            stretch.kept.keep_held((NAME, level))
        seen = np.flatnonzero(answered & np.isin(lines, list(self._back)))
        self._back.difference_update(lines[seen].tolist())
        kept[number_of_row[seen]] = True
        stretch.kept.keep(kept)
        if len(rises):
            stretch.kept.hold((NAME, level), int(number_of_row[rises[-1]]))
        if answered.any():
            self._highest[level] = int(highest[-1])


RULE: Final = Rule(
    name=NAME,
    about="Of two answers that are ordered in time the later tells no smaller latest offset.",
    source="KIP-207",
    needs_trace=True,
    order=2,
    severity=Severity.ANSWER,
    remedy=(
        "nothing stored is wrong: a consumer that took the smaller offset for the end reads on "
        "from there"
    ),
    check=check,
    scan=LatestScan,
)
