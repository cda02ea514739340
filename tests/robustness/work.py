"""Counts the work of a call: steps, comparisons and bytes, never time.

- A step is a line of fencepost, or of a reader or writer that it compiled, that was run, or a call
  of any Python function.
- The result of an operator that is stored in a local variable is a copy: its length counts, an
  element or eight bytes for a step. So a tuple that grows at each turn of a loop shows, though
  each turn is one line.
- Strings of a request are made to count what compares and hashes them: so a search through a list
  shows, though it is one call.

A count is the same at each run and on each machine.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from msgspec import Struct, structs

import fencepost

Value: TypeAlias = Any

_ROOT: Final = str(Path(fencepost.__file__).parent)
_TRACED: Final = (_ROOT, "<reader", "<writer", "<string>")
_BYTES_A_STEP: Final = 8


class CountedText(str):
    """Counts its comparisons and hashes."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        CountedText.comparisons += 1
        return str.__hash__(self)


def counted_texts(message: Value) -> Value:
    """A message, its strings replaced by such as count."""
    if type(message) is str:
        return CountedText(message)
    if type(message) is tuple:
        return tuple(map(counted_texts, message))
    if isinstance(message, Struct):
        values = structs.asdict(message)
        return type(message)(**{name: counted_texts(value) for name, value in values.items()})
    return message


class Work:
    """What was counted so far."""

    def __init__(self) -> None:
        self.steps = 0
        self.copied = 0
        self.comparisons = 0

    @property
    def total(self) -> int:
        return self.steps + self.copied + self.comparisons


@cache
def _operator_lines(code: CodeType) -> Mapping[int, tuple[str, ...]]:
    """The variables that take the result of an operator, by line."""
    found: dict[int, tuple[str, ...]] = {}
    line, before = 0, ""
    for each in dis.get_instructions(code):
        line = each.starts_line or line
        if before == "BINARY_OP" and each.opname == "STORE_FAST":
            found[line] = (*found.get(line, ()), str(each.argval))
        before = each.opname
    return found


@contextmanager
def counting() -> Iterator[Work]:
    """Count what the body does."""
    work = Work()
    before = CountedText.comparisons
    former = sys.gettrace()
    last: dict[FrameType, int] = {}

    def on_line(frame: FrameType, event: str, _: object) -> Value:
        names = _operator_lines(frame.f_code).get(last.get(frame, 0), ())
        for name in names:
            value = frame.f_locals.get(name)
            if isinstance(value, tuple):
                work.copied += len(value)
            elif isinstance(value, bytes | str):
                work.copied += len(value) // _BYTES_A_STEP
        if event == "line":
            work.steps += 1
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return on_line

    def on_call(frame: FrameType, _event: str, _: object) -> Value:
        work.steps += 1
        if frame.f_code.co_filename.startswith(_TRACED):
            return on_line
        return None

    sys.settrace(on_call)
    try:
        yield work
    finally:
        sys.settrace(former)
        work.comparisons = CountedText.comparisons - before
