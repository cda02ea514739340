"""Fetch of what is only in the tier: who is served, how much, and for how long one waits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, PartitionData, ReplicaState
from fencepost.storage.tier.object_store import ObjectKind
from tests.harness.driver import Asked
from tests.harness.driver_requests import create, fetch
from tests.harness.records import batch
from tests.harness.remote_tier import Tier
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

NEVER_MS = 60_000
PATIENCE_MS = 500
"""Kafka's default of remote.fetch.max.wait.ms."""
SIZE = len(batch())


@pytest.fixture
def tier() -> Tier:
    """Two brokers; offsets 0 to 5 are only in the tier, 6 is here."""
    return moved(Tier(2))


def moved(tier: Tier) -> Tier:
    tier.append(7)
    assert tier.run() is None
    for broker in tier.cluster.brokers:
        tier.run(broker=broker)
        tier.broker(broker).remote_log_manager.delete_local(tier.replica(broker, "t"))
    assert tier.leader("t").log.local_log_start_offset == 6
    tier.objects.asked.clear()
    return tier


def ask(
    tier: Tier,
    asked: FetchPartition,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
) -> Asked:
    request = fetch_request(
        ("t", asked), max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes
    )
    return tier.send(1, "fetch", 12, request)


def bases(partition: PartitionData) -> list[int]:
    """Base offsets, each of a batch of one record."""
    data = b"".join(map(bytes, partition.records or ()))
    return [int.from_bytes(data[at : at + 8]) for at in range(0, len(data) - 8, SIZE)]


# -- consumers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_consumer_is_given_what_is_only_in_the_tier(tier: Tier, version: int) -> None:
    want = tier.leader("t")
    request = fetch_request(("t", from_offset(2)))
    if version >= 13:
        topics = tuple(replace(each, topic_id=want.topic_id) for each in request.topics)
        request = replace(request, topics=topics)
    found = fetched(tier.ask(1, "fetch", version, request))
    assert found.error_code == ErrorCode.NONE
    assert bases(found) == [2, 3]
    assert (found.high_watermark, found.last_stable_offset) == (7, 7)
    assert found.log_start_offset == (0 if version >= 5 else -1)


def test_a_topic_is_read_from_end_to_end(tier: Tier) -> None:
    seen, offset = [], 0
    while offset < 7:
        found = fetch(tier, "t", offset)
        seen += bases(found)
        offset = seen[-1] + 1
    assert seen == list(range(7))


