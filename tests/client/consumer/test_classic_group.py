from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.classic_group import TRANSITIONS, ClassicGroup, MemberState
from fencepost.client.consumer.config import ConsumerParameters
from fencepost.client.consumer.errors import CommitFailedError, RequestRefused
from fencepost.client.consumer.group_protocol import Assign, Revoke
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.offset_commit import OffsetCommitResponse
from tests.client.consumer.driven import DrivenConsumer
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, produce

ALL = frozenset(Partition(topic="t", index=index) for index in range(4))


def cluster(**api_max: int) -> Driver:
    driver = Driver(3, {"group.initial.rebalance.delay.ms": "0"}, api_max=api_max)
    create(driver, "t", ((1, 2, 3),) * 4)
    return driver


def join(driver: Driver, *topics: str, **parameters: Unpack[ConsumerParameters]) -> DrivenConsumer:
    settings: ConsumerParameters = {
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 100,
        **parameters,
    }
    consumer = DrivenConsumer(driver, **settings)
    consumer.core.subscribe(topics or ("t",))
    return consumer


def group(consumer: DrivenConsumer) -> ClassicGroup:
    found = consumer.core._group
    assert isinstance(found, ClassicGroup)
    return found


def together(*consumers: DrivenConsumer, until: Callable[[], bool], limit_ms: int = 30_000) -> None:
    """All of them poll, by turns, until something holds."""
    driver = consumers[0].driver
    end = consumers[0].now + limit_ms
    while not until():
        assert consumers[0].now < end, [each.core.assignment for each in consumers]
        for each in consumers:
            each._take_events()
            each.core.poll(each.now)
            each.step()
        driver.advance(1)


def shared(*consumers: DrivenConsumer) -> Callable[[], bool]:
    """Whether each has a part of the four partitions."""

    def is_shared() -> bool:
        parts = [each.core.assignment for each in consumers]
        return all(parts) and sum(map(len, parts)) == 4 and frozenset().union(*parts) == ALL

    return is_shared


def code(api: str, error: int) -> tuple[str, Callable[[Any], object]]:
    """Alters an answer: this error."""
    return api, lambda response: replace(response, error_code=error)


def test_every_state_has_its_row() -> None:
    assert TRANSITIONS.keys() == set(MemberState)


@pytest.mark.parametrize(
    ("api", "version"),
    [
        (api, version)
        for api in ("join_group", "sync_group", "heartbeat", "leave_group")
        for version in versions(api)
    ],
)
def test_every_version_will_do(api: str, version: int) -> None:
    driver = cluster(**{api: version})
    consumer = join(driver)
    together(consumer, until=shared(consumer))
    consumer.run(lambda: consumer.requests("heartbeat"))
    consumer.result(consumer.core.leave())
    assert consumer.requests(api)[-1].version == version
    other = join(driver)
    begun = other.now
    together(other, until=shared(other))
    assert other.now - begun < 1_000, "the first has left, and is not waited for"


def test_a_member_gets_its_id_from_the_coordinator() -> None:
    consumer = join(cluster())
    together(consumer, until=shared(consumer))
    first, second = consumer.requests("join_group")
    assert first.message.member_id == ""
    assert second.message.member_id == consumer.core.group_metadata.member_id != ""
    assert consumer.core.group_metadata.generation == 1
    assert [type(each) for each in consumer.events] == [Assign]


def test_members_share_the_partitions_by_range() -> None:
    driver = cluster()
    first, second = join(driver), join(driver)
    together(first, second, until=shared(first, second))
    indexes = sorted(sorted(p.index for p in each.core.assignment) for each in (first, second))
    assert indexes == [[0, 1], [2, 3]]


def test_a_member_lets_go_before_another_one_gets_its_partitions() -> None:
    driver = cluster()
    for index in range(4):
        produce(driver, "t", b"%d" % index, index=index)
    first = join(driver)
    assert len(first.read(4)) == 4
    first.lets_go = False
    second = join(driver, auto_offset_reset="none")
    for _ in range(300):
        for each in (first, second):
            each._take_events()
            each.step()
        driver.advance(1)
    assert group(first).state is MemberState.REVOKING
    assert first.core.assignment == ALL
    assert second.core.assignment == set()
    operation = first.core.commit()
    first.result(operation)
    first.lets_go = True
    together(first, second, until=shared(first, second))
    assert [type(each) for each in first.events] == [Assign, Revoke, Assign]
    for partition in second.core.assignment:
        found = second.position(partition)
        assert found == OffsetAndMetadata(offset=1, leader_epoch=0), "as the first committed it"


