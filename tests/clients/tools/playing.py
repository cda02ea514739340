"""Play a session: run its commands on a cluster.

Of a shell a command may use the filters of `_FILTERS`, ``head`` also for a tool that ends only
when it is told to, ``printf TEXT |`` for the input of a tool, and ``echo TEXT > FILE``. ``retry``
repeats it until it prints what is expected. ``$BROKERS`` and the like are what `Ground` says. Of
the output, lines of the log are left out, the fields of events are sorted, and standard error comes
last, marked by ``!``.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

from tests.clients.tools.session import RETRY, Session, Step, stages
from tests.clients.tools.tools import TOOLS
from tests.harness.kafka_tools import kafka_tool
from tests.harness.run import run as run_program

REAL: Final = os.environ.get("FENCEPOST_TOOLS_ON") == "kafka"
"""Whether a real Kafka is what the commands are run on."""

PROGRAMS: Final = os.environ.get("FENCEPOST_TEST_PROGRAMS")
"""The folder of programs that are not Kafka's, and that no package registry has."""

_RETRY_S: Final = 10.0
_LOG_LINE: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} |\tat |Caused by: |\t\.\.\. ")
_UUID: Final = re.compile(
    r"(?<![\w-])(?!(?:[A-Z][a-z]{2,})+(?![\w-]))(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])"
)
"""An id in base64, which may be of letters alone, but no class or column of as many letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the commands are run on."""

    brokers: Sequence[str]
    """The address of each broker, ids from 1."""
    controller: str
    """``$CONTROLLER``: the address of a controller's listener."""
    folder: Path
    """``$DIR``: where a session has its files."""
    logs: Sequence[Path]
    """``$LOGS1`` and so on: the log directories of the brokers."""

    def variables(self) -> Iterator[tuple[str, str]]:
        """Each name, and what it stands for; longer values first."""
        yield "$BROKERS", ",".join(self.brokers)
        yield from ((f"$BROKER{n}", broker) for n, broker in enumerate(self.brokers, 1))
        yield "$CONTROLLER", self.controller
        yield from ((f"$LOGS{n}", str(path)) for n, path in enumerate(self.logs, 1))
        yield "$DIR", str(self.folder)


def check(session: Session, ground: Ground) -> None:
    """Play a session.

    :raises AssertionError: When a step does not print what is expected; of a session that needs
        what fencepost does not have, when all of them do.
    """
    found = _first_difference(session, ground)
    if session.later and not REAL:
        assert found is not None, f"it prints the same without {session.later}"
    elif found is not None:
        expected, printed = found
        assert printed == expected, "\n".join(unified_diff(expected, printed, lineterm=""))


def _first_difference(session: Session, ground: Ground) -> tuple[list[str], list[str]] | None:
    """What a step is expected to print, and what it prints, of the first where these differ."""
    for step in session.steps:
        lines = answer(step, ground)
        if lines != list(step.expected):
            return [f"$ {step.command}", *step.expected], [f"$ {step.command}", *lines]
    return None


def answer(step: Step, ground: Ground) -> list[str]:
    """What a step prints; with ``retry`` the last that it prints, in `_RETRY_S`."""
    lines = run(step.command, ground)
    deadline = time.monotonic() + _RETRY_S
    while step.command.startswith(RETRY) and lines != list(step.expected):
        if time.monotonic() > deadline:
            break
        lines = run(step.command, ground)
    return lines


def run(command: str, ground: Ground) -> list[str]:
    """What a command prints, and its exit code where that is not 0; variables for values."""
    command = _filled(command, ground)
    *feeding, tool = _before_filters(stages(command))
    filters = stages(command)[len(feeding) + 1 :]
    if tool[0] == "echo":
        Path(tool[3]).write_text(tool[1].replace("\\n", "\n"))
        return []
    stdin = "".join(stage[1].replace("\\n", "\n") for stage in feeding)
    cut = int(filters[0][1].removeprefix("-")) if filters and filters[0][0] == "head" else 0
    if tool[0] in TOOLS:
        done = kafka_tool(
            TOOLS[tool[0]], *tool[1:], stdin=stdin, lines=cut, timeout_s=40, code=None
        )
    else:
        done = run_program([f"{PROGRAMS}/{tool[0]}", *tool[1:]], stdin=stdin, code=None)
    lines = [*_said(done.out), *(f"! {line}" for line in _said(done.err))]
    lines = [masked(with_sorted_fields(line), ground) for line in lines]
    for each in filters:
        lines = _FILTERS[each[0]](lines, each[1:])
    return lines + ([f"[exit code {done.code}]"] if done.code else [])


def _filled(command: str, ground: Ground) -> str:
    """With values for variables."""
    values = dict(ground.variables())
    names = "|".join(map(re.escape, values))
    return re.sub(rf"({names})(?!\w)", lambda found: values[found[1]], command)


def _before_filters(parts: list[list[str]]) -> list[list[str]]:
    return parts[:2] if parts[0][0] == "printf" else parts[:1]


def _said(text: str) -> list[str]:
    """Its lines without those of the log."""
    lines = (line.rstrip() for line in text.splitlines())
    return [line for line in lines if line and not _LOG_LINE.match(line)]


def masked(line: str, ground: Ground) -> str:
    """A line with variables for addresses, and without ids."""
    for name, value in ground.variables():
        line = line.replace(value, name)
    for number, broker in enumerate(ground.brokers, 1):
        line = re.sub(rf"\b{broker.rpartition(':')[2]}\b", f"PORT{number}", line)
    return _UUID.sub("<id>", line)


def with_sorted_fields(line: str) -> str:
    """An event of Kafka's verifiable tools: Java's reflection gives its fields in any order."""
    if not line.startswith('{"timestamp":'):
        return line
    return json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))


def _grep(lines: list[str], words: list[str]) -> list[str]:
    inverted, pattern = (True, words[1]) if words[0] == "-v" else (False, words[0])
    return [line for line in lines if bool(re.search(pattern, line)) is not inverted]


def _sed(lines: list[str], words: list[str]) -> list[str]:
    _, pattern, replacement, _ = words[1].split(words[1][1])
    return [re.sub(pattern, replacement, line) for line in lines]


_FILTERS: Final[dict[str, Callable[[list[str], list[str]], list[str]]]] = {
    "grep": _grep,
    "head": lambda lines, words: lines[: int(words[0].removeprefix("-"))],
    "sed": _sed,
    "sort": lambda lines, _: sorted(lines),
    "tail": lambda lines, words: lines[-int(words[0].removeprefix("-")) :],
}
