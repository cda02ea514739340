"""Committed offsets: commits, deletions and expiry."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.offsets import (
    Commit,
    PartitionCommit,
    check_commit,
    decide_commit,
    find_offset,
)
from fencepost.broker.groups.records import CommittedOffset, OffsetRecord, ReplayedState
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import NOW_MS, Workbench, result_of

NONE: Final = ErrorCode.NONE
UNKNOWN: Final = ErrorCode.UNKNOWN_MEMBER_ID
GENERATION: Final = ErrorCode.ILLEGAL_GENERATION
REBALANCE: Final = ErrorCode.REBALANCE_IN_PROGRESS
NOT_FOUND: Final = ErrorCode.GROUP_ID_NOT_FOUND
WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
CHECK_MS: Final = 600_000


def commit_of(
    generation: int = -1, member_id: str = "", instance: str | None = None, **options: int
) -> Commit:
    return Commit(
        group_id="g",
        generation=generation,
        member_id=member_id,
        group_instance_id=instance,
        retention_time_ms=options.get("retention", -1),
        partitions=(),
        missing_group_error=NOT_FOUND,
    )


@pytest.mark.parametrize(
    ("state", "member", "no_member", "old", "stranger", "simple"),
    [
        (ClassicGroupState.EMPTY, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, NONE),
        (ClassicGroupState.PREPARING_REBALANCE, NONE, UNKNOWN, GENERATION, UNKNOWN, UNKNOWN),
        (ClassicGroupState.COMPLETING_REBALANCE, REBALANCE, UNKNOWN, GENERATION, UNKNOWN, UNKNOWN),
        (ClassicGroupState.STABLE, NONE, UNKNOWN, GENERATION, UNKNOWN, UNKNOWN),
    ],
)
def test_who_may_commit(
    state: ClassicGroupState,
    member: ErrorCode,
    no_member: ErrorCode,
    old: ErrorCode,
    stranger: ErrorCode,
    simple: ErrorCode,
) -> None:
    bench = Workbench()
    (leader,) = bench.stable()
    if state is ClassicGroupState.EMPTY:
        bench.leave((leader, None))
    group = bench.group()
    group.state = state
    assert check_commit(group, commit_of(1, leader)) is member
    assert check_commit(group, commit_of(1, "")) is no_member
    assert check_commit(group, commit_of(0, leader)) is old
    assert check_commit(group, commit_of(1, "stranger")) is stranger
    assert check_commit(group, commit_of(-1, "")) is simple
    of_member = NONE if state is ClassicGroupState.EMPTY else GENERATION
    assert check_commit(group, commit_of(-1, leader)) is of_member
    assert check_commit(group, commit_of(1, leader, "unused")) is UNKNOWN


def test_who_may_commit_for_no_group() -> None:
    assert check_commit(None, commit_of(-1)) is NONE
    assert check_commit(None, commit_of(-1, "m", "i")) is NONE
    assert check_commit(None, commit_of(0)) is NOT_FOUND


def partition(metadata: str | None = "", topic_id: UUID | None = None) -> PartitionCommit:
    return PartitionCommit(
        topic="t", topic_id=topic_id, partition=0, offset=5, leader_epoch=3, metadata=metadata
    )


@pytest.mark.parametrize(
    ("metadata", "fits"),
    [
        (None, True),
        ("", True),
        ("x" * 8, True),
        ("x" * 9, False),
        ("é" * 8, True),
        ("😀" * 4, True),
        ("😀" * 5, False),
    ],
)
def test_metadata_is_measured_as_java_does(metadata: str | None, fits: bool) -> None:
    from msgspec.structs import replace

    commit = replace(commit_of(), partitions=(partition(metadata), partition("ok")))
    decision = decide_commit(commit, GroupConfig(offset_metadata_max_bytes=8), NOW_MS)
    assert decision.response == (NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE, NONE)
    assert len(decision.records) == (2 if fits else 1)


def committed(bench: Workbench, group: str = "g", topic: str = "t") -> CommittedOffset | None:
    return bench.shard.committed.offset(group, topic, 0)


def test_a_commit_is_kept_with_its_epoch_its_metadata_and_its_time() -> None:
    bench = Workbench()
    assert bench.commit(7, metadata="md", epoch=4) == (NONE,)
    assert committed(bench) == CommittedOffset(
        offset=7, leader_epoch=4, metadata="md", commit_timestamp_ms=NOW_MS
    )
    assert bench.commit(8, metadata=None, epoch=-1) == (NONE,)
    assert committed(bench) == CommittedOffset(offset=8, commit_timestamp_ms=NOW_MS)


def test_a_refused_commit_changes_nothing() -> None:
    bench = Workbench()
    assert bench.commit(generation=3, member_id="x") == (NOT_FOUND,)
    bench.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.commit() == (ErrorCode.COORDINATOR_NOT_AVAILABLE,)
    assert bench.shard.latest == ReplayedState()


def test_an_offset_of_another_topic_of_that_name_is_not_found() -> None:
    one, other = UUID(int=1), UUID(int=2)
    state = ReplayedState()
    for index, topic_id in enumerate([one, None]):
        value = CommittedOffset(offset=index, commit_timestamp_ms=1, topic_id=topic_id)
        state.replay(OffsetRecord(group_id="g", topic="t", partition=index, value=value))
    assert find_offset(state, "g", "t", one, 0) is not None
    assert find_offset(state, "g", "t", None, 0) is not None
    assert find_offset(state, "g", "t", other, 0) is None
    assert find_offset(state, "g", "t", other, 1) is not None
    assert find_offset(state, "g", "t", one, 2) is None


@pytest.mark.parametrize(("version", "kept"), [(3, None), (4, UUID(int=1))])
def test_topic_ids_are_kept_where_the_schema_has_them(version: int, kept: UUID | None) -> None:
    from msgspec.structs import replace

    commit = replace(commit_of(), partitions=(partition(topic_id=UUID(int=1)),))
    (record,) = decide_commit(commit, GroupConfig(offset_value_version=version), 1).records
    assert isinstance(record, OffsetRecord)
    assert record.value is not None
    assert record.value.topic_id == kept


# -- deletion --------------------------------------------------------------------------------------


def delete(bench: Workbench, *topics: str) -> requests.Deleted:
    deleted = requests.delete_offsets(bench.shard, "g", dict.fromkeys(topics, (0, 1)))
    assert isinstance(deleted, tuple)
    return deleted


def test_offsets_of_subscribed_topics_are_not_deleted() -> None:
    bench = Workbench()
    for topic in ("t", "u"):
        bench.commit(topic=topic)
    bench.stable(topics=("t",))
    codes = {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "u": NONE}
    assert delete(bench, "t", "u") == (NONE, codes)
    assert committed(bench, topic="t") is not None
    assert committed(bench, topic="u") is None


def test_offsets_of_an_empty_group_are_deleted() -> None:
    bench = Workbench()
    bench.commit()
    before = len(bench.log.records)
    assert delete(bench, "t", "u") == (NONE, {"t": NONE, "u": NONE})
    assert committed(bench) is None
    assert len(bench.log.records) == before + 1, "tombstones only of what there was"


def test_offsets_of_a_group_of_others_are_deleted_only_when_it_is_empty() -> None:
    bench = Workbench()
    bench.stable(protocol_type="connect")
    assert delete(bench, "t") == (ErrorCode.NON_EMPTY_GROUP, {})


def test_offsets_of_no_group_are_not_deleted() -> None:
    assert delete(Workbench(), "t") == (NOT_FOUND, {})


def test_a_deleted_topics_offsets_are_deleted() -> None:
    bench = Workbench()
    for group, topic in (("g", "t"), ("g", "u"), ("h", "t")):
        bench.commit(group=group, topic=topic)
    bench.shard.on_topics_deleted(frozenset({"t"}))
    assert bench.shard.committed.offsets.keys() == {"g"}
    assert bench.shard.committed.offsets["g"].keys() == {"u"}
    before = len(bench.log.records)
    bench.shard.on_topics_deleted(frozenset({"t"}))
    assert len(bench.log.records) == before


# -- expiry ----------------------------------------------------------------------------------------


def test_a_simple_groups_offsets_expire_a_retention_after_each_commit() -> None:
    bench = Workbench()
    bench.commit(topic="t")
    bench.advance(CHECK_MS)
    bench.commit(topic="u")
    bench.advance(WEEK_MS - CHECK_MS - 1)
    assert committed(bench, topic="t") is not None
    bench.advance(1)
    assert committed(bench, topic="t") is None
    assert committed(bench, topic="u") is not None
    bench.advance(CHECK_MS)
    assert bench.shard.latest == ReplayedState(), "with its last offset the group goes"


def test_a_groups_offsets_expire_a_retention_after_it_became_empty() -> None:
    bench = Workbench()
    (member,) = bench.stable(session_ms=1_000_000)
    bench.commit(generation=1, member_id=member)
    for _ in range(10):
        bench.advance(WEEK_MS // 20)
        bench.heartbeat(member, 1)
        (member,) = (
            [member] if member in bench.group().members else bench.stable(session_ms=1_000_000)
        )
    bench.leave((member, None))
    bench.advance(WEEK_MS - CHECK_MS)
    assert committed(bench) is not None
    bench.advance(2 * CHECK_MS)
    assert committed(bench) is None
    assert bench.shard.find("g") is None


def stay(bench: Workbench, member: str, generation: int, for_ms: int) -> None:
    """Keep a member's session alive."""
    step = 1_000_000
    for _ in range(for_ms // step):
        bench.advance(step)
        assert bench.heartbeat(member, generation) is NONE


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=10_000_000))
    (member,) = bench.stable(session_ms=1_500_000, topics=("t",))
    for topic in ("t", "u"):
        bench.commit(generation=1, member_id=member, topic=topic)
    stay(bench, member, 1, 12_000_000)
    assert committed(bench, topic="t") is not None
    assert committed(bench, topic="u") is None, "the group is not subscribed to it"


