"""The group APIs on a cluster: the coordinator, replication, failover and versions.

The responses recorded from Apache Kafka are in tests/broker/groups.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.groups.records import CommittedOffset, GroupRecord, OffsetRecord, decode
from fencepost.broker.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from fencepost.protocol import codec
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest
from fencepost.protocol.messages.list_groups import ListGroupsRequest
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from tests.broker.groups.scripts import (
    commit,
    delete,
    delete_offsets,
    describe,
    fetch,
    join,
    leave,
    leave_alone,
    offset,
    protocols,
    sync,
)
from tests.broker.groups.scripts import (
    heartbeat as beat,
)
from tests.broker.groups.talk import Step
from tests.harness.driver import Driver, Message, versions

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
NONE = ErrorCode.NONE


def cluster(brokers: int = 3, **configs: str) -> tuple[Driver, int]:
    """A cluster with a topic, and the coordinator of all groups."""
    driver = Driver(brokers, {"offsets.topic.num.partitions": "1", **configs})
    topic = NewTopic(name="t", partitions=2, replication_factor=1, configs={})
    driver.cluster.controller.create_topic(topic)
    return driver, coordinator(driver)


def coordinator(driver: Driver) -> int:
    found = driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    assert found.error_code == NONE
    broker: int = found.node_id
    return broker


def ask(driver: Driver, broker: int, step: Step) -> Message:
    return driver.ask(broker, step.api, step.version, step.request)


def enter(driver: Driver, broker: int) -> str:
    """A stable group of one member."""
    member: str = ask(driver, broker, join("g")).member_id
    assert ask(driver, broker, join("g", member)).generation_id == 1
    assert ask(driver, broker, sync("g", 1, member, assign={member: b"A"})).error_code == NONE
    return member


def partition_errors(answer: Message) -> list[int]:
    return [one.error_code for topic in answer.topics for one in topic.partitions]


# -- the coordinator ------------------------------------------------------------------------------

Errors = Callable[[Message], list[int]]
EVERYWHERE: list[tuple[Step, Errors]] = [
    (join("g"), lambda answer: [answer.error_code]),
    (join("g", version=0), lambda answer: [answer.error_code]),
    (sync("g", 1, "m"), lambda answer: [answer.error_code]),
    (beat("g", 1, "m"), lambda answer: [answer.error_code]),
    (leave("g", ("m", None)), lambda answer: [answer.error_code, *answer.members]),
    (leave_alone("g", "m"), lambda answer: [answer.error_code]),
    (commit("g"), partition_errors),
    (fetch("g", 1), partition_errors),
    (fetch("g", 2), lambda answer: [answer.error_code, *answer.topics]),
    (fetch("g", 5), lambda answer: [answer.error_code, *answer.topics]),
    (fetch("g", 8), lambda answer: [one.error_code for one in answer.groups]),
    (fetch("g", 10, None), lambda answer: [one.error_code for one in answer.groups]),
    (delete_offsets("g", t=(0,)), lambda answer: [answer.error_code, *answer.topics]),
    (describe("g"), lambda answer: [one.error_code for one in answer.groups]),
    (delete("g", "g"), lambda answer: [one.error_code for one in answer.results]),
]


@pytest.mark.parametrize(("step", "errors"), EVERYWHERE, ids=lambda each: getattr(each, "api", ""))
def test_only_the_coordinator_answers(step: Step, errors: Errors) -> None:
    driver, leader = cluster()
    for broker in {1, 2, 3} - {leader}:
        codes = errors(ask(driver, broker, step))
        assert set(codes) == {NOT_COORDINATOR}


@pytest.mark.parametrize(("step", "errors"), EVERYWHERE, ids=lambda each: getattr(each, "api", ""))
def test_without_the_offsets_topic_no_broker_is_the_coordinator(step: Step, errors: Errors) -> None:
    driver = Driver(1)
    topic = NewTopic(name="t", partitions=2, replication_factor=1, configs={})
    driver.cluster.controller.create_topic(topic)
    assert set(errors(ask(driver, 1, step))) == {NOT_COORDINATOR}


@pytest.mark.parametrize(("step", "errors"), EVERYWHERE, ids=lambda each: getattr(each, "api", ""))
def test_a_coordinator_that_loads_says_so(step: Step, errors: Errors) -> None:
    driver, leader = cluster()
    driver.broker(leader).coordinator.runtime.shards[0].loaded = False
    expected = NONE if step.api == "heartbeat" else LOADING
    assert set(errors(ask(driver, leader, step))) == {expected}


def test_groups_are_listed_by_their_coordinator_alone() -> None:
    driver, leader = cluster()
    ask(driver, leader, commit("g"))
    for broker in (1, 2, 3):
        listed = driver.ask(broker, "list_groups", 5, ListGroupsRequest())
        assert [group.group_id for group in listed.groups] == (["g"] if broker == leader else [])
    driver.broker(leader).coordinator.runtime.shards[0].loaded = False
    assert driver.ask(leader, "list_groups", 5, ListGroupsRequest()).error_code == LOADING


def test_many_shards_answer_as_one() -> None:
    driver = Driver(1, {"offsets.topic.num.partitions": "8"})
    coordinator(driver)
    topic = NewTopic(name="t", partitions=1, replication_factor=1, configs={})
    driver.cluster.controller.create_topic(topic)
    names = tuple(f"g{n}" for n in range(20))
    for name in names:
        ask(driver, 1, commit(name))
    listed = driver.ask(1, "list_groups", 5, ListGroupsRequest())
    assert {group.group_id for group in listed.groups} == set(names)
    assert (
        sum(
            bool(shard.latest.groups)
            for shard in driver.broker(1).coordinator.runtime.shards.values()
        )
        > 3
    )
    deleted = ask(driver, 1, delete(*names, "none"))
    assert [one.group_id for one in deleted.results] == [*names, "none"]
    codes = [one.error_code for one in deleted.results]
    assert codes == [NONE] * len(names) + [ErrorCode.GROUP_ID_NOT_FOUND]


# -- replication -----------------------------------------------------------------------------------


def test_a_commit_waits_for_the_followers() -> None:
    driver, leader = cluster()
    others = {1, 2, 3} - {leader}
    driver.hold(*others)
    step = commit("g")
    asked = driver.send(leader, step.api, step.version, step.request)
    assert not asked.done
    unstable = ask(driver, leader, fetch("g", 7))
    assert unstable.topics[0].partitions[0].committed_offset == -1
    stable = fetch("g", 7, require_stable=True)
    waiting = driver.send(leader, stable.api, stable.version, stable.request)
    assert not waiting.done
    driver.release(*others)
    assert partition_errors(asked.response) == [NONE]
    assert waiting.response.topics[0].partitions[0].committed_offset == 5


def test_a_commit_without_enough_replicas_is_refused() -> None:
    driver, leader = cluster()
    replica = driver.replica(leader, OFFSETS_TOPIC)
    replica.isr, replica.min_insync_replicas = (leader,), 2
    assert partition_errors(ask(driver, leader, commit("g"))) == [UNAVAILABLE]


def test_a_commit_for_unknown_partitions_is_answered_at_once() -> None:
    driver, leader = cluster()
    driver.hold(*({1, 2, 3} - {leader}))
    for step in (commit("g"), commit("g", topics=(("nope", (offset(),)),))):
        asked = driver.send(leader, step.api, step.version, step.request)
    assert partition_errors(asked.response) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_of_a_partition_named_twice_the_last_commit_is_kept_and_both_are_answered() -> None:
    driver, broker = cluster(1)
    offsets_log = driver.leader(OFFSETS_TOPIC).log
    before = offsets_log.log_end_offset
    topics = (("t", (offset(0, at=5), offset(1, at=6), offset(0, at=7))), ("t", (offset(1, at=8),)))
    assert partition_errors(ask(driver, broker, commit("g", topics=topics))) == [0] * 4
    assert offsets_log.log_end_offset == before + 2
    (fetched,) = ask(driver, broker, fetch("g", 9, (("t", (0, 1)),))).groups[0].topics
    assert [each.committed_offset for each in fetched.partitions] == [7, 8]


def test_an_unknown_topic_is_answered_though_no_partition_of_it_is_named() -> None:
    driver, leader = cluster()
    answer = ask(driver, leader, commit("g", topics=(("t", ()), ("nope", ()))))
    assert [(each.name, each.partitions) for each in answer.topics] == [("nope", ())]


def test_an_offset_of_an_older_topic_of_that_name_is_not_fetched() -> None:
    driver, leader = cluster(1)
    shard = driver.broker(leader).coordinator.runtime.shards[0]
    known = driver.broker(leader).view.topics["t"].topic_id
    for index, topic_id in enumerate([UUID(int=1), known]):
        value = CommittedOffset(offset=5, commit_timestamp_ms=1, topic_id=topic_id)
        record = OffsetRecord(group_id="g", topic="t", partition=index, value=value)
        shard.committed.replay(record)
    (topic,) = ask(driver, leader, fetch("g", 9)).groups[0].topics
    assert [one.committed_offset for one in topic.partitions] == [-1, 5, -1]


def test_all_offsets_by_id_are_those_of_topics_that_exist() -> None:
    driver, leader = cluster(1)
    ask(driver, leader, commit("g"))
    value = CommittedOffset(offset=5, commit_timestamp_ms=1)
    record = OffsetRecord(group_id="g", topic="gone", partition=0, value=value)
    driver.broker(leader).coordinator.runtime.shards[0].committed.replay(record)
    by_name = ask(driver, leader, fetch("g", 9, None)).groups[0].topics
    assert [topic.name for topic in by_name] == ["t", "gone"]
    by_id = ask(driver, leader, fetch("g", 10, None)).groups[0].topics
    known = driver.broker(leader).view.topics["t"].topic_id
    assert [topic.topic_id for topic in by_id] == [known]


def test_stable_offsets_that_stay_unstable_are_not_coordinator() -> None:
    driver, leader = cluster()
    driver.hold(*({1, 2, 3} - {leader}))
    for step in (commit("g"), fetch("g", 7, require_stable=True)):
        asked = driver.send(leader, step.api, step.version, step.request)
    driver.advance(5000)
    assert asked.response.error_code == NOT_COORDINATOR


def test_a_parked_join_is_answered_when_the_coordinator_moves() -> None:
    driver, leader = cluster()
    enter(driver, leader)
    member = ask(driver, leader, join("g")).member_id
    parked = driver.send(leader, "join_group", 9, join("g", member).request)
    old = driver.send(leader, "join_group", 3, join("g", version=3).request)
    assert not parked.done
    driver.elect(OFFSETS_TOPIC, 0, leader % 3 + 1)
    assert (parked.response.error_code, parked.response.protocol_name) == (NOT_COORDINATOR, None)
    assert (old.response.error_code, old.response.protocol_name) == (NOT_COORDINATOR, "")


# -- failover -----------------------------------------------------------------------


def test_a_group_goes_on_with_the_next_coordinator() -> None:
    driver, leader = cluster()
    member = enter(driver, leader)
    assert partition_errors(ask(driver, leader, commit("g", 1, member))) == [NONE]
    following = leader % 3 + 1
    driver.elect(OFFSETS_TOPIC, 0, following)
    assert coordinator(driver) == following
    assert ask(driver, leader, beat("g", 1, member)).error_code == NOT_COORDINATOR
    assert ask(driver, following, beat("g", 1, member)).error_code == NONE
    assert ask(driver, following, sync("g", 1, member)).assignment == b"A"
    (topic,) = ask(driver, following, fetch("g", 7)).topics
    found = topic.partitions[0]
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (5, 3, "md")
    driver.elect(OFFSETS_TOPIC, 0, leader)
    assert ask(driver, leader, beat("g", 1, member)).error_code == NONE


def test_a_coordinator_that_is_elected_again_goes_on() -> None:
    driver, leader = cluster()
    member = enter(driver, leader)
    driver.elect(OFFSETS_TOPIC, 0, leader)
    assert ask(driver, leader, beat("g", 1, member)).error_code == NONE
    assert partition_errors(ask(driver, leader, commit("g", 1, member))) == [NONE]


def test_any_consumer_can_read_the_offsets_topic() -> None:
    driver, leader = cluster()
    member = enter(driver, leader)
    ask(driver, leader, commit("g", 1, member))
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=OFFSETS_TOPIC, partitions=(partition,))
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=(topic,))
    (found,) = driver.ask(leader, "fetch", 11, request).responses
    stored = []
    for buffer in found.partitions[0].records:
        for at, _ in iter_headers(buffer):
            stored += [(one.key or b"", one.value or b"") for one in iter_records(buffer, at)]
    empty, generation, offset = (decode(key, value) for key, value in stored)
    assert isinstance(empty, GroupRecord)
    assert isinstance(generation, GroupRecord)
    assert isinstance(offset, OffsetRecord)
    assert generation.value is not None
    assert generation.value.members[0].member_id == member
    assert offset.value is not None
    assert (offset.value.offset, offset.value.leader_epoch) == (5, 3)
    assert stored[-1][1][:2] == b"\0\3", "in version 3 of its schema (KIP-320)"


def test_a_deleted_topics_offsets_are_deleted() -> None:
    driver, leader = cluster()
    ask(driver, leader, commit("g"))
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    assert ask(driver, leader, fetch("g", 9, None)).groups[0].topics == ()


# -- versions -------------------------------------------------------------------------


def test_a_deletion_answers_unknown_topics_though_no_partition_of_them_is_named() -> None:
    driver, leader = cluster(1)
    enter(driver, leader)
    answer = ask(driver, leader, delete_offsets("g", t=(), no=()))
    assert [(topic.name, topic.partitions) for topic in answer.topics] == [("no", ())]


@pytest.mark.parametrize(("version", "none"), [(4, ""), (6, ""), (7, None)])
def test_a_protocol_without_a_name_is_none(version: int, none: str | None) -> None:
    driver, leader = cluster(1)
    member = ask(driver, leader, join("g", version=version)).member_id
    nameless = join("g", member, version=version, protocols=protocols(""))
    assert ask(driver, leader, nameless).protocol_name == none


def test_before_version_1_the_session_timeout_is_the_rebalance_timeout() -> None:
    driver, leader = cluster(1)
    member = ask(driver, leader, join("g", version=0)).member_id
    group = driver.broker(leader).coordinator.runtime.shards[0].groups["g"]
    assert group.members[member].rebalance_timeout_ms == 10_000
    member = ask(driver, leader, join("h", version=1)).member_id
    group = driver.broker(leader).coordinator.runtime.shards[0].groups["h"]
    assert group.members[member].rebalance_timeout_ms == 3000


@pytest.mark.parametrize("version", versions("join_group"))
def test_from_version_4_a_member_has_to_join_with_its_id(version: int) -> None:
    driver, leader = cluster(1)
    answer = ask(driver, leader, join("g", version=version))
    expected = NONE if version < 4 else ErrorCode.MEMBER_ID_REQUIRED
    assert answer.error_code == expected


@pytest.mark.parametrize("version", versions("sync_group"))
def test_from_version_5_a_sync_names_its_protocol(version: int) -> None:
    driver, leader = cluster(1)
    member = enter(driver, leader)
    nameless: dict[str, Message] = {"protocol_type": None, "protocol_name": None}
    answer = ask(driver, leader, sync("g", 1, member, version=version, **nameless))
    expected = NONE if version < 5 else ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert answer.error_code == expected


@pytest.mark.parametrize(
    ("timeout_ms", "error"),
    [
        (5999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeouts_are_bounded(timeout_ms: int, error: ErrorCode) -> None:
    driver, leader = cluster(1)
    assert ask(driver, leader, join("g", session_timeout_ms=timeout_ms)).error_code == error


def test_a_client_without_a_client_id_can_be_a_member() -> None:
    driver, leader = cluster(1)
    ctx = Context(
        broker=driver.broker(leader),
        version=3,
        client_id=None,
        peer=Peer(connection_id="1", host="::1"),
        now_ms=0,
        wall_ms=0,
    )
    request = join("g", version=3).request
    assert isinstance(request, JoinGroupRequest)
    answer = join_group.handle(ctx, request)
    driver.cluster.scheduler.run_due()
    assert isinstance(answer, Wait)
    assert answer.result is not None
    assert answer.result.member_id.startswith("-")
    (member,) = driver.broker(leader).coordinator.runtime.shards[0].groups["g"].members.values()
    assert (member.client_id, member.client_host) == ("", "/::1")


REFUSE: dict[str, Callable[[Message, int], Message]] = {
    "delete_groups": delete_groups.refuse,
    "describe_groups": describe_groups.refuse,
    "find_coordinator": find_coordinator.refuse,
    "heartbeat": heartbeat.refuse,
    "join_group": join_group.refuse,
    "leave_group": leave_group.refuse,
    "list_groups": list_groups.refuse,
    "offset_commit": offset_commit.refuse,
    "offset_delete": offset_delete.refuse,
    "offset_fetch": offset_fetch.refuse,
    "sync_group": sync_group.refuse,
}
REFUSED: list[Step] = [
    *(step for step, _ in EVERYWHERE),
    Step(
        api="find_coordinator",
        version=4,
        request=FindCoordinatorRequest(coordinator_keys=("a", "b")),
    ),
    Step(api="find_coordinator", version=3, request=FindCoordinatorRequest(key="a")),
    Step(api="list_groups", version=0, request=ListGroupsRequest()),
]


@pytest.mark.parametrize("step", REFUSED, ids=lambda step: f"{step.api}-{step.version}")
def test_a_refusal_says_so_in_every_version(step: Step) -> None:
    api = BY_NAME[step.api]
    refusal = REFUSE[step.api](step.request, 1234)
    for version in range(api.min_version, api.max_version + 1):
        sent = b"".join(codec.encode_response(api, version, 1, refusal))[4:]
        body = codec.response_body_offset(api, version)
        answer = codec.decode_response(api, version, sent, body)
        if version == step.version:
            assert "error_code=1234" in repr(answer) or answer.error_code == 1234
