"""Kafka's own tools, run in one JVM that has them loaded: a new JVM takes 2 s for each."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path

from tests.harness.dialogue import Dialogue
from tests.harness.java import story_command
from tests.harness.run import Finished


def kafka_tool(name: str, *arguments: str, timeout_s: float = 90, code: int | None = 0) -> Finished:
    """Run the main class ``name`` to its end, as ``tests.harness.java.java`` does.

    Not for tools that go on until their JVM is told to end, nor for those that read their input.

    :param code: The exit code it must end with; None for any.
    :raises AssertionError: When it ends otherwise, or too late; with what it printed.
    """
    words = (b64encode(word.encode()).decode() for word in (name, *arguments))
    told = _runner().ask(" ".join(words), timeout_s)
    ended, out, err = (b64decode(word).decode() for word in told.split(" "))
    if code is not None and int(ended) != code:
        shown = " ".join((name, *arguments))
        raise AssertionError(f"{shown} ended with {ended}, not {code}\n{out}\n{err}")
    return Finished(code=int(ended), out=out, err=err)


@cache
def _runner() -> Dialogue:
    """The JVM, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-tools-"))
    runner = Dialogue(story_command("ToolRunner"), folder / "log")

    def end() -> None:
        runner.__exit__(None, None, None)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    runner.hear_until("ready")
    return runner
