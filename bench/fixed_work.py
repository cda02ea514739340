"""``python -m bench.fixed_work FILE``: a piece of work that is always the same, again and again.

What it takes at most beyond its median is the machine's doing. A host that takes a virtual
processor away for a few milliseconds is not seen from within: they count as processor time of the
thread that ran, of a server's loop as of this one. Once a second a line of JSON goes to the file.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench import process

WORK_S: Final = 0.001
"""How long a piece takes, about."""
REST_S: Final = 0.0015
"""Between two pieces: they have two fifths of a processor, as the loop under mixed load has."""
LINE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What was seen since the line before.

    :param at_s: Of the monotonic clock.
    :param excess_ms: The most processor time of a piece, less the median of all.
    """

    at_s: float
    excess_ms: float


def _take(rounds: int) -> float:
    """Processor seconds of a piece of work."""
    begin = time.thread_time()
    for _ in range(rounds):
        pass
    return time.thread_time() - begin


def _seconds(rounds: int) -> Iterator[Second]:
    while True:
        times = []
        end = time.monotonic() + LINE_S
        while (now := time.monotonic()) < end:
            times.append(_take(rounds))
            time.sleep(REST_S)
        yield Second(at_s=now, excess_ms=(max(times) - statistics.median(times)) * 1e3)


@contextlib.contextmanager
def running(path: Path) -> Iterator[None]:
    """A process of its own that goes on until the end of the context."""
    child = subprocess.Popen([sys.executable, "-m", "bench.fixed_work", str(path)])
    try:
        yield
    finally:
        process.stop(child)


def read(path: Path) -> Iterator[Second]:
    """All complete lines so far; none before the first."""
    if not path.exists():
        return
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield Second(**json.loads(line))


def main() -> None:
    rounds = 10_000
    rounds = max(int(rounds * WORK_S / min(_take(rounds) for _ in range(10))), 1)
    with Path(sys.argv[1]).open("w", buffering=1) as out:
        out.writelines(json.dumps(asdict(second)) + "\n" for second in _seconds(rounds))


if __name__ == "__main__":
    main()
