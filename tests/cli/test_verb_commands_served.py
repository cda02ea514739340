"""The commands that steer: what they ask, and what they show to a person and to a program."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cli.shell import Shell, produce
from tests.harness.served_cluster import serve

START: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def rows(table: str) -> list[list[str]]:
    """The cells of each line below the headers."""
    lines = [re.split(r"\s{2,}", line) for line in table.splitlines()]
    return [cells for cells in lines if len(cells) > 1][1:]


def test_replicas_are_held_stepped_and_released(control: str, shell: Shell) -> None:
    state = shell.json("hold t 0 3 --leave-isr")
    assert state["isr"] == [1, 2]
    assert state["replicas"][2]["state"] == "held"
    assert rows(shell.text("partition t 0"))[2][:3] == ["3", "follower", "held"]
    assert rows(shell.text("hold t 0 2 --at 7"))[1][2] == "idle, hold at 7"

    steps = shell.json("step t 0 3 --fetches 2")["fetches"]
    assert [(each["api"], each["error"]) for each in steps] == [("Fetch", "NONE")] * 2
    assert rows(shell.text("step t 0 3")) == [["Fetch", "1", "0", "0", "NONE", "0", "-", "0", "0"]]

    assert sorted(shell.json("release t 0 3")["isr"]) == [1, 2, 3]
    assert shell.json("wipe t 0 3")["replicas"][2]["log_end_offset"] == 0
    assert shell.json("roll t 0")["leader"] == 1
    for verb in ("release", "wipe"):
        assert "t-0: leader 1 in epoch 0" in shell.text(f"{verb} t 0 2")
    assert "t-0: leader 1" in shell.text("roll t 0")


def test_elections_clean_and_unclean(control: str, shell: Shell) -> None:
    assert "t-0: leader 2 in epoch 1" in shell.text("elect t 0 --leader 2")
    shell.json("hold t 0 3 --leave-isr")
    refusal = shell.text("elect t 0 --leader 3", code=1)
    assert "(ELIGIBLE_LEADERS_NOT_AVAILABLE)" in refusal
    assert len(refusal.splitlines()) == 1
    state = shell.json("elect t 0 --leader 3 --unclean")
    assert (state["leader"], state["leader_epoch"]) == (3, 2)
    assert rows(shell.text("partition t 0"))[2][2] == "held leader"


def test_a_closed_gate_is_shown(control: str, shell: Shell) -> None:
    shell.json("hold t 0 3")
    produce(shell, "t")
    assert "gate" not in shell.text("partition t 0")
    assert ", gate closed until 1" in shell.text("elect t 0 --leader 2")


def test_brokers_come_and_go(fresh: str, shell: Shell) -> None:
    listed = shell.json("broker list")
    assert [(each["id"], each["state"]) for each in listed] == [
        (1, "running"),
        (2, "running"),
        (3, "running"),
    ]
    assert shell.json("broker stop 1")["state"] == "stopped"
    assert shell.json("partition t 0")["leader"] == 2
    (row,) = rows(shell.text("broker start 1"))
    assert (row[0], row[2:]) == ("1", ["running", "no", "2", "-"])
    killed = shell.json("broker kill 2 --fence never")
    assert (killed["state"], killed["fenced"]) == ("killed", False)
    shell.json("broker start 2")
    assert shell.json("broker isolate 3 --from 1 --from 2")["isolated_from"] == [1, 2]
    (row,) = rows(shell.text("broker isolate 3 --from controller"))
    assert row[2:] == ["running", "yes", "1", "controller, 1, 2"]
    assert shell.json("broker rejoin 3")["isolated_from"] == []
    table = rows(shell.text("broker list"))
    assert [(row[0], *row[2:4]) for row in table] == [(b, "running", "no") for b in "123"]
    assert "(BROKER_ID_NOT_REGISTERED)" in shell.text("broker stop 4", code=1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "broker isolate 3 --from broker",
            '--from: input should be "controller" or an array of broker ids',
        ),
        (
            "broker isolate 3 --from controller --from 1",
            '--from: input should be "controller" or an array of broker ids',
        ),
        ("broker isolate 3", "--from"),
        ("broker kill 3 --fence later", "later"),
        ("hold t 0 3 --at -1", "--at"),
        ("step t 0 3 --fetches 0", "--fetches"),
        ("clock advance -1", "-1"),
    ],
)
def test_what_was_asked_wrongly_is_exit_code_2(shell: Shell, line: str, words: str) -> None:
    assert words in shell.text(line, code=2)


def test_time_passes_as_it_is_told(control: str, shell: Shell) -> None:
    first = shell.json("clock advance 0")
    assert shell.json("clock advance 1500") == {
        "mode": "manual",
        "now_ms": first["now_ms"] + 1500,
    }
    printed = shell.text("clock advance 1")
    assert START.match(printed)
    assert f" {first['now_ms'] + 1501} ms" in printed


def test_events_are_printed_as_they_happen(fresh: str, shell: Shell) -> None:
    last = json.loads(shell.text("events --no-follow --json").splitlines()[-1])["number"]
    shell.json("elect t 0 --leader 1")
    command = [sys.executable, "-m", "fencepost", "events", "--control", fresh]
    more = ["--since", str(last + 1), "--count", "3"]
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert re.fullmatch(
            rf"{last + 2} {START.pattern} leader_changed t-0: leader 1 stays in epoch 1\n",
            watching.stdout.readline(),
        )
        shell.json("hold t 0 3 --leave-isr")
        assert "verb hold t-0 broker 3 leave_isr=true" in watching.stdout.readline()
        assert "replica_held t-0: broker 3 is held" in watching.stdout.readline()
        assert watching.wait(30) == 0
    lines = shell.text(f"events --since {last} --no-follow --json").splitlines()
    numbered = [(each["number"] - last, each["kind"]) for each in map(json.loads, lines)]
    assert numbered == [
        (1, "verb"),
        (2, "leader_changed"),
        (3, "verb"),
        (4, "replica_held"),
        (5, "isr_changed"),
    ]
    assert "ISR 1,2,3 -> 1,2" in shell.text(f"events --since {last + 4} --count 1")
    assert shell.text("events --count 0") == ""


def test_events_end_with_the_cluster(tmp_path: Path) -> None:
    cluster = serve(tmp_path / "log", brokers=1)
    assert cluster.control is not None
    cluster.create_topic("t", replication_factor=1)
    command = [sys.executable, "-m", "fencepost", "events", "--control", cluster.control]
    with subprocess.Popen(
        [*command, "--since", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["kind"] == "topic_created"
        cluster.stop()
        assert watching.stdout.read() == ""
        assert watching.wait(30) == 0
