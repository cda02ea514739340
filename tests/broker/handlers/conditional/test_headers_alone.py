"""Where the headers say that everything matches nothing is staged; everything else is."""

from __future__ import annotations

import struct
from typing import Final

import pytest

from fencepost.storage.log.config import ExpectedOffsetsScope, ExpectedOffsetsSource, LogConfig
from fencepost.storage.log.expected_offsets import matches_upcoming_offset
from fencepost.storage.log.staging import Staging
from tests.broker.handlers.conditional import frames
from tests.harness.driver import Driver
from tests.harness.driver_requests import create
from tests.harness.records import batch

ON: Final = LogConfig(check_expected_offsets=True)


def at(base_offset: int, *values: bytes, gap: int = 0) -> bytes:
    made = batch(*values)
    struct.pack_into(">q", made, 0, base_offset)
    struct.pack_into(">i", made, 23, len(values) - 1 + gap)
    return bytes(made)


@pytest.mark.parametrize(
    ("records", "config", "says_so"),
    [
        (at(7, b"a"), ON, True),
        (at(7, b"a", b"b", b"c"), ON, True),
        (at(-1, b"a"), ON, False),
        (at(6, b"a"), ON, False),
        (at(8, b"a"), ON, False),
        (at(7, b"a", b"b", gap=1), ON, False),
        (at(7, b"a") + at(8, b"b"), ON, False),
        (at(7, b"a")[:-1], ON, False),
        (at(7, b"a")[:60], ON, False),
        (b"", ON, False),
        (at(8, b"a"), LogConfig(), True),
        (
            at(7, b"a"),
            LogConfig(
                check_expected_offsets=True,
                check_expected_offsets_source=ExpectedOffsetsSource.HEADER,
            ),
            False,
        ),
        (
            at(7, b"a"),
            LogConfig(
                check_expected_offsets=True,
                check_expected_offsets_scope=ExpectedOffsetsScope.KEY,
            ),
            False,
        ),
    ],
)
def test_a_header_says_so_or_not(records: bytes, config: LogConfig, says_so: bool) -> None:
    assert matches_upcoming_offset(records, config, 7) is says_so


def test_nothing_is_staged_where_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)], check_expected_offsets="true")
    monkeypatch.delattr(Staging, "add")
    asked = frames.send(driver, [("t-0", at(0, b"a", b"b")), ("t-1", at(0, b"c"))])
    assert [part["BaseOffset"] for _, part in asked.answers] == [0, 0]
    asked = frames.send(driver, [("t-0", at(2, b"d"))])
    assert [part["BaseOffset"] for _, part in asked.answers] == [2]


def test_a_partition_that_is_named_twice_is_staged() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,)], check_expected_offsets="true")
    asked = frames.send(driver, [("t-0", at(0, b"a")), ("t-0", at(0, b"b"))])
    assert [part["ErrorCode"] for _, part in asked.answers] == [2701, 2701]
    assert driver.leader("t").log.log_end_offset == 0
