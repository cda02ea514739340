"""A log's producer snapshots: one for each segment but perhaps the first, and one at its end.

A log that was closed needs the one at its end only. All others serve to know the producers again
after records were cut off, and a missing one is found again from the batches before it.
"""

from collections.abc import Iterable
from pathlib import PurePath

from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    parse_segment_file_name,
    segment_file_name,
)
from fencepost.storage.formats.producer_snapshot import (
    CorruptSnapshot,
    decode_snapshot,
    encode_snapshot,
)
from fencepost.storage.log.producer_state import ProducerStateEntry


class ProducerSnapshots:
    """The ``.snapshot`` files in a log's directory."""

    __slots__ = ("_directory", "_files")

    def __init__(self, files: FileSystem, directory: PurePath) -> None:
        self._files = files
        self._directory = directory

    def path(self, offset: int) -> PurePath:
        """Where the producers before `offset` are."""
        return self._directory / segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)

    def write(
        self, offset: int, producers: Iterable[ProducerStateEntry], *, sync: bool = False
    ) -> None:
        """Keep the producers as they are before `offset`.

        What a crash of the machine leaves of it need not be whole; it is found again.
        """
        self._files.write_atomic(self.path(offset), encode_snapshot(producers), sync=sync)

    def read(self, offset: int) -> tuple[ProducerStateEntry, ...] | None:
        """The producers before `offset`; None where no file says them."""
        try:
            return decode_snapshot(self._files.read(self.path(offset)))
        except (FileNotFoundError, CorruptSnapshot):
            return None

    def remove(self, offset: int) -> None:
        """Lose a snapshot; it may not be there."""
        path = self.path(offset)
        if self._files.exists(path):
            self._files.remove(path)

    def keep_only(self, offsets: Iterable[int]) -> None:
        """Lose all snapshots but those at these offsets."""
        wanted = frozenset(offsets)
        for name in self._files.names(self._directory):
            file = parse_segment_file_name(name)
            if (
                file is not None
                and file.kind is FileKind.PRODUCER_SNAPSHOT
                and file.state is FileState.LIVE
                and file.offset not in wanted
            ):
                self._files.remove(self._directory / name)
