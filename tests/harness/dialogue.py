"""A client program in dialogue with the test: it waits for a line, does it, and answers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Final, Self

WAIT_S: Final = 60.0


class Dialogue:
    """A running program, its output read line by line. Leaving it kills what is still running.

    :param log: The file that its standard error goes to; shown when something goes wrong.
    """

    def __init__(
        self, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None
    ) -> None:
        self._name = Path(command[-1]).name if len(command) == 1 else " ".join(command)[:300]
        self._log = log
        with log.open("wb") as stderr:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                bufsize=1,
                env=env,
            )
        self._lines: Queue[str | None] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._child.kill()
        self._child.wait()
        self._reader.join()
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdout.close()
        with suppress(BrokenPipeError):  # a line that it ended without reading
            self._child.stdin.close()

    def say(self, line: str = "") -> None:
        """Give it a line of input."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()

    def ask(self, line: str, timeout_s: float = WAIT_S) -> str:
        """Give it a line of input; the line that it answers."""
        self.say(line)
        return self.hear_until(lambda _: True, timeout_s)[-1]

    def hear_until(self, last: Callable[[str], bool] | str, timeout_s: float = WAIT_S) -> list[str]:
        """The next lines, up to and with the one that is meant.

        :raises AssertionError: When the program ends before, or does not come to it in time.
        """
        deadline, heard = time.monotonic() + timeout_s, list[str]()
        while True:
            line = self._next(deadline)
            assert line is not None, self._problem(f"ended before {last}", heard)
            heard.append(line)
            if line == last if isinstance(last, str) else last(line):
                return heard

    def pending(self) -> list[str]:
        """The lines that were said and not heard yet."""
        lines: list[str] = []
        while not self._lines.empty():
            line = self._lines.get()
            assert line is not None, self._problem("ended", lines)
            lines.append(line)
        return lines

    def kill(self) -> None:
        """End it in the middle of what it does, as ``kill -9`` does."""
        self._child.kill()
        self._child.wait()

    def terminate(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        self._child.terminate()

    def end(self, timeout_s: float = WAIT_S, *, code: int | None = 0) -> list[str]:
        """Close its input and wait for its end; the lines until then.

        :raises AssertionError: When it does not end in time, or with another exit code.
        """
        assert self._child.stdin is not None
        self._child.stdin.close()
        deadline, heard = time.monotonic() + timeout_s, list[str]()
        while (line := self._next(deadline)) is not None:
            heard.append(line)
        ended = self._child.wait(timeout_s)
        assert code is None or ended == code, self._problem(f"ended with {ended}", heard)
        return heard

    def _next(self, deadline: float) -> str | None:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise AssertionError(self._problem("says nothing more", [])) from None
        if line is None:  # it is found again by a later call
            self._lines.put(None)
        return line

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _problem(self, what: str, heard: Sequence[str]) -> str:
        said = "\n".join(heard[-20:])
        return f"{self._name} {what}\n{said}\n{self._log.read_text(errors='replace')[-5000:]}"
