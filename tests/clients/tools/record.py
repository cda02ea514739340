"""``python -m tests.clients.tools.record [NAME...]``: write sessions as a real Kafka answers."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.clients.tools.ground import kafka
from tests.clients.tools.playing import Ground, run
from tests.clients.tools.session import FOLDER, PROGRAMS, RETRY, Step, sessions, written

_SETTLED_S: Final = 1.0


def record(names: list[str]) -> None:
    """Each named session, or all of Kafka's tools, from a Kafka started for them."""
    with tempfile.TemporaryDirectory() as folder, kafka(Path(folder)) as ground:
        for place in (FOLDER, PROGRAMS):
            for session in sessions(place):
                if session.name in names or (place is FOLDER and not names):
                    steps = tuple(_answered(step, ground) for step in session.steps)
                    text = written(dataclasses.replace(session, steps=steps))
                    (place / f"{session.name}.txt").write_text(text)


def _answered(step: Step, ground: Ground) -> Step:
    """What is repeated until it prints what is expected has to say the same twice."""
    lines = run(step.command, ground)
    while step.command.startswith(RETRY):
        time.sleep(_SETTLED_S)
        before, lines = lines, run(step.command, ground)
        if before == lines:
            break
    return Step(command=step.command, expected=tuple(lines))


if __name__ == "__main__":
    record(sys.argv[1:])
