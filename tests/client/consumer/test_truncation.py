from __future__ import annotations

import pytest

from fencepost.client.consumer.cluster_metadata import LeaderAndEpoch
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.position import Position
from fencepost.client.consumer.truncation import Diverged, Valid, compare

LEADER = LeaderAndEpoch(leader=1, epoch=9)
READ = Position(offset=10, epoch=3, leader=LEADER, is_read=True)
SOUGHT = Position(offset=10, epoch=3, leader=LEADER)


def at(offset: int, epoch: int) -> Diverged:
    return Diverged(OffsetAndMetadata(offset=offset, leader_epoch=epoch))


@pytest.mark.parametrize(
    ("position", "answer", "found"),
    [
        (READ, (3, 10), Valid(3)),
        (READ, (3, 12), Valid(3)),
        (READ, (3, 8), at(8, 3)),
        (READ, (1, 8), at(8, 1)),
        (READ, (-1, -1), Diverged(None)),
        # Record 9 has epoch 3, and this log has no such record.
        (READ, (1, 10), at(9, 1)),
        (READ, (1, 12), at(9, 1)),
        # The epoch of a position that was committed may be that of a leader without records.
        (SOUGHT, (1, 10), Valid(1)),
        (SOUGHT, (1, 12), Valid(1)),
        (SOUGHT, (1, 8), at(8, 1)),
        (SOUGHT, (-1, -1), Diverged(None)),
    ],
)
def test_the_leaders_answer_says_whether_a_position_is_in_its_log(
    position: Position, answer: tuple[int, int], found: Valid | Diverged
) -> None:
    assert compare(position, *answer) == found
