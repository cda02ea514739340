"""An id that a tool prints is masked, and a name as long as one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.tools.playing import Ground, masked

NOWHERE = Ground(brokers=["127.0.0.1:1"], controller="none", folder=Path("none"), logs=[])


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("Cluster ID: MkU3OEVBNTcwNTJENDM2Qk", "Cluster ID: <id>"),
        ("Cluster ID: AbcDe-ghIjklmnOpqRstuv", "Cluster ID: <id>"),
        ("VoterNotFoundException: no voter", "VoterNotFoundException: no voter"),
        ("Epoch  LatestCoordinatorEpoch", "Epoch  LatestCoordinatorEpoch"),
    ],
)
def test_ids_are_masked_and_names_are_not(printed: str, shown: str) -> None:
    assert masked(printed, NOWHERE) == shown
