"""Results kept by commit, in ``bench/history.jsonl``: a line a commit, machine and amount of work.

A later run at the same commit replaces what it measured again. Values have four digits, and the
file the newest :data:`MOST` lines, so that it stays small. A commit with changes that are not
committed is kept as ``COMMIT+``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from bench import tools

FILE: Final = tools.HERE / "history.jsonl"
MOST: Final = 20
CHANGED: Final = "+"
"""After a commit: with changes."""
_MEASURED: Final = ("fencepost", "bench", ":!bench/history.jsonl")
"""What a change must be in to count."""

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""The value of each round, by row and kind of server."""


class NotKept(Exception):
    """There is no such commit among the kept ones, or no commit to keep results by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured of a commit.

    :param machine: Its shape (:func:`bench.report.machine`); values of another cannot be compared.
    :param scale: The amount of work, likewise.
    :param others: The share of the machine that other processes had, the median, 0 to 1.
    """

    commit: str
    date: str
    machine: str
    scale: str
    others: float
    values: Values

    def is_like(self, other: Run) -> bool:
        """Whether values of the two can be compared."""
        return (self.machine, self.scale) == (other.machine, other.scale)

    def updated(self, newer: Run) -> Run:
        """With what a later run at the same commit measured."""
        return replace(newer, values={**self.values, **newer.values})


def rounded(values: Mapping[str, Mapping[str, Mapping[int, float]]]) -> Values:
    """Values by round, as they are kept."""
    return {
        row: {
            kind: [float(f"{each:.4g}") for _, each in sorted(by_round.items())]
            for kind, by_round in by_kind.items()
        }
        for row, by_kind in values.items()
    }


def read(path: Path = FILE) -> list[Run]:
    """All that are kept, the oldest first."""
    if not path.exists():
        return []
    return [Run(**json.loads(line)) for line in path.read_text().splitlines()]


def keep(run: Run, path: Path = FILE) -> None:
    """Add a run, or update the one of its commit, which becomes the newest."""
    runs = []
    for each in read(path):
        if each.commit == run.commit and each.is_like(run):
            run = each.updated(run)
        else:
            runs.append(each)
    lines = [json.dumps(asdict(each), separators=(",", ":")) for each in (*runs, run)]
    path.write_text("".join(f"{line}\n" for line in lines[-MOST:]))


def find(runs: Sequence[Run], commit: str) -> Run:
    """The newest one of a commit, by the beginning of its hash.

    :raises NotKept: When there is none.
    """
    for run in reversed(runs):
        if run.commit == commit or run.commit.removesuffix(CHANGED).startswith(commit):
            return run
    kept = ", ".join(run.commit[:12] for run in runs) or "none"
    raise NotKept(f"nothing is kept of {commit}; kept are: {kept}")


def last_two(runs: Sequence[Run]) -> tuple[Run, Run]:
    """The newest one, and the newest before it that it can be compared with.

    :raises NotKept: When there are none.
    """
    for run in reversed(runs[:-1]):
        if run.is_like(runs[-1]):
            return run, runs[-1]
    raise NotKept("two runs of the same machine and amount of work are needed")


def resolved(revision: str) -> str:
    """The full hash of what Git calls so; unchanged where it does not know it."""
    suffix = CHANGED if revision.endswith(CHANGED) else ""
    command = ["rev-parse", "--verify", "--quiet", f"{revision.removesuffix(CHANGED)}^{{commit}}"]
    try:
        return _git(*command) + suffix
    except NotKept:
        return revision


def current() -> str:
    """The commit of this checkout.

    :raises NotKept: Without Git.
    """
    commit = _git("rev-parse", "HEAD")
    return commit + (CHANGED if _git("status", "--porcelain", "--", *_MEASURED) else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(tools.HERE.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotKept(f"git {arguments[0]} failed") from error
    return done.stdout.strip()
