"""Clusters that do something wrong which a trace shows: ``MUTANT serve ...``.

``python -m tests.pipeline.audit.trace_mutants slow-broker serve ...`` is ``fencepost serve`` with
the mutant of a scenario, or of the simulation, or with one of these.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from fencepost.broker.groups import offsets
from fencepost.cli import main
from tests.scenario.mutant import MUTANTS as OF_SCENARIOS
from tests.simulation import mutants

if TYPE_CHECKING:
    from collections.abc import Callable

    from fencepost.broker.groups.group_config import GroupConfig
    from fencepost.broker.groups.offsets import Commit, PartitionCommit
    from fencepost.broker.groups.records import CommittedOffset


def _appended_and_refused(patch: pytest.MonkeyPatch) -> None:
    mutants.appended_and_refused(patch)


def _commits_without_epoch(patch: pytest.MonkeyPatch) -> None:
    committed = offsets._committed

    def wrong(
        commit: Commit, partition: PartitionCommit, config: GroupConfig, now_ms: int
    ) -> CommittedOffset:
        return replace(committed(commit, partition, config, now_ms), leader_epoch=-1)

    patch.setattr(offsets, "_committed", wrong)


MUTANTS: Final[dict[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "appended-and-refused": _appended_and_refused,
    "commits-without-epoch": _commits_without_epoch,
}


def run(arguments: list[str]) -> int:
    name, *rest = arguments
    if name in OF_SCENARIOS:
        OF_SCENARIOS[name].apply()
        return main(rest)
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name](patch)
        return main(rest)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
