"""``--in-process``: run the tests that start no other process, and skip the others.

No list says which those are. A test is skipped at the moment when it, or a fixture of it, starts a
process; a harness function that prepares one says so earlier by `starts_a_process`.
"""

from __future__ import annotations

import multiprocessing.process
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

import pytest
from _pytest.outcomes import Skipped

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_EVENTS: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn"}
)
"""The audit events of starting a process."""


class StartsAProcess(Skipped):
    """Ends a test that would start a process."""


class _Guard:
    """Whether a test runs that may start no process. An audit hook cannot be removed."""

    watching = False


def starts_a_process() -> None:
    """Skip the test where only those are wanted that start no process."""
    if _Guard.watching:
        raise StartsAProcess("it starts a process")


class InProcess:
    """Watches every way in which a test can start a process."""

    def __init__(self) -> None:
        self._ended_children = 0
        sys.addaudithook(self._audit)
        # These raise no audit event.
        self._guard(multiprocessing.process.BaseProcess, "start")
        if sys.platform != "win32":
            from uvloop import Loop

            self._guard(Loop, "subprocess_exec")
            self._guard(Loop, "subprocess_shell")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._ended_children = _ended_children()
        _Guard.watching = True
        try:
            return (yield)
        finally:
            _Guard.watching = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        yield
        if _ended_children() != self._ended_children:
            raise AssertionError("it started a process in a way that is not watched")

    def _audit(self, event: str, _args: tuple[object, ...]) -> None:
        if event in _EVENTS:
            starts_a_process()

    def _guard(self, owner: type[AbstractEventLoop | object], name: str) -> None:
        whole: Callable[..., object] = getattr(owner, name)

        def guarded(*args: object, **options: object) -> object:
            starts_a_process()
            return whole(*args, **options)

        setattr(owner, name, guarded)


def _ended_children() -> int:
    """A number that grows with every child process that has ended: the memory that it touched."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
