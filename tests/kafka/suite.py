"""Kafka's test classes, run in a few JVMs at a time."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, Self, TypeAlias

from tests.harness.dialogue import Dialogue
from tests.kafka import jvm
from tests.kafka.selection import simple_name

Outcome: TypeAlias = Literal["pass", "fail", "skip"]

_SILENCE_S: Final = 2.0 * jvm.TIMEOUT_S + 30.0
"""A test is interrupted after a minute, and its cluster stopped; then the JVM hangs."""
_PARAMETERS: Final = re.compile(r"\(.*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One test, or one invocation of it."""

    test: str
    """``Class#method``, with ``[n]`` for the n-th invocation of a method that has several."""
    outcome: Outcome
    trace: str = ""
    """The stack trace of a failure, or why it was skipped."""
    seconds: float = 0.0

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Out of a line of a file of results."""
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A class, and the methods of it that are run: without any, all but some."""

    class_name: str
    methods: Sequence[str] = ()
    without: Collection[str] = ()

    @property
    def line(self) -> str:
        """As ``SuiteRunner`` reads it."""
        words = [f"+{each}" for each in self.methods] or [f"-{each}" for each in self.without]
        return " ".join([self.class_name, *words])

    def after(self, done: Collection[str]) -> Work:
        """What is left of it; with methods that are named, those may be none."""
        left = [method for method in self.methods if method not in done]
        return replace(self, methods=left, without={*self.without, *done})


def run(works: Sequence[Work], jobs: int, on_result: Callable[[Result], None]) -> list[Result]:
    """Run classes in ``jobs`` JVMs; each takes the next when it is done with one."""
    queue, results = SimpleQueue[Work](), list[Result]()
    for work in works:
        queue.put(work)

    def take(result: Result) -> None:
        results.append(result)
        on_result(result)

    with (
        # A server ends after the JVM that started it, and may still write its log.
        tempfile.TemporaryDirectory(prefix="kafka-tests-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(jobs) as pool,
    ):
        command = jvm.command(Path(folder))
        logs = (Path(folder) / f"jvm-{number}.log" for number in range(jobs))
        for each in [pool.submit(_work, queue, command, log, take) for log in logs]:
            each.result()
    return results


class _LostJvmError(Exception):
    """A JVM hangs or has ended."""

    def __init__(self, rest: Work | None) -> None:
        super().__init__()
        self.rest = rest
        """What is left of the class that it ran."""


def _work(
    queue: SimpleQueue[Work], command: Sequence[str], log: Path, take: Callable[[Result], None]
) -> None:
    """Give one JVM after the other classes until there are none: a new JVM where one is lost."""
    rest: Work | None = None
    with suppress(Empty):
        while True:
            with Dialogue(command, log) as runner:
                try:
                    while True:
                        work, rest = rest or queue.get_nowait(), None
                        _run_class(runner, work, take)
                except _LostJvmError as lost:
                    rest = lost.rest


def _run_class(runner: Dialogue, work: Work, take: Callable[[Result], None]) -> None:
    """Run a class to its end. :raises _LostJvmError: When the JVM hangs or ends before."""
    events = Events(work.class_name)
    runner.say(work.line)
    try:
        while (event := json.loads(runner.hear_until(_any, _SILENCE_S)[-1]))["event"] != "end":
            for result in events.results(event):
                take(result)
    except AssertionError as error:
        if not events.begun:
            raise  # a new JVM would do no better
        for result in events.lost(str(error)):
            take(result)
        rest = work.after(events.begun)
        raise _LostJvmError(None if work.methods and not rest.methods else rest) from error


def _any(line: str) -> bool:
    return True


class Events:
    """The results of one class, out of what the JVM says about it."""

    def __init__(self, class_name: str) -> None:
        self._class = simple_name(class_name)
        self._running: dict[str, float] = {}
        self.begun: set[str] = set()
        """The methods of which a test has begun."""

    def results(self, event: Mapping[str, Any]) -> Iterator[Result]:
        """What an event says about a test."""
        test = self._name(event)
        if event["event"] == "start":
            self._running[test] = time.monotonic()
            self.begun.add(event["method"])
            return
        began = self._running.pop(test, None)
        seconds = time.monotonic() - began if began is not None else 0.0
        trace = event.get("trace") or event.get("reason") or ""
        yield Result(test=test, outcome=event["event"], trace=trace, seconds=seconds)

    def lost(self, problem: str) -> Iterator[Result]:
        """The tests that ran when the JVM hung or ended."""
        for test in self._running:
            yield Result(test=test, outcome="fail", trace=problem)

    def _name(self, event: Mapping[str, Any]) -> str:
        method = event.get("method")
        return f"{self._class}#{_PARAMETERS.sub('', event['name']) if method else ''}"
