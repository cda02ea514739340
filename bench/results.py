"""What a run has measured so far, and the comparisons drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench import rows, stats

OURS = "fencepost"


@dataclass(slots=True, kw_only=True)
class Results:
    """Values by row, kind of server and round; and what could not be measured, in words."""

    values: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """The share of the machine that other processes used during each measurement, 0 to 1."""

    failed: bool = False
    """Whether fencepost itself failed in any figure."""

    def add(self, kind: str, turn: int, measured: Mapping[str, float]) -> None:
        for row, value in measured.items():
            self.values.setdefault(row, {}).setdefault(kind, {})[turn] = value

    def spread(self, row: str, kind: str) -> stats.Spread | None:
        """None when that was not measured."""
        found = self.values.get(row, {}).get(kind)
        return stats.Spread.of(list(found.values())) if found else None

    def ratio(self, row: str, peer: str) -> stats.Spread | None:
        """Our values over the peer's, pair by pair; None without a pair."""
        found = self.values.get(row, {})
        pairs = stats.ratios(found.get(OURS, {}), found.get(peer, {}))
        return stats.Spread.of(pairs) if pairs else None

    def judged(self, target: rows.Target) -> stats.Spread | None:
        """What a target is about: its median is held against the limit."""
        if target.peer is None:
            return self.spread(target.row, OURS)
        return self.ratio(target.row, target.peer)
