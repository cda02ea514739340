"""Clusters that do something wrong to their logs, to show that an audit notices.

``python -m tests.pipeline.audit.log_mutants nothing_truncated,... serve ...`` is ``fencepost
serve`` with some of the simulation's mutants.
"""

from __future__ import annotations

import sys
from typing import Final

import pytest

from fencepost.cli import main
from tests.simulation import mutants, tier_mutants

MUTANTS: Final = {
    "nothing_truncated": mutants.nothing_truncated,
    "everything_closed_deleted": tier_mutants.everything_closed_deleted,
    "epochs_of_segments_forgotten": tier_mutants.epochs_of_segments_forgotten,
}


def run(arguments: list[str]) -> int:
    names, *rest = arguments
    patch = pytest.MonkeyPatch()
    for name in names.split(","):
        MUTANTS[name](patch)
    return main(rest)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
