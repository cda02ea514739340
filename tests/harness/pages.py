"""Pages of the docs, run as tests: each command prints the output that the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from docs.generate import ROOT
from fencepost.cli.commands import run
from tests.harness.dialogue import Dialogue
from tests.harness.forkserver import client_command
from tests.harness.process import Process, start
from tests.harness.require import tool
from tests.harness.served_cluster import READY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S: Final = 240.0
"""For one command; to install takes longest."""
LEFT_OUT: Final = "..."
PORTS: Final = ("9092", "9093", "9094")
BLOCK: Final = re.compile(r"<!-- (run|serve|file: \S+) -->\n```[a-z]+\n(.*?)```", re.DOTALL)
_COMMAND: Final = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_END: Final = "end of what it printed"
"""What the shell says after a command, with the exit code."""
_BAD_NEWS: Final = re.compile(r"^(?:violation|fencepost:) ", re.MULTILINE)
"""How a line begins of a job that exits with 1."""


@dataclass(slots=True)
class Reader:
    """A reader of the page: a folder, a terminal, and a cluster in another one."""

    folder: Path
    terminal: Dialogue
    served: Process | None = None
    brokers: tuple[str, ...] = ()

    def follow(self, page: str) -> None:
        """Do all that the page says, in its order."""
        for kind, text in BLOCK.findall(page):
            commands: list[tuple[str, str]] = _COMMAND.findall(text)
            if kind == "run":
                for command, shown in commands:
                    self.type(command, shown)
            elif kind == "serve":
                self._serve(*(command for command, _ in commands))
            else:
                (self.folder / kind.removeprefix("file: ")).write_text(self._here(text))

    def type(self, command: str, shown: str = "") -> None:
        """Type a command. :raises AssertionError: When it fails, or prints something else."""
        if self.brokers:
            command = command.replace(f"127.0.0.1:{PORTS[0]}", self.brokers[0])
        self.terminal.say(f"{command}\necho {_END} $?")
        *printed, end = self.terminal.hear_until(lambda line: line.startswith(_END), PATIENCE_S)
        text = "\n".join(printed)
        assert end == f"{_END} 0", f"{command}: {end}\n{text}"
        assert is_as_shown(text, shown), f"{command} printed\n{text}\nshown is\n{shown}"

    def _serve(self, *commands: str) -> None:
        """The second terminal. The cluster takes free ports, and the reader is told which."""
        *before, serve = commands
        command = shlex.split(serve)
        if before:
            command[0] = str(self._activated(*before) / command[0])
        else:
            assert command[0] == "fencepost"
            command[:1] = [sys.executable, "-m", "fencepost"]
        if self.served is not None:
            self.served.stop()
        free = {"FENCEPOST_PORT": "0", "FENCEPOST_CONTROL_PORT": "0"}
        self.served = start("tutorial", command, self.folder / "served.log", env=free)
        ready = json.loads(self.served.first_line(READY_S))
        self.brokers = tuple(ready["bootstrap"].split(","))
        self.type(f"export FENCEPOST_CONTROL={ready['control']}")

    def _activated(self, activate: str) -> Path:
        """The folder of programs of the environment that a command activates."""
        activated = self.folder / activate.removeprefix("source ")
        assert activated.is_file()
        return activated.parent

    def _here(self, text: str) -> str:
        """A file of the page, for the ports that there are."""
        for port, broker in zip(PORTS, self.brokers, strict=True):
            assert f"127.0.0.1:{port}" in text
            text = text.replace(f"127.0.0.1:{port}", broker)
        return text


@dataclass(slots=True, kw_only=True)
class InSession(Reader):
    """A reader whose jobs run in this process, whose Spark session is there already."""

    command: str
    """What begins a job, such as ``fencepost audit``; all else is typed at the terminal."""
    places: tuple[str, ...] = ()
    """Folders of the page that the session's JVM, which started elsewhere, would not find."""
    capture: pytest.CaptureFixture[str]

    def type(self, command: str, shown: str = "") -> None:
        if not command.startswith(f"{self.command} "):
            return Reader.type(self, command, shown)
        if self.brokers:
            command = command.replace(f"127.0.0.1:{PORTS[0]}", self.brokers[0])
        words = shlex.split(command)[1:]
        self.capture.readouterr()
        code = run([str(self.folder / word) if word in self.places else word for word in words])
        printed = "".join(self.capture.readouterr()).rstrip("\n")
        assert is_as_shown(printed, shown), f"{command} printed\n{printed}\nshown is\n{shown}"
        assert code == (1 if _BAD_NEWS.search(shown) else 0), f"{command} exits with {code}"
        return None

    def _here(self, text: str) -> str:
        return text  # files of these pages are told where the brokers are


def follow_in_session(
    page: str,
    reader: Reader,
    capture: pytest.CaptureFixture[str],
    command: str,
    places: tuple[str, ...] = (),
) -> None:
    """Do all that a page says, its jobs (`InSession.command`) in the session that there is."""
    follower = InSession(
        folder=reader.folder,
        terminal=reader.terminal,
        command=command,
        places=places,
        capture=capture,
    )
    try:
        follower.follow(page)
    finally:
        reader.served = follower.served  # whose fixture stops it
    assert reader.served is not None


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether a page tells what was printed, however wide its columns and margins are.

    A line of ``...`` stands for any lines, and at the end of a line for the rest of it. Where
    nothing is shown, nothing may be printed.
    """
    pattern = ""
    for line in shown.splitlines():
        if line == LEFT_OUT:
            pattern += r"(?:.*\n)*"
            continue
        words = map(re.escape, line.removesuffix(LEFT_OUT).split())
        pattern += " *" + r" +".join(words) + (r".*\n" if line.endswith(LEFT_OUT) else r" *\n")
    return re.fullmatch(pattern, f"{printed}\n" if printed else "") is not None


def write_client(program: Path) -> None:
    """Write a program ``fencepost`` that has the command forked, as pages call it often."""
    command = shlex.join(client_command("fencepost"))
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    tool("bash")
    (tmp_path / "fencepost").symlink_to(ROOT)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FENCEPOST_")}
    programs = tmp_path / "programs"
    programs.mkdir()
    write_client(programs / "fencepost")
    folders = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    path = os.pathsep.join(folders)
    environment = {**kept, "PATH": path, "COLUMNS": "160", "PIP_NO_COMPILE": "1"}
    with Dialogue(["bash"], tmp_path / "terminal.log", env=environment) as terminal:
        made = Reader(folder=tmp_path, terminal=terminal)
        made.type(f"cd {shlex.quote(str(tmp_path))}")
        yield made
    if made.served is not None:
        made.served.stop()
