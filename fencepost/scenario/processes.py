"""The user's own processes: started with the cluster's address in their environment, and ended.

They are a group of processes each, of which nothing is left when the scenario is over.
"""

import asyncio
import os
import re
import shlex
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Body, Listed
from fencepost.verbs.model import After
from fencepost.verbs.serving import Configs

KEPT_BYTES: Final = 64 << 10
"""How much of a process's output is kept: its end."""
_POLL_S: Final = 0.01
_LAST_OUTPUT_S: Final = 1.0
"""How long output is read after an exit: a child that lives on may hold the pipe."""
_LOOPBACK: Final = "127.0.0.1"


class CannotRun(Exception):
    """A process did not start. The text is one line that says why."""


def _checked_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from None
    return pattern


def _checked_command(command: tuple[str, ...] | str) -> tuple[str, ...] | str:
    words = shlex.split(command) if isinstance(command, str) else command
    if not words or not words[0]:
        raise ValueError("there is no program in it")
    return command


class ReadyBody(Body):
    """What shows that a process is ready: exactly one of these."""

    output: Annotated[str, After(_checked_pattern)] | None = None
    """A regular expression that its output has."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """A port of the loopback on which it accepts connections."""

    def check(self) -> None:
        """It is one of them."""
        if (self.output is None) is (self.port is None):
            raise ValueError("output or port is to be there, and not both")


class RunBody(Body):
    """A process to start. In its command and its environment ``{bootstrap}`` and ``{control}`` are
    the cluster's addresses.
    """

    command: Annotated[Listed[str] | str, After(_checked_command)]
    """The program and its arguments; a text is split as a shell does, but no shell reads it."""
    env: Configs = field(default_factory=dict)
    """Variables beside those of this process, or a list of ``KEY=VALUE``."""
    directory: str = "."
    """Its working directory, from the scenario's file on."""
    ready: ReadyBody | None = None
    """Of a process in the background: what the next step waits for; null: nothing."""

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return tuple(shlex.split(self.command)) if isinstance(self.command, str) else self.command


class ProcessBody(Body):
    """A process in the background."""

    process: str
    """Its name there."""


class KillBody(ProcessBody):
    """A process to end, with the processes that it has started."""

    signal: Literal["KILL", "TERM", "INT", "HUP", "STOP", "CONT", "USR1", "USR2"] = "KILL"
    """What is sent to it. The step waits for its exit, but after STOP, CONT, USR1 and USR2."""

    @property
    def ends(self) -> bool:
        """Whether it is to exit."""
        return self.signal in ("KILL", "TERM", "INT", "HUP")


class ProcessAnswer(Answer):
    """A process as it is."""

    running: bool
    exit_code: int | None
    """Null while it runs; -9 where signal 9 ended it."""
    output: str
    """What it has printed to stdout and stderr, the last 64 KiB of it."""


class ProcessStep(Struct, frozen=True, kw_only=True):
    """What a step does with a process."""

    name: str
    field: str
    """The one that a text or a list in place of all fields stands for."""
    request_model: type[Body]
    summary: str
    """One sentence."""


PROCESS_STEPS: Final = {
    each.name: each
    for each in (
        ProcessStep(
            name="run",
            field="command",
            request_model=RunBody,
            summary="Start a process of your own, and wait for its exit.",
        ),
        ProcessStep(
            name="process",
            field="process",
            request_model=ProcessBody,
            summary="Show what a process in the background is and has printed.",
        ),
        ProcessStep(
            name="kill",
            field="process",
            request_model=KillBody,
            summary="Kill a process in the background.",
        ),
    )
}
"""By name. They are no verbs: only a file has them, and nothing that comes over HTTP."""


class UserProcess:
    """A process that was started."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        self._output = bytearray()
        self._reading = asyncio.create_task(self._read())

    def answer(self) -> ProcessAnswer:
        """What it is now."""
        code = self._child.returncode
        return ProcessAnswer(running=code is None, exit_code=code, output=self.output)

    @property
    def output(self) -> str:
        """The end of what it has printed."""
        return self._output.decode("utf-8", "replace")

    @property
    def is_running(self) -> bool:
        """Whether it has not exited."""
        return self._child.returncode is None

    async def wait(self, within_s: float) -> bool:
        """Wait for its exit and its last output; whether it came in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), within_s)
        if not self.is_running:
            await asyncio.wait([self._reading], timeout=_LAST_OUTPUT_S)
        return not self.is_running

    async def wait_until_ready(self, ready: ReadyBody, within_s: float) -> str | None:
        """Wait for a sign that it is ready; why there is none."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not await self._is_ready(ready):
            if not self.is_running:
                await self.wait(0)
                if await self._is_ready(ready):
                    break
                return f"it exited with {self._child.returncode} before it was ready"
            if asyncio.get_running_loop().time() >= deadline:
                return f"it was not ready within {within_s:g} s"
            await asyncio.sleep(_POLL_S)
        return None

    def send(self, name: str) -> None:
        """Send a signal to it and to the processes that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.Signals[f"SIG{name}"])

    async def close(self) -> None:
        """Kill what is left of it."""
        if self.is_running or not self._reading.done():  # a child of it holds the pipe
            self.send("KILL")
        await self._child.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _is_ready(self, ready: ReadyBody) -> bool:
        if ready.output is not None:
            return re.search(ready.output, self.output) is not None
        try:
            _, writer = await asyncio.open_connection(_LOOPBACK, ready.port)
        except OSError:
            return False
        writer.close()
        return True

    async def _read(self) -> None:
        assert self._child.stdout is not None
        while data := await self._child.stdout.read(KEPT_BYTES):
            self._output += data
            del self._output[:-KEPT_BYTES]


class Processes:
    """The processes of a scenario.

    :param addresses: Of the cluster, as ``bootstrap`` and ``control``.
    :param token: What the control API needs; None where it needs none.
    :param directory: Where the scenario's file is.
    """

    def __init__(self, addresses: Mapping[str, str], token: str | None, directory: Path) -> None:
        self._addresses = addresses
        self._token = token
        self._directory = directory
        self._started: list[UserProcess] = []

    async def start(self, body: RunBody) -> UserProcess:
        """Start a process.

        :raises CannotRun: When there is no such program or directory.
        """
        words = [self._filled(word) for word in body.words]
        directory = self._directory / body.directory
        if not directory.is_dir():
            raise CannotRun(f"there is no directory {directory}")
        try:
            child = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=directory,
                env=self._environment(body.env),
                start_new_session=True,  # a group of its own, which is killed as one
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRun(f"{words[0]} cannot be run: {why}") from None
        started = UserProcess(child)
        self._started.append(started)
        return started

    async def close(self) -> None:
        """Kill what still runs."""
        for process in self._started:
            await process.close()

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """That of this process, with what leads to the cluster."""
        own = {f"FENCEPOST_{name.upper()}": address for name, address in self._addresses.items()}
        if self._token is not None:
            own["FENCEPOST_CONTROL_TOKEN"] = self._token
        # A Python process that prints to a pipe keeps its lines for long otherwise.
        unbuffered = {"PYTHONUNBUFFERED": "1"}
        filled = {name: self._filled(text) for name, text in given.items()}
        return {**unbuffered, **os.environ, **own, **filled}

    def _filled(self, text: str) -> str:
        """A text with the addresses in their places."""
        for name, address in self._addresses.items():
            text = text.replace(f"{{{name}}}", address)
        return text
