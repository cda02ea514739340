"""What is shown: plain lines to a program, tables with colours on a terminal of any width."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fencepost.cli.output import GOOD, Table, Text, line, plain_lines
from fencepost.verbs.answers.faults import FaultState
from tests.cli.shell import Shell, produce
from tests.cli.terminal import shown, without_escapes
from tests.harness.fake_control_api import FakeControlApi, ok

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
BROKER = {
    "id": 1,
    "host": "127.0.0.1",
    "port": 9092,
    "listeners": {"PLAINTEXT": "127.0.0.1:9092"},
    "state": "running",
    "fenced": False,
    "registered": True,
    "epoch": 1,
    "isolated_from": [],
}
BROKERS = [BROKER, {**BROKER, "id": 2, "port": 9093, "state": "killed", "fenced": True}]
CLUSTER = {
    "cluster_id": "c",
    "brokers": BROKERS,
    "controller": 1,
    "controller_listener": None,
    "features": {},
    "clock": {"mode": "real", "now_ms": 0},
}

EXCHANGE: dict[str, object] = {
    "number": 1,
    "time_ms": 0,
    "answered_ms": 0,
    "elapsed_us": None,
    "newest": 1,
    "broker": 1,
    "connection": "c",
    "client_id": "c",
    "api": "Fetch",
    "version": 9,
    "correlation_id": 1,
    "request": {},
    "response": {},
    "topic_names": {},
}


@pytest.fixture
def brokers(stub: FakeControlApi) -> None:
    """Two brokers, one of which is down."""
    stub.will(ok(CLUSTER))


def test_a_program_is_given_plain_lines(brokers: None, shell: Shell) -> None:
    assert shell.text("broker list") == (
        "broker  address         state    fenced  epoch  isolated from\n"
        "1       127.0.0.1:9092  running  no      1      -\n"
        "2       127.0.0.1:9093  killed   yes     1      -\n"
    )


def test_a_terminal_is_given_a_table_with_colours(brokers: None) -> None:
    text = shown("broker list")
    assert COLOUR.search(text)
    header, rule, *rows = [line.split() for line in without_escapes(text).splitlines()]
    assert header[:2] == ["broker", "address"]
    assert set("".join(rule)) == {"─"}
    assert rows[1] == ["2", "127.0.0.1:9093", "killed", "yes", "1", "-"]


def test_no_color_is_heeded(brokers: None) -> None:
    text = shown("broker list", NO_COLOR="1")
    assert not COLOUR.search(text)
    assert "killed" in text


def test_a_dumb_terminal_is_given_plain_lines(brokers: None) -> None:
    text = shown("broker list", TERM="dumb")
    assert "127.0.0.1:9092  running" in text
    assert "─" not in text


@pytest.mark.parametrize(
    ("dialect", "cluster", "exchange"),
    [
        (None, "controller 1\n", "Fetch v9  ok"),
        ("kip-320-draft", "controller 1, dialect kip-320-draft\n", "Fetch v9 of kip-320-draft  ok"),
    ],
)
def test_a_dialect_is_named(
    stub: FakeControlApi, shell: Shell, dialect: str | None, cluster: str, exchange: str
) -> None:
    stub.will(ok({**CLUSTER, "dialect": dialect}))
    assert cluster in shell.text("cluster")
    stub.will(ok([{**EXCHANGE, "dialect": dialect}]))
    assert exchange in shell.text("trace")


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_nothing_is_cut_off_where_there_is_little_room(columns: int, brokers: None) -> None:
    text = without_escapes(shown("broker list", columns=columns))
    assert max(map(len, text.splitlines())) <= columns
    together = "".join(text.split())
    for word in ("address", "127.0.0.1", ":9093", "killed", "yes"):
        assert word in together


def test_a_reader_that_has_seen_enough_is_no_error(stub: FakeControlApi) -> None:
    topic = {
        "name": "t" * 200,
        "topic_id": "i",
        "partitions": 1,
        "replication_factor": 1,
        "internal": False,
        "configs": {},
    }
    stub.will(ok([topic] * 10_000))
    command = f"{sys.executable} -m fencepost topics | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("topic ")
    assert done.stderr == ""


def test_plain_tables_are_as_wide_as_they_have_to_be() -> None:
    table = Table(("a", "long header"), (("x" * 300, Text("y", GOOD)), ("", "z")))
    wide = "x" * 300
    assert list(plain_lines(table)) == [f"a{' ' * 301}long header", f"{wide}  y", f"{' ' * 302}z"]
    assert list(plain_lines(line("a", Text("b", GOOD), "c"))) == ["abc"]


# What is shown of each answer


def test_a_cluster_and_its_clock(brokers: None, shell: Shell) -> None:
    head, clock, *table = shell.text("cluster").splitlines()
    assert head == "cluster c: controller 1"
    assert clock == "1970-01-01T00:00:00.000Z, 0 ms, real clock"
    assert len(table) == 3


def test_faults(stub: FakeControlApi, shell: Shell) -> None:
    fault = {
        **dict.fromkeys(FaultState.model_fields),
        "id": 3,
        "hits": 2,
        "api": "Produce",
        "versions": "4-8",
        "client_id": "c",
        "after": 1,
        "probability": 0.5,
        "action": {"delay": 200},
    }
    stub.will(ok(fault))
    header, row = shell.text("fault show 3").splitlines()
    assert re.split(r"\s{2,}", header) == [
        "fault", "api", "action", "hits", "left", "hits requests of",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", row) == [
        "3", "Produce", "delay 200", "2", "always",
        "versions 4-8, client id c, after 1, probability 0.5",
    ]  # fmt: skip
    plain = {**fault, "left": 0, "action": {"drop": True}, "versions": None, "client_id": None}
    stub.will(ok([{**plain, "after": 0, "probability": 1.0}]))
    row = shell.text("fault list").splitlines()[1]
    assert re.split(r"\s{2,}", row) == ["3", "Produce", "drop", "2", "0", "all"]


def test_what_there_is_nothing_to_say_of(stub: FakeControlApi, shell: Shell) -> None:
    assert shell.text("reset") == "done\n"
    stub.will(ok({"status": "ok"}))
    assert shell.text("healthcheck") == "ok\n"


def test_the_trace_tells_what_was_asked_and_what_came_of_it(control: str, shell: Shell) -> None:
    produce(shell, "t")
    produce(shell, "missing")
    *_, whole, missing = shell.text("trace --api Produce").splitlines()
    assert re.search(r"Produce v9 +ok, [0-9.]+ ms +t-0$", whole)
    assert re.search(r"Produce v9 +UNKNOWN_TOPIC_OR_PARTITION, [0-9.]+ ms +missing-0$", missing)
    number = missing.split()[0]
    head, *bodies = shell.text(f"trace wait --api Produce --since {int(number) - 1}").splitlines()
    assert head.startswith(f"{number} ")
    assert re.search(r"Produce v9: UNKNOWN_TOPIC_OR_PARTITION, [0-9.]+ ms$", head)
    assert '"error_code": 3' in "".join(bodies)
