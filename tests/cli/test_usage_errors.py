"""What was asked wrongly is told in one line: what it was, what is near it, what is allowed."""

from __future__ import annotations

import re

import pytest

from fencepost.broker.faults.kinds import KINDS
from fencepost.cli import main
from fencepost.protocol.lookup import MAX_LISTED, nearest, suggestion
from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi

ONE_ACTION = f"name exactly one action of {', '.join(KINDS)}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("elec t 0", "fencepost: there is no command elec; did you mean elect?"),
        (
            "broker halt 1",
            (
                "fencepost broker: there is no command halt,"
                " only stop, kill, start, isolate, rejoin, list"
            ),
        ),
        (
            "fault ad Fetch",
            (
                "fencepost fault: there is no command ad,"
                " only add, list, show, wait, remove, clear; did you mean add?"
            ),
        ),
        (
            "elect t 0 --leadr 2",
            (
                "fencepost elect: there is no option --leadr,"
                " only --leader, --unclean, --control, --control-token, --json, --help;"
                " did you mean --leader?"
            ),
        ),
        (
            "elect t 0",
            (
                "fencepost elect: --leader is missing;"
                " usage: fencepost elect TOPIC P --leader B [OPTIONS]"
            ),
        ),
        ("hold t 0", "fencepost hold: B is missing; usage: fencepost hold TOPIC P B [OPTIONS]"),
        (
            "topics all",
            (
                "fencepost topics: got unexpected extra argument(s) (all);"
                " usage: fencepost topics [OPTIONS]"
            ),
        ),
        ("step t 0 2 --fetches", "fencepost step: option '--fetches' requires an argument"),
        ("hold t 0 x", "fencepost hold: B: 'x' is not a number"),
        ("hold t 0 2 --at x", "fencepost hold: --at x: input should be a valid integer"),
        (
            "hold t 0 2 --at -1",
            "fencepost hold: --at -1: input should be greater than or equal to 0",
        ),
        (
            "step t 0 2 --fetches 0",
            "fencepost step: --fetches 0: input should be greater than or equal to 1",
        ),
        (
            "broker kill 3 --fence nver",
            (
                "fencepost broker kill: --fence nver: input should be 'now', 'timeout' or 'never';"
                " did you mean never?"
            ),
        ),
        (
            "broker isolate 3 --from broker",
            (
                "fencepost broker isolate: --from:"
                ' input should be "controller" or an array of broker ids'
            ),
        ),
        (
            "topic create t --config retention.ms",
            "fencepost topic create: --config: 'retention.ms' is not KEY=VALUE",
        ),
        (
            "topic create t --config a=1 --config a=2",
            "fencepost topic create: --config: 'a=2' gives a a second time",
        ),
        (
            "topic create t --assignment 1,x",
            "fencepost topic create: --assignment x: input should be a valid integer",
        ),
        (
            "fault add Fech --drop",
            "fencepost fault add: API: there is no API Fech; did you mean Fetch?",
        ),
        (
            "trace --api Prodce",
            "fencepost trace list: --api: there is no API Prodce; did you mean Produce?",
        ),
        (
            "fault add Produce --error NOT_ENOUGH_REPLICA",
            (
                "fencepost fault add: --error: there is no error NOT_ENOUGH_REPLICA;"
                " did you mean NOT_ENOUGH_REPLICAS?"
            ),
        ),
        (
            "fault add Produce",
            "fencepost fault add: name an action, or a sequence of several",
        ),
        (
            "fault add Produce --sequence pass,delay",
            "fencepost fault add: --sequence delay: delay needs a value",
        ),
        (
            "fault add Produce,Fetsch --drop",
            "fencepost fault add: API: there is no API Fetsch; did you mean Fetch?",
        ),
        (
            "fault add Produce --drop --delay 3",
            f"fencepost fault add: {ONE_ACTION}",
        ),
        (
            "fault add Produce --drop --count never",
            "fencepost fault add: --count never: input should be a valid integer or always",
        ),
        (
            "fault add Produce --drop --partition 0",
            "fencepost fault add: partition: name its topic too",
        ),
        (
            "fault add Produce --disconnect later --count 0",
            (
                "fencepost fault add:"
                " --count 0: input should be greater than or equal to 1 or always;"
                " --disconnect later: input should be 'before' or 'after'; did you mean after?"
            ),
        ),
        ("clock advance soon", "fencepost clock advance: MS soon: input should be a valid integer"),
    ],
)
def test_what_was_asked_wrongly_is_one_line_and_exit_code_2(
    line: str, message: str, stub: FakeControlApi, shell: Shell
) -> None:
    assert shell.refusal(line) == message
    assert stub.asked == []


@pytest.mark.parametrize("line", ["", "broker", "scenario"])
def test_where_one_of_several_commands_is_missing_they_are_shown(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert f"Usage: {' '.join(['fencepost', *line.split()])} " in printed.out
    assert " list " in printed.out or not line
    assert printed.err == ""


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("partition tt 0", "; there is no topic tt, only t; did you mean t?"),
        ("topic delete s", "there is no topic 's', only t"),
        ("elect t 7 --leader 1", "there is no partition t-7; it has partitions 0 to 0"),
        ("broker stop 9", "there is no broker 9, only 1, 2, 3"),
        ("topic create u --config cleanup.polcy=x", "did you mean cleanup.policy?"),
    ],
)
def test_a_refusal_says_what_there_is(line: str, end: str, control: str, shell: Shell) -> None:
    assert re.search(rf"{re.escape(end)} \([A-Z_]+\)$", shell.refusal(line, 1))


def test_a_fault_that_is_gone_is_refused_with_those_that_there_are(
    control: str, shell: Shell
) -> None:
    ids = [shell.json("fault add Fetch --drop --topic none")["id"] for _ in range(2)]
    shell.json(f"fault remove {ids[0]}")
    refusal = shell.refusal(f"fault show {ids[0]}", 1)
    assert refusal.endswith(f", only {ids[1]} (RESOURCE_NOT_FOUND)")


def test_a_cluster_that_is_not_there_is_one_line_and_exit_code_1(shell: Shell) -> None:
    refusal = shell.refusal("topics --control http://127.0.0.1:1", 1)
    assert refusal.startswith("fencepost: no control API answers at http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("name", "found"),
    [("leadr", "leader"), ("NOTLEADER", "not_leader"), ("x", None), ("", None)],
)
def test_the_nearest_name(name: str, found: str | None) -> None:
    assert nearest(name, ["follower", "leader", "not_leader"]) == found


def test_a_long_list_is_told_only_where_nothing_is_near() -> None:
    known = [f"name-{number}" for number in range(MAX_LISTED + 3)]
    assert suggestion("nam-7", known) == "; did you mean name-7?"
    assert suggestion("x", known).startswith(", only name-0, name-1, ")
    assert suggestion("x", known).endswith(f"name-{MAX_LISTED - 1} and 3 more")
    assert suggestion("x", []) == ""