def test_a_member_that_leaves_gives_its_partitions_to_the_others() -> None:
    driver = cluster()
    first, second = join(driver), join(driver)
    together(first, second, until=shared(first, second))
    second.result(second.core.unsubscribe())
    assert second.core.assignment == set()
    together(first, until=shared(first))


def test_a_member_that_is_gone_is_replaced_when_its_session_ends() -> None:
    driver = cluster()
    first, second = join(driver), join(driver, session_timeout_ms=6_000)
    together(first, second, until=shared(first, second))
    second.unreachable = {1, 2, 3}
    begun = first.now
    together(first, until=shared(first))
    assert 5_000 < first.now - begun < 8_000
    second.unreachable = set()
    together(first, second, until=shared(first, second))
    lost = [each for each in second.events if isinstance(each, Revoke)]
    assert [each.is_lost for each in lost] == [True], "others had its partitions meanwhile"


def test_a_member_that_does_not_poll_leaves() -> None:
    driver = cluster()
    first = join(driver, max_poll_interval_ms=2_000)
    second = join(driver, max_poll_interval_ms=2_000)
    together(first, second, until=shared(first, second))

    def idle_second() -> bool:
        second.step(fetches=False)
        return shared(first)()

    together(first, until=idle_second)
    assert second.requests("leave_group") != []
    together(first, second, until=shared(first, second))


def test_a_subscription_that_changes_joins_again() -> None:
    driver = cluster()
    create(driver, "u", ((1,), (2,)))
    consumer = join(driver)
    together(consumer, until=shared(consumer))
    consumer.core.subscribe(["t"])
    assert group(consumer).state is MemberState.STABLE
    consumer.core.subscribe(["u"])
    together(consumer, until=lambda: len(consumer.core.assignment) == 2)
    assert {each.topic for each in consumer.core.assignment} == {"u"}


def test_the_leader_assigns_topics_that_only_others_want() -> None:
    driver = cluster()
    create(driver, "u", ((1,), (2,)))
    first = join(driver)
    together(first, until=shared(first))
    second = join(driver, "u")
    together(first, second, until=lambda: len(second.core.assignment) == 2)
    assert {each.topic for each in second.core.assignment} == {"u"}
    assert first.core.assignment == ALL


def test_new_partitions_are_shared_too() -> None:
    driver = cluster()
    consumer = join(driver, "t", "later", metadata_max_age_ms=200)
    together(consumer, until=shared(consumer))
    create(driver, "later", ((1,), (2,)))
    together(consumer, until=lambda: len(consumer.core.assignment) == 6)


def test_a_static_member_stays_when_it_closes() -> None:
    driver = cluster()
    consumer = join(driver, group_instance_id="i")
    together(consumer, until=shared(consumer))
    member = consumer.core.group_metadata
    assert member.instance == "i"
    assert consumer.core.leave().done
    assert consumer.requests("leave_group") == []
    again = join(driver, group_instance_id="i")
    together(again, until=shared(again))
    assert again.core.group_metadata.generation == member.generation


def test_another_coordinator_knows_the_member_still() -> None:
    driver = cluster()
    consumer = join(driver)
    together(consumer, until=shared(consumer))
    member = consumer.core.group_metadata
    coordinator = consumer.requests("join_group")[-1].broker
    operator_actions.kill(driver.cluster, coordinator)
    sent = len(consumer.sent)
    consumer.run(
        lambda: any(
            each.api == "heartbeat" and each.broker != coordinator for each in consumer.sent[sent:]
        ),
        fetches=False,
    )
    consumer.nothing(300)
    assert consumer.core.group_metadata.member_id == member.member_id


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("join_group", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("join_group", ErrorCode.NOT_COORDINATOR),
        ("join_group", ErrorCode.UNKNOWN_MEMBER_ID),
        ("join_group", ErrorCode.REBALANCE_IN_PROGRESS),
        ("sync_group", ErrorCode.REBALANCE_IN_PROGRESS),
        ("sync_group", ErrorCode.UNKNOWN_MEMBER_ID),
        ("sync_group", ErrorCode.ILLEGAL_GENERATION),
        ("sync_group", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_it_joins_in_spite_of_errors_that_pass(api: str, error: ErrorCode) -> None:
    consumer = join(cluster(), session_timeout_ms=6_000)
    consumer.alters = [code(api, error)]
    together(consumer, until=shared(consumer))
    assert consumer.alters == []


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, False),
        (ErrorCode.ILLEGAL_GENERATION, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, True),
    ],
)
def test_a_heartbeat_may_say_that_it_has_to_join_again(error: ErrorCode, is_lost: bool) -> None:
    consumer = join(cluster(), session_timeout_ms=6_000)
    together(consumer, until=shared(consumer))
    consumer.alters = [code("heartbeat", error)]
    together(consumer, until=lambda: len(consumer.events) == 3)
    revoked = consumer.events[1]
    assert isinstance(revoked, Revoke)
    assert (revoked.partitions, revoked.is_lost) == (ALL, is_lost)
    assert consumer.core.assignment == ALL


