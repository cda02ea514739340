"""Two sets of results side by side: which figures have become worse, and whether that is noise.

A figure counts as worse (or better) when its median changed by :data:`MARK` or more, when no round
of the one lies within the rounds of the other, of which each has :data:`ROUNDS`, and when the same
is left after what a peer changed by between the two: that was the machine. Values measured in turns
need no peer for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bench import report, rows, stats
from bench.history import Run, Values
from bench.results import OURS

MARK: Final = 1.1
ROUNDS: Final = 3
"""The fewest that say something: one pair of twos in three does not overlap by chance alone."""
PEERS: Final = ("kfake", "kafka")
"""By which the machine's change is seen, the best first."""


class Verdict(StrEnum):
    """What a change is taken for."""

    WORSE = "**worse**"
    BETTER = "better"
    NOISE = "within the noise"
    FEW = "too few rounds"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Of a row, from old to new. ``cost``: how many times worse the median is, below 1 for better.

    ``drift`` is the cost of the same row at a peer; None where none was measured.
    """

    row: rows.Row
    old: stats.Spread
    new: stats.Spread
    cost: float
    drift: float | None = None

    @property
    def is_outside(self) -> bool:
        """Whether the rounds of the two do not overlap."""
        return self.new.low > self.old.high or self.new.high < self.old.low

    @property
    def verdict(self) -> Verdict:
        costs = [self.cost] if self.drift is None else [self.cost, self.cost / self.drift]
        if 1 / MARK < self.cost < MARK:
            return Verdict.SAME
        if min(self.old.count, self.new.count) < ROUNDS:
            return Verdict.FEW
        if not self.is_outside or (min(costs) < MARK and max(costs) > 1 / MARK):
            return Verdict.NOISE
        return Verdict.WORSE if self.cost > 1 else Verdict.BETTER


def changes(old: Values, new: Values, kind: str = OURS) -> Iterator[Change]:
    """Of all rows that both have, in the order of the table.

    :param kind: The server whose old values are compared with ours.
    """
    for row in (*rows.ROWS, *rows.VERB_ROWS):
        found = _change(row, old, new, kind, OURS)
        if found is None:
            continue
        cost, before, after = found
        peers = (_change(row, old, new, peer, peer) for peer in PEERS) if kind == OURS else ()
        drift = next((peer[0] for peer in peers if peer is not None), None)
        yield Change(row=row, old=before, new=after, cost=cost, drift=drift)


def _change(
    row: rows.Row, old: Values, new: Values, old_kind: str, new_kind: str
) -> tuple[float, stats.Spread, stats.Spread] | None:
    before = old.get(row.key, {}).get(old_kind)
    after = new.get(row.key, {}).get(new_kind)
    if not before or not after:
        return None
    was, is_now = stats.Spread.of(before), stats.Spread.of(after)
    if was.median <= 0 or is_now.median <= 0:  # a difference of measurements: it has no ratio
        return None
    cost = was.median / is_now.median if row.higher else is_now.median / was.median
    return cost, was, is_now


def table(found: Sequence[Change], old_title: str, new_title: str) -> str:
    """A line a row: both spreads, how much worse or better, the peer's change, and the verdict."""
    lines = [
        [
            f"{change.row.title}, {change.row.unit}",
            report.measured(change.old, change.row.digits),
            report.measured(change.new, change.row.digits),
            described(change.cost),
            "-" if change.drift is None else described(change.drift),
            change.verdict.value,
        ]
        for change in found
    ]
    return report.table(["", old_title, new_title, "change", "of the peer", ""], lines)


def described(cost: float) -> str:
    """A cost in words: by how many percent the time or the throughput's reciprocal changed."""
    if 0.995 < cost < 1.005:
        return "0 %"
    return f"{cost - 1:.0%} worse" if cost > 1 else f"{1 / cost - 1:.0%} better"


def compared(old: Run, new: Run) -> tuple[str, bool]:
    """What there is to say of two runs, and whether a figure has become worse."""
    found = list(changes(old.values, new.values))
    titles = [f"{run.commit[:10]}{'+' * run.commit.endswith('+')}" for run in (old, new)]
    worse = [change for change in found if change.verdict is Verdict.WORSE]
    parts = [table(found, *titles)] if found else ["They have no figure in common."]
    shares = " and ".join(f"{run.others:.0%} on {run.date}" for run in (old, new))
    parts.append(f"Other processes used {shares} of the machine.")
    names = ", ".join(change.row.title for change in worse)
    parts.append(f"Worse by 10 % or more, beyond the noise: {names or 'none'}.")
    return "\n\n".join(parts), bool(worse)
