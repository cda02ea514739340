"""Whether the files of a segment have changed since they were read, told without reading them.

A stamp is of all files of a segment, or of all its objects in the tier: a broker writes the log,
its indexes and its producer snapshots, and each of them is looked at when a segment is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import Final, Self, TypeAlias

FileMark: TypeAlias = tuple[str, int, object]
"""The name of a file, its size in bytes, and its time of modification or its ETag."""
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentStamp:
    """What the files of a segment are like from outside."""

    digest: str
    """Of their names, their sizes, and their times of modification or ETags; in hexadecimal."""
    files: int
    """How many there are."""
    bytes: int
    """In all of them."""

    @classmethod
    def of(cls, marks: Iterable[FileMark]) -> Self:
        """The stamp of the files that there are, in any order."""
        ordered = sorted(marks, key=itemgetter(0))
        text = "\n".join(f"{name} {size} {mark}" for name, size, mark in ordered)
        return cls(
            digest=blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest(),
            files=len(ordered),
            bytes=sum(size for _, size, _ in ordered),
        )


def stamp_of_files(paths: Iterable[str | None]) -> SegmentStamp:
    """The stamp of files as they are now.

    Their folder is no part of it: a copy that keeps times of modification has the same stamp.

    :param paths: Those that are not there, or can't be looked at, count for nothing: the task that
        reads them tells of it.
    """
    marks: list[FileMark] = []
    for each in paths:
        if each is None:
            continue
        path = Path(each)
        try:
            found = path.stat()
        except OSError:
            continue
        marks.append((path.name, found.st_size, found.st_mtime_ns))
    return SegmentStamp.of(marks)
