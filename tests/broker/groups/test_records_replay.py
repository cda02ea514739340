"""The effect of each record on the replayed state."""

from __future__ import annotations

from fencepost.broker.groups.records import (
    SIMPLE_GROUP,
    CommittedOffset,
    GroupRecord,
    OffsetRecord,
    ReplayedState,
    StoredGroup,
)

GROUP = StoredGroup(protocol_type="consumer", generation=3)
OFFSET = CommittedOffset(offset=5, commit_timestamp_ms=1)


def state_of(*records: GroupRecord | OffsetRecord) -> ReplayedState:
    state = ReplayedState()
    for record in records:
        state.replay(record)
    return state


def offset(
    value: CommittedOffset | None = OFFSET, *, topic: str = "t", partition: int = 0
) -> OffsetRecord:
    return OffsetRecord(group_id="g", topic=topic, partition=partition, value=value)


def test_an_offset_makes_a_simple_group() -> None:
    state = state_of(offset())
    assert state.groups == {"g": SIMPLE_GROUP}
    assert state.offset("g", "t", 0) == OFFSET
    assert state.offset("g", "t", 1) is None
    assert state.offset("g", "u", 0) is None
    assert state.offset("h", "t", 0) is None


def test_an_offset_leaves_a_group_as_it_is() -> None:
    assert state_of(GroupRecord(group_id="g", value=GROUP), offset()).groups == {"g": GROUP}


def test_a_group_outlives_its_offsets_but_not_its_own_tombstone() -> None:
    state = state_of(offset(), offset(partition=1), offset(topic="u"), offset(None))
    assert state.offsets["g"] == {"t": {1: OFFSET}, "u": {0: OFFSET}}
    state.replay(offset(None, partition=1))
    state.replay(offset(None, topic="u"))
    assert (state.groups, state.offsets) == ({"g": SIMPLE_GROUP}, {})
    state.replay(GroupRecord(group_id="g", value=None))
    assert state == ReplayedState()


def test_tombstones_without_a_value_before_change_nothing() -> None:
    assert state_of(offset(None), GroupRecord(group_id="g", value=None)) == ReplayedState()
