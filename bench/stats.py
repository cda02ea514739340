"""Arithmetic on measurements: spread, percentiles, ratios of pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Smallest, median and largest of ``count`` values."""

    low: float
    median: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """:raises ValueError: Of no values."""
        if not values:
            raise ValueError("no values")
        middle = statistics.median(values)
        return cls(low=min(values), median=middle, high=max(values), count=len(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least ``percent`` of 100 of them do not exceed (nearest rank).

    :raises ValueError: Of no values.
    """
    if not values:
        raise ValueError("no values")
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(rank, 1) - 1]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Smallest, median, 99th percentile and largest, as ``min``, ``p50``, ``p99`` and ``max``.

    :raises ValueError: Of no values.
    """
    return {
        "min": percentile(values, 0),
        "p50": percentile(values, 50),
        "p99": percentile(values, 99),
        "max": percentile(values, 100),
    }


def ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """``ours / theirs`` round by round, over the rounds in which both were measured.

    Each pair ran one right after the other, so what slows the machine for a while slows both and
    leaves their ratio alone. Rounds in which theirs is 0 are left out.
    """
    return [ours[r] / theirs[r] for r in sorted(ours.keys() & theirs.keys()) if theirs[r]]
