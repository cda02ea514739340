"""How far retention may move a log start."""

import pytest

from fencepost.simulation.history import Batch
from fencepost.simulation.log_start_checker import retained_from
from fencepost.storage.log.config import LogConfig

NOW = 10_000
BATCHES = [
    Batch(0, at, at + 10, crc=at, before=None, size_bytes=100, max_timestamp=100 * at)
    for at in range(0, 50, 10)
]
"""Five batches of 100 bytes; their times are 0 to 4000."""


def start_after(retention_bytes: int = -1, retention_ms: int = -1) -> int:
    config = LogConfig(retention_bytes=retention_bytes, retention_ms=retention_ms)
    return retained_from(BATCHES, config, start=0, now_ms=NOW)


@pytest.mark.parametrize(("limit", "start"), [(-1, 0), (500, 0), (401, 0), (400, 10), (0, 50)])
def test_by_size_goes_what_leaves_as_much_as_retention_says(limit: int, start: int) -> None:
    assert start_after(retention_bytes=limit) == start


@pytest.mark.parametrize(
    ("limit", "start"), [(-1, 0), (NOW, 10), (NOW + 1, 0), (NOW - 1000, 20), (0, 50)]
)
def test_by_time_goes_what_is_as_old_as_retention_says(limit: int, start: int) -> None:
    assert start_after(retention_ms=limit) == start


def test_what_goes_by_time_counts_for_the_size() -> None:
    assert start_after(retention_ms=NOW, retention_bytes=400) == 10
    assert start_after(retention_ms=NOW, retention_bytes=300) == 20


def test_without_a_policy_nothing_goes() -> None:
    config = LogConfig(cleanup_policy=frozenset(), retention_bytes=0)
    assert retained_from(BATCHES, config, start=3, now_ms=NOW) == 3