def test_a_coordinator_that_moves_is_found_by_heartbeats() -> None:
    consumer = join(cluster())
    together(consumer, until=shared(consumer))
    consumer.alters = [code("heartbeat", ErrorCode.NOT_COORDINATOR)]
    looked = len(consumer.requests("find_coordinator"))
    consumer.nothing(500)
    assert len(consumer.requests("find_coordinator")) == looked + 1
    assert len(consumer.events) == 1, "it stays a member"


def test_lost_requests_are_sent_again() -> None:
    consumer = join(cluster())
    consumer.loses = {"join_group"}
    consumer.run(lambda: len(consumer.requests("join_group")) == 2)
    consumer.loses = {"sync_group"}
    consumer.run(lambda: len(consumer.requests("sync_group")) == 2)
    consumer.loses = set()
    together(consumer, until=shared(consumer))


@pytest.mark.parametrize("api", ["join_group", "sync_group", "heartbeat"])
def test_a_refusal_is_raised(api: str) -> None:
    consumer = join(cluster())
    consumer.alters = [code(api, ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    with pytest.raises(RequestRefused, match=r"of g: GROUP_AUTHORIZATION_FAILED"):
        consumer.nothing()
    together(consumer, until=shared(consumer))


def test_a_subscription_of_another_member_that_can_not_be_read_is_raised() -> None:
    consumer = join(cluster())

    def garble(response: JoinGroupResponse) -> object:
        members = tuple(replace(each, metadata=b"\0") for each in response.members)
        return replace(response, members=members)

    consumer.alters = [("join_group", lambda response: response), ("join_group", garble)]
    with pytest.raises(Exception, match="cut short"):
        consumer.nothing()
    together(consumer, until=shared(consumer))


def test_an_assignment_that_can_not_be_read_is_raised() -> None:
    consumer = join(cluster())
    consumer.alters = [("sync_group", lambda response: replace(response, assignment=b"\0"))]
    with pytest.raises(Exception, match="cut short"):
        consumer.nothing()


def test_commits_after_a_rebalance_fail() -> None:
    driver = cluster()
    first = join(driver)
    together(first, until=shared(first))
    offsets = {Partition(topic="t", index=0): OffsetAndMetadata(offset=0)}
    first.loses = {"offset_commit"}
    operation = first.core.commit(offsets)
    first.run(lambda: operation.reason == "the test lost it")
    second = join(driver)
    together(first, second, until=shared(first, second))
    first.loses = set()
    with pytest.raises(CommitFailedError, match="has rebalanced since"):
        first.result(operation)


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, True), (ErrorCode.REBALANCE_IN_PROGRESS, False)],
)
def test_a_refused_commit_joins_again(error: ErrorCode, is_lost: bool) -> None:
    consumer = join(cluster(), session_timeout_ms=6_000)
    together(consumer, until=shared(consumer))
    partition = Partition(topic="t", index=0)

    def refuse(response: OffsetCommitResponse) -> object:
        topic = response.topics[0]
        part = replace(topic.partitions[0], error_code=error)
        return replace(response, topics=(replace(topic, partitions=(part,)),))

    consumer.alters = [("offset_commit", refuse)]
    with pytest.raises(CommitFailedError):
        consumer.result(consumer.core.commit({partition: OffsetAndMetadata(offset=0)}))
    together(consumer, until=lambda: len(consumer.events) == 3)
    revoked = consumer.events[1]
    assert isinstance(revoked, Revoke)
    assert revoked.is_lost is is_lost
