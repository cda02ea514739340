"""Work that waits until the event loop has next to nothing else to do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import pytest

from fencepost.broker.server.idle_work import (
    MAX_SHARE,
    QUIET_S,
    STEP_S,
    IdleWork,
    Quiet,
    prepare_apis,
)
from tests.harness.run import run

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator


class Machine:
    """A loop that runs timers of its own clock, and the processor time of its thread."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.used_s = 0.0
        self.load = 0.0
        """The share of a processor that others use."""
        self._timer: tuple[float, Callable[[], None]] | None = None

    def start(self, work: Iterator[None]) -> IdleWork:
        quiet = Quiet(lambda: self.now_s, lambda: self.used_s)
        loop = cast("asyncio.AbstractEventLoop", self)
        return IdleWork(loop, work, after_s=0.5, quiet=quiet)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Machine:
        self._timer = self.now_s + delay, callback
        return self

    def cancel(self) -> None:
        self._timer = None

    def run_for(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._timer is not None and self._timer[0] <= end_s:
            (due_s, callback), self._timer = self._timer, None
            self._pass(due_s - self.now_s)
            callback()
        self._pass(end_s - self.now_s)

    def _pass(self, seconds: float) -> None:
        self.now_s += seconds
        self.used_s += seconds * self.load


def steps(machine: Machine, done: list[int], count: int) -> Iterator[None]:
    for number in range(count):
        machine.used_s += STEP_S  # a step uses a processor itself
        done.append(number)
        yield


def test_an_idle_loop_runs_one_step_after_the_other() -> None:
    machine, done = Machine(), list[int]()
    machine.start(steps(machine, done, 5))
    machine.run_for(0.49)
    assert done == []
    machine.run_for(0.015)
    assert done == [0]
    machine.run_for(3.2 * STEP_S)
    assert done == [0, 1, 2, 3]
    machine.run_for(1)
    assert done == [0, 1, 2, 3, 4]


def test_a_loop_that_serves_clients_runs_none_until_they_leave_the_time() -> None:
    machine, done = Machine(), list[int]()
    machine.load = 2 * MAX_SHARE
    machine.start(steps(machine, done, 3))
    machine.run_for(60)
    assert done == []
    machine.load = MAX_SHARE / 2
    machine.run_for(2 * QUIET_S + 3 * STEP_S)
    assert done == [0, 1, 2]


def test_none_runs_once_it_is_stopped() -> None:
    machine, done = Machine(), list[int]()
    work = machine.start(steps(machine, done, 5))
    machine.run_for(0.5)
    work.stop()
    machine.run_for(60)
    assert done == [0]


def test_apis_are_prepared_to_their_handlers_and_messages() -> None:
    code = (
        "import sys\n"
        "from fencepost.broker.server.idle_work import prepare_apis\n"
        "before = set(sys.modules)\n"
        "for _ in prepare_apis(): pass\n"
        "print(*sorted(set(sys.modules) - before))\n"
        "from fencepost.broker import handlers\n"
        "from fencepost.protocol.apis import APIS\n"
        "from fencepost.protocol import codec\n"
        "before = set(sys.modules)\n"
        "for api in APIS: handlers.handler_of(api); codec.prepare(api)\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    prepared, later = run([sys.executable, "-c", code]).out.split("\n")[:2]
    assert "fencepost.broker.handlers.delete_groups" in prepared.split()
    assert "fencepost.protocol.messages.delete_groups" in prepared.split()
    assert later == ""


def test_what_can_not_be_read_is_left_to_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def fail(api: object) -> None:
        tried.append(str(api))
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("fencepost.protocol.codec.prepare", fail)
    for _ in prepare_apis():
        pass
    assert len(tried) > 50
