"""The output of a command as data: lines and tables of plain or styled text.

On a terminal `fencepost.cli.rich_output` draws them with colours. Elsewhere they are printed
plainly, a row a line and nothing cut off, and rich is not imported.

All that a command writes is written here or there. What a cell, a line or a message holds is shown
by `fencepost.protocol.shown_text`: names of clients are whatever they say they are.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec import Struct

from fencepost.protocol.shown_text import (
    escaped,
    escaped_json,
    escaped_lines,
    without_user_infos,
)

GOOD = "green"
BAD = "bold red"
ODD = "yellow"
QUIET = "dim"
STRONG = "bold"


class Text(Struct, frozen=True):
    """Text in a style."""

    text: str
    style: str = ""


Cell: TypeAlias = str | Text


class Line(Struct, frozen=True):
    """One line, of parts that follow each other."""

    parts: tuple[Cell, ...]


class Table(Struct, frozen=True):
    """Rows under headers; of each there are as many cells as headers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block: TypeAlias = Line | Table


def line(*parts: Cell) -> Line:
    """A line of these parts."""
    return Line(parts)


def plain(cell: Cell) -> str:
    """Without its style, in one line."""
    return escaped(cell if isinstance(cell, str) else cell.text)


def moment(time_ms: int) -> str:
    """Such as ``2026-01-31T12:00:00.000Z``; a time that no calendar has as its number.

    :param time_ms: Since 1970-01-01 UTC.
    """
    try:
        when = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # a producer may send any timestamp
        return str(time_ms)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_rich_terminal() -> bool:
    """Whether standard output is a terminal that can show more than lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def show(blocks: Iterable[Block]) -> None:
    """Print blocks, with colours on a terminal."""
    if is_rich_terminal():
        from fencepost.cli.rich_output import draw

        with interrupt_deferred():
            draw(blocks)
        return
    for block in blocks:
        for text in plain_lines(block):
            print(text)
    sys.stdout.flush()


def show_text(text: object) -> None:
    """Print a text; line breaks in it are ours."""
    print(escaped_lines(str(text)), flush=True)


def show_json(text: str) -> None:
    """Print JSON as it is; on a terminal without characters that would act on it."""
    if not sys.stdout.isatty():
        print(text, flush=True)
        return
    with interrupt_deferred():
        print(escaped_json(text), flush=True)


def complain(text: str) -> None:
    """Print an error, in one line on standard error. The users of URLs are left out."""
    print(escaped(without_user_infos(text)), file=sys.stderr, flush=True)


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Let Ctrl-C act at the end of this, so that a terminal gets no half of an escape sequence.

    The signal is blocked as well: it would cut a write short, and with PYTHONUNBUFFERED Python
    does not write the rest. A terminal that Ctrl-S has stopped goes on at Ctrl-C.

    :raises KeyboardInterrupt: In the end.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone handles signals
        yield
        return
    deferred = threading.Event()
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Another thread may receive it, and the main thread handles it then.
    handler = signal.signal(signal.SIGINT, lambda *_: deferred.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    if deferred.is_set():
        raise KeyboardInterrupt


def plain_lines(block: Block) -> Iterator[str]:
    """A block as plain lines."""
    if isinstance(block, Line):
        yield "".join(map(plain, block.parts))
        return
    rows = [block.headers, *(tuple(map(plain, row)) for row in block.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield _aligned(row, widths)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()
