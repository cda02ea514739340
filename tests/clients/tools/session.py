"""Sessions of Kafka's command-line tools: commands as one types them, and what they print.

A session is a file of ``sessions/``. Its first line names the tool, a line ``# later:`` says what
fencepost needs for it, and each ``$`` begins a command whose output stands below, as a real Kafka
answered it; `tests.clients.tools.playing` says what a command may be.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "sessions"
PROGRAMS: Final = Path(__file__).parent / "programs"
"""Sessions of programs that are not Kafka's."""
RETRY: Final = "retry "


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of a session, and the lines that it is expected to print."""

    command: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A file of ``sessions/``."""

    name: str
    tool: str
    """The command that it is about, such as ``kafka-topics``."""
    later: str | None
    """What fencepost needs to print the same; None where it does."""
    head: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def options(self) -> list[str]:
        """The options that its tool is given, each once."""
        words = (
            word
            for step in self.steps
            for stage in stages(step.command)
            if self.tool in stage[:2]
            for word in stage
        )
        hidden = {"--bootstrap-server", "--bootstrap-controller"}
        return list(dict.fromkeys(w for w in words if w.startswith("--") and w not in hidden))


def sessions(folder: Path = FOLDER) -> list[Session]:
    """All of a folder by their names, those of Kafka's own tests last."""
    paths = folder.glob("*.txt")
    return [read(path) for path in sorted(paths, key=lambda p: (p.stem[0].isupper(), p.stem))]


def read(path: Path) -> Session:
    """A file of sessions, whose first line names the tool."""
    head, *rest = re.split(r"^\$ ", path.read_text(), flags=re.MULTILINE)
    comments = [line.removeprefix("# ") for line in head.splitlines()]
    later = [line for line in comments if line.startswith("later: ")]
    return Session(
        name=path.stem,
        tool=comments[0],
        later=later[0].removeprefix("later: ") if later else None,
        head=tuple(comments),
        steps=tuple(_step(text) for text in rest),
    )


def _step(text: str) -> Step:
    command, *expected = text.splitlines()
    return Step(command=command, expected=tuple(expected))


def written(session: Session) -> str:
    """The text of its file."""
    lines = [f"# {line}" for line in session.head]
    for step in session.steps:
        lines += [f"$ {step.command}", *step.expected]
    return "".join(f"{line}\n" for line in lines)


def stages(command: str) -> list[list[str]]:
    """The words of each part of a pipeline."""
    words = shlex.shlex(command.removeprefix(RETRY), posix=True, punctuation_chars="|>")
    words.whitespace_split = True
    words.commenters = ""
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages
