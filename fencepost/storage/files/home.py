"""What the segments of one log have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from fencepost.storage.config import LogConfig
from fencepost.storage.files.io import FileSystem
from fencepost.storage.files.shared import Shared
from fencepost.storage.formats.names import FileKind, FileState, segment_file_name
from fencepost.storage.producers import ProducerView


@dataclass(slots=True, kw_only=True)
class Home:
    """Where the segments of one log are, and what they share.

    :ivar config: As of the last change; a segment takes from it when it is made.
    :ivar rebuilt: Names of files that were rebuilt because they were missing or broken.
    :ivar producers_at: Finds the producers before the segment of a base offset in their file.
    """

    files: FileSystem
    directory: PurePath
    shared: Shared
    config: LogConfig
    rebuilt: list[str]
    producers_at: Callable[[int], tuple[ProducerView, ...]]

    def path(self, offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> PurePath:
        """Path of a segment's file."""
        return self.directory / segment_file_name(offset, kind, state)