def test_limits_are_kept(tier: Tier) -> None:
    first = fetched(ask(tier, from_offset(0, max_bytes=SIZE // 2)).response)
    assert bases(first) == [0]
    assert sum(map(len, first.records or ())) == SIZE
    cut = fetched(ask(tier, from_offset(0, max_bytes=SIZE + 20)).response)
    assert sum(map(len, cut.records or ())) == SIZE + 20
    whole = fetched(ask(tier, from_offset(0), max_bytes=SIZE + 20).response)
    assert sum(map(len, whole.records or ())) == SIZE + 20


def test_a_read_committed_consumer_is_told_of_no_aborted_transactions(tier: Tier) -> None:
    request = replace(fetch_request(("t", from_offset(0))), isolation_level=1)
    found = fetched(tier.ask(1, "fetch", 12, request))
    assert bases(found) == [0, 1]
    assert found.aborted_transactions == ()


def test_nothing_behind_the_last_stable_offset() -> None:
    tier = moved(Tier())
    tier.leader("t").high_watermark = 1  # what a follower may know, the tier being ahead of it
    request = replace(fetch_request(("t", from_offset(0))), isolation_level=1)
    assert bases(fetched(tier.ask(1, "fetch", 12, request))) == [0]


def test_a_follower_serves_consumers_from_the_tier_too(tier: Tier) -> None:
    found = fetch(tier, "t", 3, broker_id=2, version=11)
    assert bases(found) == [3]


def test_before_the_log_start_there_is_nothing(tier: Tier) -> None:
    tier.leader("t").delete_records(3)
    assert fetch(tier, "t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert bases(fetch(tier, "t", 3)) == [3]


def test_what_the_tier_has_lost_is_out_of_range(tier: Tier) -> None:
    tier.objects.objects.clear()
    tier.broker(1).remote_log_manager.forget(tier.leader("t"), lambda _: None)
    tier.cluster.scheduler.run_due()
    assert fetch(tier, "t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# -- followers ------------------------------------------------------------------------------------


def as_follower(tier: Tier, offset: int, version: int = 18) -> PartitionData:
    request = replace(
        fetch_request(("t", from_offset(offset))),
        replica_id=2,
        replica_state=ReplicaState(replica_id=2, replica_epoch=-1),
    )
    if version >= 13:
        topic_id = tier.leader("t").topic_id
        request = replace(
            request, topics=tuple(replace(each, topic_id=topic_id) for each in request.topics)
        )
    return fetched(tier.ask(1, "fetch", version, request))


@pytest.mark.parametrize("version", [8, 12, 14, 18])
def test_a_follower_is_told_that_its_offset_has_moved(tier: Tier, version: int) -> None:
    tier.leader("t").delete_records(1)
    found = as_follower(tier, 5, version)
    assert found.error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (7, -1, 1)
    assert bases(found) == []
    assert not [op for op, _ in tier.objects.asked if op == "get"]


def test_what_is_here_a_follower_is_given(tier: Tier) -> None:
    assert bases(as_follower(tier, 6)) == [6]


def test_before_the_log_start_a_follower_is_out_of_range(tier: Tier) -> None:
    tier.leader("t").delete_records(3)
    found = as_follower(tier, 2)
    assert (found.error_code, found.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_refused_follower_has_not_fetched(tier: Tier) -> None:
    before = tier.leader("t").followers[2].log_end_offset
    as_follower(tier, 3)
    assert tier.leader("t").followers[2].log_end_offset == before == 7


# -- waiting --------------------------------------------------------------------------------------


def hold_records(tier: Tier) -> None:
    tier.objects.holds = lambda op, key: op == "get" and key.endswith(ObjectKind.LOG)


def test_a_slow_tier_is_waited_for_however_little_the_consumer_wants_to_wait(tier: Tier) -> None:
    hold_records(tier)
    asked = ask(tier, from_offset(0), max_wait_ms=0)
    tier.advance(PATIENCE_MS - 1)
    assert not asked.done
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    assert bases(fetched(asked.response)) == [0, 1]


def test_for_so_long_and_no_longer(tier: Tier) -> None:
    hold_records(tier)
    asked = ask(tier, from_offset(0), max_wait_ms=NEVER_MS)
    tier.advance(PATIENCE_MS)
    found = fetched(asked.response)
    assert (found.error_code, bases(found), found.high_watermark) == (ErrorCode.NONE, [], 7)
    tier.objects.release()
    tier.cluster.scheduler.run_due()


def test_a_configured_wait(tier: Tier) -> None:
    tier.cluster.controller.set_broker_configs(None, {"remote.fetch.max.wait.ms": "9000"})
    tier.cluster.scheduler.run_due()
    hold_records(tier)
    asked = ask(tier, from_offset(0))
    tier.advance(8999)
    assert not asked.done
    tier.advance(1)
    assert asked.done


def test_one_small_answer_from_the_tier_is_enough(tier: Tier) -> None:
    asked = ask(tier, from_offset(0), max_wait_ms=NEVER_MS, min_bytes=1 << 20)
    assert bases(fetched(asked.response)) == [0, 1]


def test_a_tier_that_fails(tier: Tier) -> None:
    tier.objects.fails = lambda op, key: op == "get" and key.endswith(ObjectKind.LOG)
    assert fetch(tier, "t", 0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bases(fetch(tier, "t", 6)) == [6]


def test_a_leader_that_cannot_learn_what_there_is(tier: Tier) -> None:
    tier.broker(1).remote_log_manager.forget(tier.leader("t"), lambda _: None)
    tier.objects.fails = lambda op, _: op == "list"
    tier.cluster.scheduler.run_due()
    assert fetch(tier, "t", 0).error_code == ErrorCode.REPLICA_NOT_AVAILABLE


# -- several partitions ---------------------------------------------------------------------------


@pytest.fixture
def two() -> Tier:
    """Topics t and u, each 0 to 5 in the tier and 6 here, and v that has no tier."""
    tier = moved(Tier())
    tier.create("u")
    create(tier, "v")
    for topic in ("u", "v"):
        tier.append(7, to=tier.replica(1, topic))
    replica = tier.replica(1, "u")
    tier.broker(1).remote_log_manager.run_task(replica, lambda _: None)
    tier.cluster.scheduler.run_due()
    tier.broker(1).remote_log_manager.delete_local(replica)
    return tier


def all_three(
    tier: Tier, *offsets: int, max_bytes: int = 1 << 20, each: int = 1000
) -> dict[str, PartitionData]:
    wanted = [
        (topic, from_offset(at, max_bytes=each)) for topic, at in zip("tuv", offsets, strict=False)
    ]
    request = fetch_request(*wanted, max_bytes=max_bytes)
    answer = tier.ask(1, "fetch", 12, request)
    return {topic.topic: topic.partitions[0] for topic in answer.responses}


def test_several_partitions_from_the_tier_and_one_that_is_here(two: Tier) -> None:
    found = all_three(two, 0, 2, 4)
    assert {topic: bases(each) for topic, each in found.items()} == {
        "t": [0, 1],
        "u": [2, 3],
        "v": [4, 5, 6],
    }


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, [0, 0, 1]), (1, [1, 0, 0]), (2, [2, 0, 0]), (3, [2, 0, 0]), (12, [2, 2, 0])],
)
def test_all_of_them_together_keep_the_limit(two: Tier, limit: int, expected: list[int]) -> None:
    """What comes from the tier takes up all that it might have."""
    found = all_three(two, 0, 2, 4, max_bytes=limit * SIZE, each=10 * SIZE)
    assert [len(bases(found[topic])) for topic in "tuv"] == expected


def test_an_error_of_one_does_not_keep_the_others_from_being_read(two: Tier) -> None:
    found = all_three(two, 0, 2, 99)
    assert found["v"].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (bases(found["t"]), bases(found["u"])) == ([0, 1], [2, 3])


def test_what_did_not_come_in_time_is_left_out(two: Tier) -> None:
    replica = two.replica(1, "u")
    two.objects.holds = lambda op, key: op == "get" and str(key).startswith("u-")
    wanted = [(topic, from_offset(0, max_bytes=1000)) for topic in "tuv"]
    request = fetch_request(*wanted)
    asked = two.send(1, "fetch", 12, request)
    assert not asked.done
    two.advance(PATIENCE_MS)
    found = {topic.topic: topic.partitions[0] for topic in asked.response.responses}
    assert [len(bases(found[topic])) for topic in "tuv"] == [2, 0, 7]
    assert found["u"].high_watermark == replica.high_watermark


def test_a_session_goes_on_with_what_came(two: Tier) -> None:
    request = fetch_request(("t", from_offset(0)), ("v", from_offset(7)), session=(0, 0))
    opened = two.ask(1, "fetch", 12, request)
    assert opened.session_id
    going_on = fetch_request(("t", from_offset(2)), session=(opened.session_id, 1))
    answer = two.ask(1, "fetch", 12, going_on)
    assert [topic.topic for topic in answer.responses] == ["t"]
    assert bases(fetched(answer)) == [2, 3]


def test_a_long_poll_ends_when_what_it_saw_moves_to_the_tier(two: Tier) -> None:
    request = fetch_request(("t", from_offset(6)), max_wait_ms=NEVER_MS, min_bytes=1 << 20)
    asked = two.send(1, "fetch", 12, request)
    assert not asked.done
    leader = two.leader("t")
    leader.log.roll(two.clock.now_ms())
    assert two.run() is None
    two.broker(1).remote_log_manager.delete_local(leader)
    two.append(1)
    found = fetched(asked.response)
    assert (found.error_code, bases(found)) == (ErrorCode.NONE, [])
    assert bases(fetch(two, "t", 6)) == [6]


def test_values_are_those_that_were_produced(tier: Tier) -> None:
    assert values(fetch(tier, "t", 0)) == [b"v", b"v"]
