"""Nodes as processes: one is killed, or paused, and others take over."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from docs.generate import ROOT
from examples.kvstore import client
from examples.kvstore.__main__ import main
from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.state import Kind, Operation
from fencepost.testing import cluster as steering
from tests.harness.dialogue import Dialogue
from tests.harness.run import run
from tests.harness.served_cluster import Cluster, configs, serving, unique
from tests.harness.wait import wait_beside_loop

if TYPE_CHECKING:
    from pathlib import Path

SESSION_MS: Final = 600
SHARDS: Final = 2
PATIENCE_S: Final = 30.0
WRITERS: Final = 4
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT)}
PROGRAM: Final = (sys.executable, "-m", "examples.kvstore")
ALL: Final = ", ".join(map(str, range(SHARDS)))


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A node of the store in a process of its own."""

    name: str
    program: Dialogue
    address: tuple[str, int]

    def leads(self, shards: str) -> None:
        """Wait until it says so."""
        self.program.hear_until(f"{self.name} leads {shards}")

    def send(self, number: signal.Signals) -> None:
        self.program._child.send_signal(number)


StartNode: TypeAlias = Callable[[str], RunningNode]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": str(SESSION_MS),
    }
    with serving(tmp_path_factory.mktemp("kafka") / "log", *configs(settings)) as started:
        yield started


@pytest.fixture
def start(kafka: Cluster, tmp_path: Path) -> Iterator[StartNode]:
    """Starts nodes of a store of the test's own."""
    topic = unique("store")
    with ExitStack() as stack:

        def start_node(name: str) -> RunningNode:
            command = [*PROGRAM, "serve", "--bootstrap", kafka.bootstrap, "--node", name]
            command += ["--topic", topic, "--group", topic, "--shards", str(SHARDS)]
            command += ["--session-ms", str(SESSION_MS), "--patience", "5"]
            program = Dialogue(command, tmp_path / f"{name}.log", env=ENVIRONMENT)
            stack.enter_context(program)
            (line,) = program.hear_until(lambda _: True)
            said = re.fullmatch(rf"{name} serves at (\S+):(\d+)", line)
            assert said is not None, line
            return RunningNode(name, program, (said[1], int(said[2])))

        yield start_node


def ask(nodes: Sequence[RunningNode], kind: Kind, key: str, value: str | None = None) -> str | None:
    """The value that an operation is answered."""
    operation = Operation(kind=kind, key=key, value=value)
    addresses = [node.address for node in nodes]
    return asyncio.run(client.do(addresses, operation, PATIENCE_S)).value


@dataclass(slots=True)
class Writer:
    """A user who appends numbers to a key of its own, one after the other."""

    key: str
    done: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    async def write(self, nodes: Sequence[RunningNode], stop: asyncio.Event) -> None:
        addresses, number = [node.address for node in nodes], 0
        while not stop.is_set():
            text, number = str(number), number + 1
            operation = Operation(kind=Kind.APPEND, key=self.key, value=f"{text} ")
            try:
                await client.do(addresses, operation, PATIENCE_S)
            except Unknown:
                self.unknown.append(text)
            else:
                self.done.append(text)

    def count(self) -> int:
        return len(self.done)


async def write_through(
    nodes: Sequence[RunningNode], happens: Callable[[], object]
) -> Sequence[Writer]:
    """Users at work before, while and after something happens."""
    writers = [Writer(f"key {number}") for number in range(WRITERS)]
    stop = asyncio.Event()

    async def more_from_all() -> None:
        wanted = [writer.count() + 3 for writer in writers]
        await wait_beside_loop(
            "each writes three more",
            lambda: all(w.count() >= n for w, n in zip(writers, wanted, strict=True)),
        )

    async with asyncio.TaskGroup() as tasks:
        for writer in writers:
            tasks.create_task(writer.write(nodes, stop))
        await more_from_all()
        happens()
        await more_from_all()
        stop.set()
    return writers


def assert_all_there(writers: Sequence[Writer], node: RunningNode) -> None:
    for writer in writers:
        found = (ask([node], Kind.GET, writer.key) or "").split()
        assert [text for text in found if text not in writer.unknown] == writer.done
        assert len(set(found)) == len(found), "nothing is there twice"


