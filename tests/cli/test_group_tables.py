"""The tables of groups, and the two orders in which a command about one may be typed."""

from __future__ import annotations

import pytest

from fencepost.verbs.answers.groups import GroupState
from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi, ok, refusal

(GROUP,) = GroupState.examples
MEMBER = GROUP["members"][0]["member_id"]


def test_a_group_is_a_line_its_members_and_its_partitions(
    stub: FakeControlApi, shell: Shell
) -> None:
    unknown = {
        **GROUP["offsets"][0],
        "partition": 1,
        "committed_offset": -1,
        "leader_epoch": -1,
        "lag": None,
        "member_id": None,
    }
    stub.will(ok({**GROUP, "offsets": [*GROUP["offsets"], unknown]}))
    first, *rows = shell.text("group shipping").splitlines()
    assert first == (
        "group shipping: Stable, generation 3, protocol range, coordinator 2"
        " (__consumer_offsets-17)"
    )
    assert rows == [
        f"{'member':{len(MEMBER)}}  client   host        assignment",
        f"{MEMBER}  rdkafka  /127.0.0.1  orders-0",
        "partition  committed  epoch  log end  lag  member",
        f"orders-0   40         3      42       2    {MEMBER}",
        "orders-1   -          -      42       -    -",
    ]


def test_a_group_without_members_and_offsets_is_a_line(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({**GROUP, "state": "Empty", "protocol": None, "members": [], "offsets": []}))
    assert shell.text("group shipping") == (
        "group shipping: Empty, generation 3, coordinator 2 (__consumer_offsets-17)\n"
    )


def test_groups_are_listed(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({"groups": [{"group": "shipping", "type": "classic", "state": "Stable"}]}))
    assert shell.text("groups") == "group     type     state\nshipping  classic  Stable\n"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("group shipping", "shipping"),
        ("group shipping show", "shipping"),
        ("group show shipping", "shipping"),
        ("group show wait", "wait"),
        ("group a/b", "a%2Fb"),
        ("group shipping wait --members 2", "shipping/wait"),
        ("group wait shipping --members 2", "shipping/wait"),
        ("group wait wait", "wait/wait"),
        ("group shipping remove m", "shipping/members/m/remove"),
        ("group remove shipping m", "shipping/members/m/remove"),
        ("group shipping set-offsets --offset t:0:1 --offset t:1:2", "shipping/offsets"),
    ],
)
def test_the_name_may_stand_before_the_word_or_after_it(
    stub: FakeControlApi, shell: Shell, line: str, path: str
) -> None:
    stub.will(ok(GROUP))
    shell.text(line)
    (asked,) = stub.asked
    assert asked.target == f"/v1/groups/{path}"


def test_what_is_typed_wrong_is_said(shell: Shell) -> None:
    for line, said in (
        ("group shipping wiat", "there is no command wiat"),
        ("group wait", "GROUP is missing"),
        ("group shipping set-offsets --offset t", "or text such as orders:0:17"),
        ("group shipping set-offsets", "--offset is missing"),
        ("group shipping wait --state Stabel", "did you mean Stable?"),
    ):
        assert said in shell.refusal(line)


def test_offsets_and_topics_are_sent_as_they_are_typed(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok(GROUP))
    shell.text('group g set-offsets --offset t:0:1 --offset {"topic":"t","partition":1,"offset":2}')
    shell.text("group g delete-offsets --topic 7,t")
    assert [each.body for each in stub.asked] == [
        {"offsets": ["t:0:1", {"topic": "t", "partition": 1, "offset": 2}]},
        {"topics": ["7", "t"]},
    ]


def test_the_groups_that_there_are_are_named_where_one_is_not(
    stub: FakeControlApi, shell: Shell
) -> None:
    stub.will(
        refusal(404, "GROUP_ID_NOT_FOUND", "there is no group 'shiping'"),
        ok({"groups": [{"group": "shipping", "type": "classic", "state": "Stable"}]}),
    )
    assert shell.refusal("group shiping", 1) == (
        "fencepost: there is no group 'shiping', only shipping; did you mean shipping?"
        " (GROUP_ID_NOT_FOUND)"
    )
