"""``--stop-with-stdin``: a server that stops with the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.server import run
from fencepost.broker.server.run import follow_stdin
from fencepost.protocol.errors import ErrorCode

SERVE: Final = (sys.executable, "-m", "fencepost", "serve", "--port=0", "--control-port=0")


@contextmanager
def served(*options: str, stdin: IO[bytes] | int) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready."""
    with subprocess.Popen(
        [*SERVE, *options], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline().startswith(b"{")
            yield child
        finally:
            child.kill()


def test_it_stops_when_its_input_ends() -> None:
    with served("--stop-with-stdin", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write(b"nothing that matters\n")
        child.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.stdin.close()
        assert child.wait(20) == 0


@pytest.mark.parametrize("options", [(), ("--stop-with-stdin",)])
def test_closed_streams_do_no_harm(options: tuple[str, ...]) -> None:
    """Without standard input, a listener must not get its descriptor."""
    command = [*SERVE, *options]
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$@" <&- 2>&-', "sh", *command], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        if not options:
            os.kill(ready["pid"], signal.SIGTERM)
        assert child.wait(20) == 0


def test_a_line_resets_it_and_it_is_ready_again() -> None:
    with served("--stop-with-stdin", stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"what\nreset\nres")
        child.stdin.flush()
        first = child.stdout.readline()
        child.stdin.write(b"et\n")
        child.stdin.flush()
        assert first == child.stdout.readline()
        assert json.loads(first)["pid"] == child.pid
        child.stdin.close()
        assert child.wait(20) == 0
        assert child.stdout.read() == b""


def test_it_stops_when_its_input_has_ended_before() -> None:
    with served("--stop-with-stdin", stdin=subprocess.DEVNULL) as child:
        assert child.wait(20) == 0


def test_it_does_not_care_unless_it_is_told_to() -> None:
    with served(stdin=subprocess.DEVNULL) as child:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        child.terminate()
        assert child.wait(20) == 0


def test_it_stops_by_a_signal_as_well() -> None:
    with served("--stop-with-stdin", stdin=subprocess.PIPE) as child:
        child.terminate()
        assert child.wait(20) == 0


# -- in this process ----------------------------------------------------------------------------


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[IO[bytes]]:
    """The other end of standard input."""
    reading, writing = os.pipe()
    monkeypatch.setattr(run, "_STDIN", reading)
    with open(reading, "rb"), open(writing, "wb", buffering=0) as file:  # noqa: PTH123  # no paths
        yield file


class Followed:
    """What standard input had done."""

    def __init__(self, error: ControllerError | None = None) -> None:
        self.resets: asyncio.Queue[None] = asyncio.Queue()
        self.stopped = asyncio.Event()
        self._error = error
        follow_stdin(self._reset, self.stopped.set)

    async def _reset(self) -> None:
        if self._error is not None:
            raise self._error
        self.resets.put_nowait(None)


async def test_lines_in_pieces_and_many_at_once(feeds: IO[bytes]) -> None:
    followed = Followed()
    async with asyncio.timeout(10):
        for piece in (b"res", b"et\nre", b"set\nreset\nrese", b"ts\nreset \n"):
            feeds.write(piece)
        for _ in range(3):
            await followed.resets.get()
        assert not followed.stopped.is_set()
        feeds.close()
        await followed.stopped.wait()
    assert followed.resets.empty()


async def test_it_stops_when_a_reset_is_refused(
    feeds: IO[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    followed = Followed(ControllerError(ErrorCode.BROKER_NOT_AVAILABLE, "its port is taken"))
    feeds.write(b"reset\n")
    async with asyncio.timeout(10):
        await followed.stopped.wait()
    logged = capsys.readouterr().err
    assert "reset_refused" in logged
    assert "its port is taken" in logged


async def test_one_that_is_closed_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    followed = Followed()
    async with asyncio.timeout(10):
        await followed.stopped.wait()
