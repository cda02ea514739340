"""Clusters that do something wrong to their logs, to show that an audit notices.

``python -m tests.pipeline.audit.log_mutants nothing_truncated,... serve ...`` is ``fencepost
serve`` with some of the simulation's mutants.
"""

from __future__ import annotations

import sys
from typing import Final

import pytest

from fencepost.broker.data_dir.offset_checkpoints import OffsetCheckpoints
from fencepost.cli import main
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from tests.simulation import mutants, tier_mutants


def log_start_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Segments are deleted at the head, and neither checkpoint knows of it."""
    patch.setattr(LeaderEpochCache, "truncate_from_start", lambda _cache, _offset: None)
    patch.setattr(OffsetCheckpoints, "record_log_start", lambda _offsets, _key, _log: None)


MUTANTS: Final = {
    "nothing_truncated": mutants.nothing_truncated,
    "everything_closed_deleted": tier_mutants.everything_closed_deleted,
    "log_start_not_recorded": log_start_not_recorded,
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
