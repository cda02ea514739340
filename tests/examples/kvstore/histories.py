"""What clients of the store saw, and whether that is linearizable: porcupine says."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.state import Operation, Result
from fencepost.broker.core.events import Kind
from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = Path(__file__).parent / "checker"
LINEARIZABLE: Final = "linearizable"


@dataclass(slots=True)
class History:
    """The operations of a run. Times are numbers, each used once, in the order of what happened."""

    name: str
    told: list[dict[str, object]] = field(default_factory=list)
    results: int = 0
    unknown: int = 0
    events: Counter[Kind] = field(default_factory=Counter)
    """What befell the cluster meanwhile."""
    _now: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def record(
        self, client: int, operation: Operation, asked: Awaitable[Result]
    ) -> Result | None:
        """Wait for a result and note it; None where there is none.

        An operation that was certainly not executed is left out, as if it had not been sent.
        """
        call = next(self._now)
        result: Result | None = None
        try:
            result = await asked
        except NotDone:
            return None
        except Unknown:
            self.unknown += 1
        returned = None if result is None else next(self._now)
        self.results += 1
        self.told.append(
            {
                "client": client,
                "kind": operation.kind.value,
                "key": operation.key,
                "value": operation.value,
                "expected": operation.expected,
                "call": call,
                "return": returned,
                "done": result is not None and result.done,
                "found": None if result is None else result.value,
            }
        )
        return result

    def line(self) -> str:
        return json.dumps({"name": self.name, "operations": self.told})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What the checker says."""

    by_name: dict[str, str]
    text: str
    """All that it printed, with the operations that show the first violation."""

    @property
    def violations(self) -> list[str]:
        return [name for name, verdict in self.by_name.items() if verdict != LINEARIZABLE]


def check(histories: Iterable[History]) -> Verdicts:
    """The verdict on each history."""
    lines = "\n".join(history.line() for history in histories)
    done = run([str(checker())], stdin=lines, timeout_s=280, code=None)
    assert done.code in (0, 1), done.err
    verdicts = dict(line.split(": ", 1) for line in done.lines if not line.startswith(" "))
    found = Verdicts(by_name=verdicts, text=done.out)
    assert bool(found.violations) == (done.code == 1)
    return found


def checker() -> Path:
    """The program that checks, built once."""
    go = tool("go")
    sources = [HOME / name for name in ("go.mod", "go.sum", "main.go")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run([go, "build", "-o", str(folder / "program"), "."], cwd=folder, timeout_s=280)

    return made_once("linearizable", sources, build) / "program"
