"""The files of ``serve --trace``, of one run or of several.

The names of a run's files begin alike, and sort in the order in which they were written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"(trace-.+)-(\d{4,})\.jsonl")
_FILE_BITS: Final = 32
_RUN_BITS: Final = 40


class NoTrace(OSError):
    """A directory without a trace, or a file that is none; the message is one readable line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSlice:
    """One file, as far as it was written when it was found."""

    path: str
    size: int
    """Bytes. What comes later is not read: it would be newer than what else is looked at."""
    file: int
    """Its place among all files."""
    run: int
    """Its run's place among all runs."""

    def number(self, number: int) -> int:
        """A number that is no other run's."""
        return self.run << _RUN_BITS | number

    def line(self, line: int) -> int:
        """The place of a line among those of all files.

        :param line: In this file, from 1.
        """
        return self.file << _FILE_BITS | line


def number_in_run(number: int) -> int:
    """The number as the trace has it."""
    return number & ((1 << _RUN_BITS) - 1)


def run_of(number: int) -> int:
    """Which run a number is of, from 0."""
    return number >> _RUN_BITS


def find_traces(directory: str | Path) -> tuple[TraceSlice, ...]:
    """The files of all runs, in order.

    :raises NoTrace: When there is none.
    """
    runs: dict[str, list[Path]] = {}
    try:
        for path in Path(directory).iterdir():
            if (match := _NAME.fullmatch(path.name)) is not None:
                runs.setdefault(match[1], []).append(path)
        found = tuple(_slices(runs))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NoTrace(f"can't read a trace in {directory}: {reason}") from error
    if not found:
        raise NoTrace(f"there is no trace in {directory}: serve --trace writes trace-*.jsonl")
    return found


def _slices(runs: dict[str, list[Path]]) -> Iterator[TraceSlice]:
    file = 0
    for run, name in enumerate(sorted(runs, key=lambda name: _begun(name, runs[name]))):
        for path in sorted(runs[name], key=_index):
            yield TraceSlice(path=str(path), size=path.stat().st_size, file=file, run=run)
            file += 1


def _begun(name: str, paths: list[Path]) -> tuple[str, int]:
    """By the time in the name; of two in one second the one that ended first."""
    time = name.rsplit("-", 1)[0]
    return time, max(path.stat().st_mtime_ns for path in paths)


def _index(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None, "only such files are found"
    return int(match[2])
