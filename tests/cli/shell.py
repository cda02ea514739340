"""A shell: commands that run in this process."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import pytest

from fencepost.cli import main
from tests.harness.batches import build, produce_body
from tests.harness.wire import Connection

Json: TypeAlias = Any
REQUIRED: Final = {
    "elect": "--leader 1",
    "topic create": "t",
    "broker isolate": "--from controller",
    "fault add": "Fetch --drop",
    "verify": "Fetch --count 1",
    "records produce": "--value 7",
    "group move": "--broker 1",
    "group set-offsets": "--offset t:0:1",
    "group delete-offsets": "--topic t",
    "tier add-fault": "list --error x",
    "clock advance": "1",
    "transaction abort-hanging": "t 0 1000",
    "transaction hold": "t 0",
    "transaction release": "t 0",
}
"""What a command needs besides the places in its path, by its words."""


class Shell:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def text(self, line: str, code: int = 0) -> str:
        """What a command prints; to standard error where it fails."""
        assert main(line.split()) == code
        printed = self._capsys.readouterr()
        assert (printed.err if code == 0 else printed.out) == ""
        return printed.out if code == 0 else printed.err

    def json(self, line: str) -> Json:
        return json.loads(self.text(f"{line} --json"))

    def refusal(self, line: str, code: int = 2) -> str:
        """The one line that a command prints which fails."""
        text = self.text(line, code)
        assert text.endswith("\n")
        assert len(text.splitlines()) == 1, text
        return text[:-1]


def produce(shell: Shell, topic: str) -> None:
    """One record to partition 0, which broker 1 is asked for; its leader alone acknowledges it."""
    body = produce_body(topic, build([(1_700_000_000_000, None, b"v")]), acks=1)
    port = shell.json("broker list")[0]["port"]
    with Connection(("127.0.0.1", port)) as connection:
        connection.call("Produce", 9, body)
