"""ListOffsets and OffsetForLeaderEpoch as a replica: checked like a client's, and not gated."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from tests.broker.replication.foreign_follower import (
    CLAIMED,
    ELSEWHERE,
    FENCED,
    NEWER,
    OK,
    UNASSIGNED,
    UNKNOWN,
    epoch_end,
    start,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import list_offset, send_produce


def start_gated() -> Driver:
    """Leader epoch 1 began at 3, and the high watermark is 1: the gate of KIP-207 is shut."""
    driver, _ = start(records=1)
    for n in range(2):
        send_produce(driver, "t", b"%d" % n, acks=1)
    driver.elect("t", 0, 2)
    operator_actions.hold(driver.cluster, "t", 0, 1)
    assert driver.leader("t").high_watermark == 1
    return driver


@pytest.mark.parametrize("version", range(1, 12))
def test_a_replica_learns_the_log_end_and_is_not_gated(version: int) -> None:
    driver = start_gated()
    known = 1 if version >= 4 else UNKNOWN
    for replica_id in (1, CLAIMED):
        found = list_offset(
            driver, "t", -1, version=version, replica_id=replica_id, current_leader_epoch=known
        )
        assert (found.error_code, found.offset) == (OK, 3)
    refused = list_offset(driver, "t", -1, version=version)
    gate = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (refused.error_code, refused.offset) == (gate, -1)


@pytest.mark.parametrize("timestamp", [-2, -4])
def test_a_replica_learns_the_log_start_and_is_not_gated(timestamp: int) -> None:
    driver = start_gated()
    found = list_offset(driver, "t", timestamp, replica_id=CLAIMED, current_leader_epoch=1)
    assert (found.error_code, found.offset, found.leader_epoch) == (OK, 0, 0)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_replica_learns_where_epochs_end_and_is_not_gated(version: int) -> None:
    driver = start_gated()
    ends = [
        epoch_end(driver, epoch, current=1, broker_id=2, version=version) for epoch in (0, 1, 2)
    ]
    assert [each.error_code for each in ends] == [OK, OK, OK]
    assert [(each.leader_epoch, each.end_offset) for each in ends] == [(0, 3), (1, 3), (-1, -1)]


LOOKUPS: Final = pytest.mark.parametrize(
    ("broker_id", "known", "code"),
    [
        (2, -1, OK),
        (2, 0, FENCED),
        (2, 1, OK),
        (2, 2, NEWER),
        (1, -1, ELSEWHERE),
        (1, 0, FENCED),
        (1, 1, ELSEWHERE),
        (1, 2, NEWER),
        (UNASSIGNED, -1, ELSEWHERE),
        (UNASSIGNED, 0, ELSEWHERE),
        (UNASSIGNED, 2, ELSEWHERE),
    ],
)


@LOOKUPS
@pytest.mark.parametrize("version", range(4, 12))
def test_list_offsets_checks_what_a_replica_knows(
    broker_id: int, known: int, code: ErrorCode, version: int
) -> None:
    found = list_offset(
        start_gated(),
        "t",
        -1,
        broker_id=broker_id,
        version=version,
        replica_id=CLAIMED,
        current_leader_epoch=known,
    )
    assert found.error_code == code


@LOOKUPS
@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch_checks_what_a_replica_knows(
    broker_id: int, known: int, code: ErrorCode, version: int
) -> None:
    found = epoch_end(start_gated(), 0, current=known, broker_id=broker_id, version=version)
    assert found.error_code == code