def test_what_was_acknowledged_outlives_a_node_that_is_killed(start: StartNode) -> None:
    first = start("a")
    first.leads(ALL)
    second = start("b")
    nodes = [first, second]
    writers = asyncio.run(write_through(nodes, lambda: first.send(signal.SIGKILL)))
    second.leads(ALL)
    assert_all_there(writers, second)


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_what_was_acknowledged_outlives_a_broker(
    kafka: Cluster, start: StartNode, broker: int
) -> None:
    """It leads one of the shards, or coordinates the group, or neither."""
    assert kafka.control is not None
    node = start("a")
    steered = steering.Cluster(kafka.bootstrap, kafka.control)
    writers = asyncio.run(write_through([node], lambda: steered.kill_broker(broker)))
    steered.start_broker(broker)
    steered.remote.close()
    assert_all_there(writers, node)


def test_a_node_that_starts_when_all_are_gone_has_everything(start: StartNode) -> None:
    first = start("a")
    for number in range(20):
        ask([first], Kind.PUT, f"key {number}", str(number))
    first.send(signal.SIGKILL)
    second = start("b")
    second.leads(ALL)
    for number in range(20):
        assert ask([second], Kind.GET, f"key {number}") == str(number)


def test_a_node_that_was_paused_and_superseded_says_nothing_wrong(start: StartNode) -> None:
    first = start("a")
    first.leads(ALL)
    assert ask([first], Kind.PUT, "k", "old") is None
    with socket.create_connection(first.address) as user, user.makefile("rw") as lines:
        first.send(signal.SIGSTOP)
        second = start("b")
        second.leads(ALL)
        assert ask([second], Kind.PUT, "k", "new") == "old"
        for asked in ({"op": "get"}, {"op": "append", "value": "er"}):
            lines.write(json.dumps({**asked, "key": "k"}) + "\n")
        lines.flush()
        first.send(signal.SIGCONT)
        read, appended = (json.loads(lines.readline()) for _ in range(2))
    assert read.get("error") == "not_leader" or read == {"done": True, "value": "new"}
    if "error" not in appended:
        assert appended == {"done": True, "value": "newer"}
    assert ask([second], Kind.GET, "k") in ("new", "newer")
    first.program.hear_until(lambda line: line in ("a leads 0", "a leads 1"))


def test_a_node_that_ends_in_order_is_replaced_at_once(start: StartNode) -> None:
    first, second = start("a"), start("b")
    ask([first, second], Kind.PUT, "k", "v")
    first.program.terminate()
    assert first.program.end() is not None
    second.leads(ALL)
    assert ask([second], Kind.GET, "k") == "v"


def test_the_command_line(start: StartNode, capsys: pytest.CaptureFixture[str]) -> None:
    host, port = start("a").address
    nodes = ["--nodes", f"127.0.0.1:1,{host}:{port}"]

    def said(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, *nodes]) == code
        out, err = capsys.readouterr()
        return (out + err).strip()

    assert said("put", "k", "v") == "done; before: no value"
    assert said("get", "k") == "v"
    assert said("append", "k", "w") == "vw"
    assert said("cas", "k", "v", "x", code=1) == "refused; it is: vw"
    assert said("cas", "k", "vw", "x") == "done"
    assert said("delete", "k") == "done; before: x"
    assert said("get", "k") == "no value"
    assert said("cas", "k", "", "y") == "done"
    assert "an operation has a key" in said("get", "", code=2)


def test_a_topic_that_does_not_check_is_refused(kafka: Cluster) -> None:
    topic = kafka.create_topic("careless")
    command = [*PROGRAM, "serve", "--bootstrap", kafka.bootstrap, "--node", "a", "--topic", topic]
    done = run(command, env=ENVIRONMENT, code=2)
    assert "check.expected.offsets=true" in done.err


def test_without_a_node_nothing_is_done() -> None:
    with pytest.raises(NotDone, match="no node serves"):
        asyncio.run(client.do([("127.0.0.1", 1)], Operation(kind=Kind.GET, key="k"), 0.2))
