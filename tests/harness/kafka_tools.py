"""Kafka's own tools, run in one JVM that has them loaded: a new JVM takes 2 s for each."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path
from typing import Final

from tests.harness.dialogue import Dialogue
from tests.harness.java import story_command
from tests.harness.run import Finished

_OPTIONS: Final = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
"""It runs what a tool asks Java's Runtime to be done at the end."""


def kafka_tool(
    name: str,
    *arguments: str,
    stdin: str = "",
    lines: int = 0,
    timeout_s: float = 90,
    code: int | None = 0,
) -> Finished:
    """Run the main class ``name`` to its end, as ``tests.harness.java.java`` does.

    :param lines: After so many lines of output it is told to end, as by the end of its JVM; 0 for
        a tool that ends by itself.
    :param code: The exit code it must end with; None for any.
    :raises AssertionError: When it ends otherwise, or too late; with what it printed.
    """
    sent = (stdin, str(lines), name, *arguments)
    words = (b64encode(word.encode()).decode() for word in sent)
    try:
        answer = _runner().ask(" ".join(words), timeout_s)
    except AssertionError:
        _end_runner()  # the next tool gets a JVM in which nothing hangs
        raise
    ended, out, err = (b64decode(word).decode() for word in answer.split(" "))
    if code is not None and int(ended) != code:
        shown = " ".join((name, *arguments))
        raise AssertionError(f"{shown} ended with {ended}, not {code}\n{out}\n{err}")
    return Finished(code=int(ended), out=out, err=err)


@cache
def _folder() -> Path:
    """Where the JVMs write their logs; it is gone with this process."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-tools-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _runner() -> Dialogue:
    """The JVM, which ends with this process."""
    folder = _folder()
    runner = Dialogue(story_command("ToolRunner", options=_OPTIONS), folder / "log")
    atexit.register(runner.__exit__, None, None, None)
    runner.hear_until("ready")
    return runner


def _end_runner() -> None:
    runner = _runner()
    _runner.cache_clear()
    atexit.unregister(runner.__exit__)
    runner.__exit__(None, None, None)
