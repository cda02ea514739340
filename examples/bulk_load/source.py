"""The file: its lines, which become records."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fencepost.client import NewRecord


class Source:
    """The lines of a file in their order, each once.

    They are read as they are taken, so that the file may be larger than memory. It must not change
    from one attempt to the next: that is how a line is known again. So all records have the file's
    time of modification as their timestamp.

    :param path: Of the file.
    :raises OSError: When it can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken = 0
        """Lines that were taken."""
        self._timestamp = path.stat().st_mtime_ns // 1_000_000
        self._lines = _lines(path)

    def take(self, count: int) -> list[NewRecord]:
        """The next lines as records; fewer where the file ends."""
        records = [
            NewRecord(value=line, timestamp=self._timestamp) for line in islice(self._lines, count)
        ]
        self.taken += len(records)
        return records


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield line.removesuffix(b"\n")
