"""Recorded clusters: the data, tier and trace of a simulated run with faults of all kinds."""

from dataclasses import dataclass
from pathlib import Path

from fencepost.cli.simulate_record import record
from fencepost.simulation.runner import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded run."""

    data: Path
    """As of ``serve --data-dir``."""
    tier: str
    """The URL of ``--remote``."""
    trace: Path
    """As of ``serve --trace``."""
    outcome: Outcome


def recorded(folder: Path, seed: int, minutes: float, *, heals: bool = True) -> Recorded:
    """Record some simulated time of a seed.

    :param folder: Empty, or not there.
    :param heals: Whether it ended in order, or is left as by ``kill -9``.
    """
    outcome = record(folder, seed, minutes, heals=heals)
    return Recorded(
        data=folder / "data",
        tier=(folder / "tier").as_uri(),
        trace=folder / "trace",
        outcome=outcome,
    )
