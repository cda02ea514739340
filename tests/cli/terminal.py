"""A terminal of any size, for a command that runs in it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from typing import Final

PATIENCE_S: Final = 60.0
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


_FOREIGN: Final = ("NO_COLOR", "COLUMNS", "LINES")
"""Variables that speak of the terminal that the tests themselves have."""


class Terminal:
    """A command on a terminal, and what it has written so far, as text with its escapes."""

    def __init__(
        self, arguments: Sequence[str], *, columns: int, rows: int, **environment: str
    ) -> None:
        self._side, side = pty.openpty()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(side, termios.TIOCSWINSZ, size)
        kept = {name: each for name, each in os.environ.items() if name not in _FOREIGN}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fencepost", *arguments],
            stdin=side,
            stdout=side,
            stderr=side,
            env={**kept, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(side)
        self.written = ""
        # A terminal hands over so many bytes at a time, maybe not the whole of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    @property
    def plain(self) -> str:
        """What was written without the escapes."""
        return without_escapes(self.written)

    def read(self) -> bool:
        """Wait for more; False at the end."""
        ready, _, _ = select.select([self._side], [], [], PATIENCE_S)
        assert ready, f"nothing more came:\n{self.plain}"
        try:
            data = os.read(self._side, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.written += self._decoder.decode(data)
        return bool(data)

    def wait_for(self, text: str, since: int = 0) -> int:
        """Until a text is there; the length of all that was written by then."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in without_escapes(self.written[since:]):
            assert time.monotonic() < deadline, f"no {text!r} in\n{self.plain}"
            assert self.read(), f"it ended without {text!r}:\n{self.plain}"
        return len(self.written)

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        os.killpg(self.process.pid, 2)

    def finish(self) -> int:
        """Read to the end; the exit code."""
        while self.read():
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._side)


def without_escapes(text: str) -> str:
    """What one reads."""
    return _ESCAPE.sub("", text)


@contextlib.contextmanager
def terminal(
    line: str, *, columns: int = 100, rows: int = 40, **environment: str
) -> Iterator[Terminal]:
    """Run a command in a terminal."""
    made = Terminal(line.split(), columns=columns, rows=rows, **environment)
    try:
        yield made
    finally:
        made.close()


def shown(line: str, *, columns: int = 100, **environment: str) -> str:
    """What a command writes to a terminal before it ends with 0."""
    with terminal(line, columns=columns, rows=40, **environment) as made:
        assert made.finish() == 0
        return made.written.replace("\r\n", "\n")
