"""Schedules that once broke an invariant, as small as they were found; each holds now.

The first line of each file says what the schedule shows.
"""

from pathlib import Path
from typing import Final

import pytest

from fencepost.simulation.runner import replay
from fencepost.simulation.schedule import parse

FILES: Final = sorted((Path(__file__).parent / "schedules").glob("*.txt"))


def test_there_are_schedules_and_each_says_what_it_shows() -> None:
    assert FILES
    assert [file.name for file in FILES if not file.read_text().startswith("# ")] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_once_broke_holds(file: Path) -> None:
    statement, _, schedule = file.read_text().partition("\n")
    outcome = replay(parse(schedule))
    assert outcome.failure is None, statement
