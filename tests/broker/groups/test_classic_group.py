"""A group's members and the selection of its protocol."""

from __future__ import annotations

import pytest

from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.classic_group_member import ClassicGroupMember, MemberProtocol
from fencepost.broker.groups.records import StoredGroup
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse
from fencepost.protocol.messages.sync_group import SyncGroupResponse
from tests.broker.groups.scripts import subscription


def member(
    member_id: str, *protocols: str, instance: str | None = None, topic: str = "t"
) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=member_id,
        group_instance_id=instance,
        client_id="c",
        client_host="/h",
        protocol_type="consumer",
        rebalance_timeout_ms=len(member_id),
        session_timeout_ms=1,
        protocols=tuple(
            MemberProtocol(name, subscription(topic)) for name in protocols or ("range",)
        ),
    )


def group_of(
    *members: ClassicGroupMember, state: ClassicGroupState = ClassicGroupState.STABLE
) -> ClassicGroup:
    group = ClassicGroup("g")
    for each in members:
        group.add_member(each)
    group.state = state
    return group


@pytest.mark.parametrize(
    ("offers", "elected"),
    [
        (["r"], "r"),
        (["r s", "r s"], "r"),
        (["r s", "s r", "s r"], "s"),
        (["r s", "s"], "s"),
        (["a r s", "b s r", "r s"], "r"),
        (["a b c", "c b", "b c"], "b"),
    ],
)
def test_votes(offers: list[str], elected: str) -> None:
    group = group_of(*(member(str(at), *offer.split()) for at, offer in enumerate(offers)))
    assert group.select_protocol() == elected


def test_no_vote_without_a_shared_protocol() -> None:
    with pytest.raises(ValueError, match="share no protocol"):
        group_of(member("a", "r"), member("b", "s")).select_protocol()


@pytest.mark.parametrize(
    ("state", "protocol_type", "offer", "welcome"),
    [
        (ClassicGroupState.EMPTY, "anything", "x", True),
        (ClassicGroupState.EMPTY, "", "x", False),
        (ClassicGroupState.EMPTY, "anything", "", False),
        (ClassicGroupState.STABLE, "consumer", "x s", True),
        (ClassicGroupState.STABLE, "consumer", "x", False),
        (ClassicGroupState.STABLE, "consumer", "r", False),
        (ClassicGroupState.STABLE, "connect", "s", False),
        (ClassicGroupState.PREPARING_REBALANCE, "consumer", "s", True),
    ],
)
def test_who_may_join(
    state: ClassicGroupState, protocol_type: str, offer: str, welcome: bool
) -> None:
    group = group_of(member("a", "r", "s"), member("b", "s"), state=state)
    assert group.supports(protocol_type, offer.split()) is welcome


def test_the_first_member_leads_and_the_next_one_when_it_has_gone() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert group.leader_id == "a"
    group.remove_member("b")
    assert group.leader_id == "a"
    group.remove_member("a")
    assert group.leader_id == "c"
    group.add_member(member("d"))
    group.leader_id = "d"
    group.remove_member("c")
    assert group.leader_id == "d"
    group.remove_member("d")
    assert group.leader_id is None


def test_a_leader_that_has_not_joined_is_replaced_by_a_member_that_has() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    assert not group.ensure_joined_leader()
    group.members["c"].joining = Wait()
    assert group.ensure_joined_leader()
    assert group.leader_id == "c"
    group.members["a"].joining = Wait()
    assert group.ensure_joined_leader()
    assert group.leader_id == "c"


def test_the_rebalance_timeout_is_the_longest() -> None:
    assert group_of().rebalance_timeout_ms == 0
    assert group_of(member("four"), member("a")).rebalance_timeout_ms == 4


@pytest.mark.parametrize(
    ("member_id", "instance", "error"),
    [
        ("d", None, ErrorCode.NONE),
        ("s", None, ErrorCode.NONE),
        ("s", "i", ErrorCode.NONE),
        ("d", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("s", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_a_member(member_id: str, instance: str | None, error: ErrorCode) -> None:
    group = group_of(member("d"), member("s", instance="i"))
    assert group.check_member(member_id, instance) is error


def test_a_static_member_is_replaced_in_its_place() -> None:
    group = group_of(member("s1", instance="i"), member("d"))
    old = group.members["s1"]
    old.assignment = b"A"
    join: Wait[JoinGroupResponse] = Wait()
    sync: Wait[SyncGroupResponse] = Wait()
    old.joining, old.syncing = join, sync
    new = group.replace_static_member("i", "s2")
    assert list(group.members) == ["s2", "d"]
    assert (group.leader_id, new.assignment, new.protocols) == ("s2", b"A", old.protocols)
    assert group.check_member("s1", "i") is ErrorCode.FENCED_INSTANCE_ID
    assert join.result is not None
    assert sync.result is not None
    assert join.result.error_code == sync.result.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert join.result.member_id == "s1"


def test_a_removed_members_parked_requests_are_answered() -> None:
    group = group_of(member("a"))
    join: Wait[JoinGroupResponse] = Wait()
    sync: Wait[SyncGroupResponse] = Wait()
    group.members["a"].joining, group.members["a"].syncing = join, sync
    group.remove_member("a")
    assert join.result is not None
    assert sync.result is not None
    assert join.result.error_code == sync.result.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_subscriptions_of_consumers() -> None:
    group = group_of(member("a", topic="t"), member("b", topic="u"))
    group.protocol = "range"
    group.subscribed = group.compute_subscribed()
    assert [group.is_subscribed_to(topic) for topic in "tuv"] == [True, True, False]


def test_unreadable_subscriptions_could_be_of_any_topic() -> None:
    odd = member("a")
    odd.protocols = (MemberProtocol("range", b"?"),)
    group = group_of(odd)
    group.protocol = "range"
    group.subscribed = group.compute_subscribed()
    assert group.is_subscribed_to("t")


def test_members_that_are_no_consumers_subscribe_to_nothing() -> None:
    connect = member("a")
    connect.protocol_type = "connect"
    group = group_of(connect)
    group.subscribed = group.compute_subscribed()
    assert not group.is_subscribed_to("t")


def test_a_stored_group_is_restored() -> None:
    group = group_of(member("s", "r", instance="i"), member("d", "r"))
    group.protocol, group.generation, group.state_timestamp_ms = "r", 3, 9
    stored = group.to_stored({"s": b"S", "d": b"D"})
    back = ClassicGroup.restore("g", stored)
    assert (back.state, back.generation, back.leader_id) == (ClassicGroupState.STABLE, 3, "s")
    assert back.static_members == {"i": "s"}
    assert back.assignments == {"s": b"S", "d": b"D"}
    assert back.is_subscribed_to("t")
    assert back.to_stored(back.assignments) == stored


def test_a_group_without_members_is_restored_empty() -> None:
    stored = StoredGroup(protocol_type="consumer", generation=4, state_timestamp_ms=8)
    back = ClassicGroup.restore("g", stored)
    assert (back.state, back.generation, back.state_timestamp_ms) == (ClassicGroupState.EMPTY, 4, 8)
    assert back.subscribed == frozenset()
    assert back.to_stored({}) == stored
