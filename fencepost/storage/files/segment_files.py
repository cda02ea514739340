"""The files of one segment: their names, and how they come and go."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final
from weakref import finalize

from fencepost.protocol.buffers import Buffer
from fencepost.storage.files.home import Home
from fencepost.storage.files.indexes import SegmentIndexes
from fencepost.storage.files.io import File
from fencepost.storage.files.log_file import LogFile
from fencepost.storage.formats.names import FileKind, FileState
from fencepost.storage.formats.offset_index import OffsetIndex
from fencepost.storage.formats.time_index import TimeIndex

_COPY_BYTES: Final = 1 << 20
_INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


class SegmentFiles:
    """A ``.log`` and what lies beside it. All but the ``.log`` need not be there.

    :ivar log: The ``.log``; its owner reads and writes it.
    :ivar state: Which suffix they have.
    :param size: Bytes of the ``.log``.
    """

    __slots__ = ("_base_offset", "_home", "log", "state")

    def __init__(self, home: Home, base_offset: int, state: FileState, *, size: int) -> None:
        self._home = home
        self._base_offset = base_offset
        self.state = state
        path = home.path(base_offset, FileKind.LOG, state)
        self.log = LogFile(home.files, path, home.shared.open_files, size=size)

    @property
    def name(self) -> str:
        """Name of the ``.log``."""
        return self.log.path.name

    @property
    def paths(self) -> list[PurePath]:
        """Of all that `sync` makes durable, the ``.log`` first."""
        kinds = (FileKind.LOG, *_INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT)
        return [self._path(kind) for kind in kinds]

    @property
    def index_names(self) -> list[str]:
        """Names of the indexes' files."""
        return [self._path(kind).name for kind in _INDEX_KINDS]

    def read_indexes(self) -> SegmentIndexes:
        """The indexes as they are written.

        :raises FileNotFoundError: Where one is not there.
        :raises CorruptIndex: When one is broken.
        """
        files, base = self._home.files, self._base_offset
        return SegmentIndexes(
            OffsetIndex.decode(files.read(self._path(FileKind.OFFSET_INDEX)), base),
            TimeIndex.decode(files.read(self._path(FileKind.TIME_INDEX)), base),
        )

    def write_indexes(self, indexes: SegmentIndexes, *, modified_ms: int) -> None:
        """Write the indexes, not durably.

        :param modified_ms: When the ``.log`` is to have been modified.
        """
        files = self._home.files
        files.write_aside(self._path(FileKind.OFFSET_INDEX), indexes.offsets.encode(), sync=False)
        files.write_aside(self._path(FileKind.TIME_INDEX), indexes.times.encode(), sync=False)
        files.set_modified_ms(self.log.path, modified_ms)

    def sync(self, *, log_only: bool) -> None:
        """Make what is written durable, but not the files' names."""
        self.log.sync()
        if not log_only:
            for path in self.paths[1:]:
                self._sync_file(path)

    def _sync_file(self, path: PurePath) -> None:
        if self._home.files.exists(path):
            file = self._home.files.open(path)
            try:
                file.sync()
            finally:
                file.close()

    def rename(self, state: FileState) -> None:
        """Take another suffix, the ``.log`` last: it is what counts when a crash leaves some."""
        files = self._home.files
        for kind in _INDEX_KINDS:
            old = self._path(kind)
            if files.exists(old):
                files.rename(old, self._home.path(self._base_offset, kind, state))
        self.log.rename(self._home.path(self._base_offset, FileKind.LOG, state))
        self.state = state

    def remove(self, *, with_snapshot: bool) -> None:
        """Remove them, the ``.log`` first: indexes without one are nothing."""
        self._home.files.remove(self.log.path)
        paths = [self._path(kind) for kind in (*_INDEX_KINDS, FileKind.TRANSACTION_INDEX)]
        if with_snapshot:
            paths.append(self._home.path(self._base_offset, FileKind.PRODUCER_SNAPSHOT))
        self._remove(paths)

    def remove_indexes(self) -> None:
        """Remove the files of the indexes, if there are any."""
        self._remove([self._path(kind) for kind in _INDEX_KINDS])

    def _remove(self, paths: Iterable[PurePath]) -> None:
        files = self._home.files
        for path in paths:
            if files.exists(path):
                files.remove(path)

    def copy(self) -> "SegmentBytes":
        """What is in the ``.log`` now."""
        return SegmentBytes(self._home.files.open(self.log.path), self.log.size)

    def _path(self, kind: FileKind) -> PurePath:
        return self._home.path(self._base_offset, kind, self.state)


class SegmentBytes:
    """What `LogSegment.copy` gives: the segment may be gone meanwhile, its file stays open."""

    __slots__ = ("__weakref__", "_file", "_size")

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self._size = size
        finalize(self, file.close)

    def __iter__(self) -> Iterator[Buffer]:
        for start in range(0, self._size, _COPY_BYTES):
            yield self._file.read(start, min(start + _COPY_BYTES, self._size))
