"""docs/stories.md as something to run: its commands are what the tests of the stories do.

A block after ``<!-- run: NAME -->`` holds commands. Below a command stands the part of its answer
that matters, as JSON or as text; what is played must answer so. A block after
``<!-- prints: NAME -->`` holds what a client prints meanwhile.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from docs.generate import ROOT
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.harness import golang, java
from tests.harness.control_client import Control, Json, covers
from tests.harness.dialogue import Dialogue
from tests.harness.require import tool
from tests.harness.run import Finished, run
from tests.harness.served_cluster import Cluster, serve
from tests.harness.wait import wait_until

PAGE: Final = ROOT / "docs" / "stories.md"
TOPIC: Final = "orders"
_COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
"""A command, which goes on after a line that ends in a backslash, and what is shown below it."""
READER: Final = Path(__file__).with_name("reader.py")


@cache
def block(kind: str, name: str) -> str:
    found = re.search(rf"<!-- {kind}: {name} -->\n```[a-z]+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, f"{PAGE.name} has no block {kind}: {name}"
    return found[1]


def commands(name: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what is shown of its answer."""
    steps = _COMMAND.findall(block("run", name))
    assert steps, f"the block {name} has no commands"
    return [(command, shown.strip()) for command, shown in steps]


def prints(name: str) -> list[str]:
    """The lines that a client prints."""
    return block("prints", name).splitlines()


def serve_options(name: str) -> list[str]:
    """The options of a block's one command, ``fencepost serve --brokers 3``, after these."""
    ((command, _),) = commands(name)
    start, options = shlex.split(command)[:4], shlex.split(command)[4:]
    assert start == ["fencepost", "serve", "--brokers", "3"]
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster that a story is played on."""

    cluster: Cluster
    control: Control
    folder: Path
    """For the logs of clients."""

    def play(
        self, name: str, *, after_each: Callable[[], None] | None = None, **variables: object
    ) -> None:
        """Do what a block says. :raises AssertionError: When an answer is not as it shows."""
        for command, shown in commands(name):
            given = {key: str(value) for key, value in variables.items()}
            done = self._shell(command, given, code=None if shown.startswith("%") else 0)
            check(command, shown, done)
            if after_each is not None:
                after_each()

    def _shell(self, command: str, variables: dict[str, str], *, code: int | None) -> Finished:
        tool("curl")
        tool("kcat")
        control = self.cluster.control
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        places = {
            "BOOTSTRAP": self.cluster.bootstrap,
            "BROKERS": f"{control}/v1/brokers",
            "TOPICS": f"{control}/v1/topics",
            "ORDERS": f"{control}/v1/topics/{TOPIC}/partitions/0",
            "TRACE": f"{control}/v1/trace",
        }
        # curl tells of a refusal only when it is asked to.
        line = "set -eu -o pipefail; " + command.replace("curl -s", "curl -sS --fail-with-body")
        environment = {**os.environ, "PATH": path, **places, **variables}
        return run(["bash", "-c", line], env=environment, code=code)

    @contextmanager
    def verbs(self) -> Iterator[Verbs]:
        """Every verb, where `control` has none of its own."""
        assert self.cluster.control is not None
        with closing(Remote(self.cluster.control)) as remote:
            yield Verbs(remote)

    def address(self, broker: int) -> str:
        return self.cluster.bootstrap.split(",")[broker - 1]

    @contextmanager
    def client(
        self,
        kind: str,
        *member: str,
        policy: str = "none",
        bootstrap: str | None = None,
        log_level: str = "WARN",
    ) -> Iterator[Dialogue]:
        """A consumer that is told what to read: ``java``, ``confluent`` or ``go``.

        That is its client id as well.

        :param member: Its group, if it has one, and for librdkafka ``seek`` (see reader.py).
        :param log_level: Of the Java client.
        """
        arguments = [bootstrap or self.cluster.bootstrap, TOPIC, kind, policy, *member]
        if kind == "java":
            command = java.story_command("ReaderStory", *arguments, log_level=log_level)
        elif kind == "go":
            command = [str(golang.build_program("reader")), *arguments]
        else:
            arguments[3] = policy.replace("none", "error")
            command = [sys.executable, str(READER), *arguments]
        with Dialogue(command, self.folder / f"{kind}.log") as reader:
            reader.hear_until("ready")
            yield reader

    def wait_until_no_fetch(self, client_id: str) -> None:
        """None of this client waits at a broker, where it would be answered in mid-election."""

        def answered() -> bool:
            fetches = self.control.trace(api="Fetch", client_id=client_id)
            return all(each["answered_ms"] is not None for each in fetches)

        wait_until(f"answers to the fetches of {client_id}", answered)

    def answers(self, api: str, client_id: str) -> list[Json]:
        """What a client was answered about partition 0 of the topic, the oldest first."""
        return [
            {"version": exchange["version"], "broker": exchange["broker"], **partition}
            for exchange in self.control.trace(api=api, client_id=client_id)
            for topic in _topics(exchange["response"] or {})
            for partition in topic["partitions"]
        ]


def _topics(response: Json) -> Json:
    return response.get("topics") or response.get("responses") or ()


@contextmanager
def stage(folder: Path, *options: str) -> Iterator[Stage]:
    """A cluster as docs/stories.md has it started, with more options.

    :param folder: For its log and those of clients.
    """
    served = serve(folder / "fencepost.log", *serve_options("serve"), *options)
    assert served.control is not None
    control = Control(served.control)
    try:
        yield Stage(cluster=served, control=control, folder=folder)
    finally:
        control.close()
        served.stop()


def check(command: str, shown: str, done: Finished) -> None:
    """Whether what was printed is what stands below the command."""
    if shown.startswith("%"):  # kcat's mark of a problem
        assert done.code != 0, f"{command} went well"
        assert shown in done.err, f"{command}\n{done.err}"
    elif shown.startswith("{"):
        expected, found = json.loads(shown), json.loads(done.out)
        assert covers(found, expected), f"{command}\nshown: {shown}\nfound: {done.out}"
    elif shown:
        assert done.out.strip() == shown, f"{command}\n{done.out}"
