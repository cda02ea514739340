"""An id that a tool prints is masked, and a name as long as one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.tools.playing import Ground, masked, with_sorted_fields

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


def test_the_fields_of_an_event_are_sorted_and_other_json_is_as_it_is() -> None:
    event = '{"timestamp":5,"name":"sent","topic":"t","partition":0}'
    sorted_event = '{"name":"sent","partition":0,"timestamp":5,"topic":"t"}'
    assert with_sorted_fields(event) == sorted_event
    assert with_sorted_fields('{"version":1,"log":[]}') == '{"version":1,"log":[]}'
