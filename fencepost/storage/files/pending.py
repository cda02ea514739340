"""Closed segments on their way to being durable, which another thread sees to.

To sync a gigabyte takes seconds, in which whoever waits for it does nothing else. What is synced
here was opened before, so that nobody minds when it is renamed or removed meanwhile.
"""

from collections.abc import Sequence
from pathlib import PurePath

from fencepost.storage.epochs import EpochEntry
from fencepost.storage.files.io import File, FileSystem
from fencepost.storage.segment import LogSegment


class PendingSync:
    """What `FileLog.closed_segments_to_sync` gives, and `FileLog.synced` takes back.

    :ivar end: All before this offset (exclusive) is durable after `run`.
    :ivar epochs: The epochs that the checkpoint says, which is synced with it.
    :ivar truncations: How often the log had been truncated.
    """

    __slots__ = ("_directory", "_files", "_opened", "end", "epochs", "segments", "truncations")

    def __init__(
        self,
        files: FileSystem,
        directory: PurePath,
        opened: Sequence[File],
        *,
        segments: Sequence[LogSegment],
        end: int,
        epochs: tuple[EpochEntry, ...],
        truncations: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._opened = opened
        self.segments = segments
        self.end = end
        self.epochs = epochs
        self.truncations = truncations

    def run(self) -> None:
        """Sync; on any thread, once.

        :raises OSError: And then nobody knows what is durable.
        """
        try:
            for file in self._opened:
                file.sync()
            self._files.sync_dir(self._directory)
            self._files.sync_dir(self._directory.parent)
        finally:
            for file in self._opened:
                file.close()