def test_a_group_of_others_keeps_its_offsets_while_it_has_members() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=10_000_000))
    (member,) = bench.stable(session_ms=1_500_000, protocol_type="connect")
    bench.commit(generation=1, member_id=member, topic="u")
    stay(bench, member, 1, 12_000_000)
    assert committed(bench, topic="u") is not None


def test_an_offset_with_a_retention_of_its_own_expires_by_that() -> None:
    bench = Workbench()
    bench.commit(retention_ms=CHECK_MS + 1)
    value = committed(bench)
    assert value is not None
    assert (value.expire_timestamp_ms, value.leader_epoch) == (NOW_MS + CHECK_MS + 1, -1)
    bench.advance(CHECK_MS)
    assert committed(bench) is not None
    bench.advance(CHECK_MS)
    assert committed(bench) is None


def test_an_offset_expires_at_the_end_of_its_retention() -> None:
    bench = Workbench()
    bench.commit(retention_ms=CHECK_MS)
    bench.advance(CHECK_MS)
    assert committed(bench) is None


def test_an_empty_group_without_offsets_is_deleted_at_the_next_retention_check() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    bench.leave((member, None))
    bench.advance(CHECK_MS)
    assert bench.shard.find("g") is None


def test_a_group_with_members_is_not_deleted() -> None:
    bench = Workbench()
    (member,) = bench.stable(session_ms=1_000_000)
    bench.advance(CHECK_MS)
    assert bench.heartbeat(member, 1) is NONE


def test_a_retention_check_that_cannot_write_is_repeated() -> None:
    bench = Workbench()
    bench.commit(retention_ms=1)
    bench.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(CHECK_MS)
    assert committed(bench) is not None
    bench.log.refusal = None
    bench.advance(CHECK_MS)
    assert committed(bench) is None


def test_a_join_recreates_a_group_that_the_retention_check_deleted() -> None:
    bench = Workbench()
    assigned = result_of(bench.join(session_ms=1_000_000)).member_id
    bench.advance(CHECK_MS)
    assert result_of(bench.join(assigned)).error_code == UNKNOWN
    assert result_of(bench.join()).error_code == ErrorCode.MEMBER_ID_REQUIRED
