"""The files of a trace: ``NAME-0001.jsonl`` and so on, each of some size."""

from pathlib import Path
from typing import BinaryIO, Final

MAX_FILE_BYTES: Final = 64 << 20
"""A file ends with the line that takes it there."""


class Parts:
    """Files that are written one after the other.

    :param name: Of all of them.
    :param keep: How many of them are kept, the newest; None: all.
    :raises OSError: (as every method) When a file can't be made or written.
    """

    def __init__(self, directory: Path, name: str, *, keep: int | None = None) -> None:
        self._directory = directory
        self._name = name
        self._keep = keep
        self._paths: list[Path] = []
        self._written = 0
        """Bytes in the present file."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = self._next_file()

    def write(self, line: bytes) -> None:
        """Add a line, which is given without its end."""
        self._file.write(line + b"\n")
        self._written += len(line) + 1
        if self._written >= MAX_FILE_BYTES:
            self._file.close()
            self._file = self._next_file()

    def flush(self) -> None:
        """Let others read what was written so far."""
        self._file.flush()

    def close(self) -> None:
        """Write all that is left."""
        self._file.close()

    def _next_file(self) -> BinaryIO:
        path = self._directory / f"{self._name}-{len(self._paths) + 1:04}.jsonl"
        file = path.open("xb")
        self._paths.append(path)
        self._written = 0
        if self._keep is not None and len(self._paths) > self._keep:
            self._paths[-self._keep - 1].unlink(missing_ok=True)
        return file
