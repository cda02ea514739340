"""The files of a log's segments: their names, and how they are created, renamed and removed.

The segments of one log share a `LogDirectory`. A `LogFile` is opened when it is used. It is read
by pread, not from a memory map. A map saves a copy: 1 MB takes 0.15 ms to read and 0.03 ms to look
at in a map, and on its way through a socket 0.3 ms against 0.2. But a view of a map, as the journal
and slow sockets hold one, ends the process when the file is cut under it or the disk fails.

There is a producer snapshot for each segment but perhaps the first, and one at the log end. To open
a log that was closed only the one at its end is read. The others restore the producers after a
truncation, and a missing one is rebuilt from the batches before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Final
from weakref import finalize
from zlib import crc32

from msgspec import Struct, field

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import HEADER_SIZE
from fencepost.storage.files.file_system import DamagedSegment, File, FileSystem, lacks_descriptors
from fencepost.storage.files.index_lookup import SegmentIndexes
from fencepost.storage.files.inventory import head_checksum
from fencepost.storage.files.process_limits import BoundedCache, ProcessLimits
from fencepost.storage.formats.checkpoints import CorruptSnapshot, decode_snapshot, encode_snapshot
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    parse_segment_file_name,
    segment_file_name,
)
from fencepost.storage.formats.indexes import CorruptIndex, OffsetIndex, TimeIndex
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.producer_state import ProducerStateEntry


class ProducerSnapshots:
    """The ``.snapshot`` files in a log's directory."""

    __slots__ = ("_checksums", "_directory", "_files")

    def __init__(
        self, files: FileSystem, directory: PurePath, checksums: dict[str, int] | None = None
    ) -> None:
        """:param checksums: See `LogDirectory`."""
        self._files = files
        self._directory = directory
        self._checksums = {} if checksums is None else checksums

    def path(self, offset: int) -> PurePath:
        """Where the producers before `offset` are."""
        return self._directory / segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)

    def write(
        self, offset: int, producers: Iterable[ProducerStateEntry], *, sync: bool = False
    ) -> None:
        """Keep the producers as they are before `offset`.

        What a crash of the machine leaves of it need not be whole; it is found again.
        """
        path, data = self.path(offset), encode_snapshot(producers)
        self._files.write_atomic(path, data, sync=sync)
        self._checksums[path.name] = crc32(data)

    def read(self, offset: int) -> tuple[ProducerStateEntry, ...] | None:
        """The producers before `offset`; None where no file says them."""
        path = self.path(offset)
        try:
            data = self._files.read(path)
            return decode_snapshot(data) if is_as_written(self._checksums, path, data) else None
        except (FileNotFoundError, CorruptSnapshot):
            return None

    def remove(self, offset: int) -> None:
        """Lose a snapshot; it may not be there."""
        path = self.path(offset)
        self._checksums.pop(path.name, None)
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
                self._checksums.pop(name, None)
                self._files.remove(self._directory / name)


def is_as_written(checksums: Mapping[str, int], path: PurePath, data: Buffer) -> bool:
    """Whether a file's bytes are those that were written last, as far as that is known.

    :param checksums: See `LogDirectory`.
    """
    known = checksums.get(path.name)
    return known is None or known == crc32(data)


BeforeLoss = Callable[[Sequence[int]], None]
"""Called with the base offsets of segments that are about to be removed, replaced or cut."""


def _ignore_loss(_bases: Sequence[int]) -> None:
    """The default: there is no inventory."""


def _ignore_new_segment() -> None:
    """The default: there is no inventory."""


class LogDirectory(Struct, kw_only=True):
    """Where the segments of one log are, and what they share.

    :ivar config: As of the last change; a segment takes from it when it is made.
    :ivar rebuilt: Names of files that were rebuilt because they were missing or broken.
    :ivar producers_at: Finds the producers before the segment of a base offset in their file.
    :ivar checksums: CRC-32 of indexes, producer snapshots and key offsets as they were written
        last, by name. A file that is not so is rebuilt: it may be an old copy, or of another log.
    :ivar before_loss: Called before segments are lost.
    :ivar on_new_segment: Called when a segment was begun, and when it has its first batch.
    """

    files: FileSystem
    directory: PurePath
    shared: ProcessLimits
    config: LogConfig
    rebuilt: list[str]
    producers_at: Callable[[int], tuple[ProducerStateEntry, ...]]
    checksums: dict[str, int] = field(default_factory=dict)
    before_loss: BeforeLoss = _ignore_loss
    on_new_segment: Callable[[], None] = _ignore_new_segment

    def rename(self, name: str) -> None:
        """Give the directory another name."""
        target = self.directory.with_name(name)
        self.files.rename(self.directory, target)
        self.directory = target

    def dismantle(self) -> Iterator[None]:
        """Remove the directory, a file before each step."""
        for name in self.files.names(self.directory):
            self.files.remove(self.directory / name)
            yield
        self.files.remove_tree(self.directory)

    def path(self, offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> PurePath:
        """Path of a segment's file."""
        return self.directory / segment_file_name(offset, kind, state)


class LogFile:
    """A file that need not be open, so that there can be more logs than open files.

    :ivar path: Where it is now.
    :ivar size: Bytes in it.
    :ivar used: For the bound: whether it was used since its last turn.
    """

    __slots__ = ("_bound", "_file", "_files", "path", "size", "used")

    def __init__(
        self, files: FileSystem, path: PurePath, bound: BoundedCache, *, size: int
    ) -> None:
        self._files = files
        self._bound = bound
        self._file: File | None = None
        self.path = path
        self.size = size
        self.used = False

    def create(self) -> None:
        """Make the file, empty."""
        file = self._open()
        if file.size:  # one of the same name, from before a failure
            file.truncate(0)
        self.size = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write at the end: all or nothing."""
        file = self._file or self._open()
        file.append(buffers)
        self.size = file.size
        self.used = True

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`."""
        self.used = True
        return (self._file or self._open()).read(start, end)

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes, durably: what was cut must not come back."""
        file = self._file or self._open()
        file.truncate(size)
        self.size = size
        file.sync()

    def sync(self) -> None:
        """Make what was written durable."""
        (self._file or self._open()).sync()

    def rename(self, path: PurePath) -> None:
        """Give it another name."""
        self._files.rename(self.path, path)
        self.path = path

    def release(self) -> None:
        """Close it; it is opened again when it is used."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def close(self) -> None:
        """Close it, for good."""
        self._bound.remove(self)
        self.release()

    def _open(self) -> File:
        try:
            file = self._files.open(self.path)
        except OSError as error:
            if not lacks_descriptors(error) or not self._bound.evict_half():
                raise
            file = self._files.open(self.path)
        self._file = file
        self._bound.add(self, 1)
        return file


_COPY_BYTES: Final = 1 << 20
_INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
_ALL_INDEX_KINDS: Final = (*_INDEX_KINDS, FileKind.TRANSACTION_INDEX)


class SegmentFiles:
    """A ``.log`` and what lies beside it. All but the ``.log`` need not be there.

    :ivar log: The ``.log``; its owner reads and writes it.
    :ivar state: Which suffix they have.
    :ivar head: The checksum of the first batch's header; None where that is not known.
    :param size: Bytes of the ``.log``.
    """

    __slots__ = ("_base_offset", "_home", "_is_head_checked", "head", "log", "state")

    def __init__(
        self, home: LogDirectory, base_offset: int, state: FileState, *, size: int, head: int | None
    ) -> None:
        self.head = head
        self._is_head_checked = head is None
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
        kinds = (FileKind.LOG, *_ALL_INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT)
        return [self.path(kind) for kind in kinds]

    @property
    def index_names(self) -> list[str]:
        """Names of the files of the offset and the time index."""
        return [self.path(kind).name for kind in _INDEX_KINDS]

    def check_head(self) -> None:
        """See that the ``.log`` begins with the batch that it had before the log was opened.

        It is read once, when the segment is first used.

        :raises DamagedSegment: When it begins with another one: it is not this segment's.
        """
        if self._is_head_checked or not self.log.size:
            return
        if self.head != head_checksum(self.log.read(0, min(self.log.size, HEADER_SIZE))):
            raise DamagedSegment(0, f"{self.name} begins with another batch than it did")
        self._is_head_checked = True

    def read_indexes(self) -> SegmentIndexes:
        """The indexes as they are written.

        :raises FileNotFoundError: Where one is not there.
        :raises CorruptIndex: When one is broken.
        """
        base = self._base_offset
        return SegmentIndexes(
            OffsetIndex.decode(self._read(FileKind.OFFSET_INDEX), base),
            TimeIndex.decode(self._read(FileKind.TIME_INDEX), base),
        )

    def _read(self, kind: FileKind) -> bytes:
        path = self.path(kind)
        data = self._home.files.read(path)
        if not is_as_written(self._home.checksums, path, data):
            raise CorruptIndex(f"{path.name} is not as it was written")
        return data

    def write_indexes(self, indexes: SegmentIndexes, *, modified_ms: int) -> None:
        """Write the indexes, not durably.

        :param modified_ms: When the ``.log`` is to have been modified.
        """
        files = self._home.files
        self._write(FileKind.OFFSET_INDEX, indexes.offsets.encode())
        self._write(FileKind.TIME_INDEX, indexes.times.encode())
        files.set_modified_ms(self.log.path, modified_ms)

    def _write(self, kind: FileKind, data: bytes) -> None:
        path = self.path(kind)
        self._home.files.write_atomic(path, data, sync=False)
        self._home.checksums[path.name] = crc32(data)

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
        for kind in _ALL_INDEX_KINDS:
            old, new = self.path(kind), self._home.path(self._base_offset, kind, state)
            if files.exists(old):
                files.rename(old, new)
            known = self._home.checksums.pop(old.name, None)
            if known is not None:
                self._home.checksums[new.name] = known
        self.log.rename(self._home.path(self._base_offset, FileKind.LOG, state))
        self.state = state

    def remove(self, *, with_snapshot: bool) -> None:
        """Remove them, the ``.log`` first: indexes without one are nothing.

        With ``file.delete.delay.ms`` they have the suffix ``.deleted`` for so long.
        """
        paths = [self.path(kind) for kind in _ALL_INDEX_KINDS]
        if with_snapshot:
            paths.append(self._home.path(self._base_offset, FileKind.PRODUCER_SNAPSHOT))
        delay_ms = self._home.config.file_delete_delay_ms
        if delay_ms and self.state is FileState.LIVE:
            self._remove_later(paths, delay_ms)
            return
        self._home.files.remove(self.log.path)
        self._remove(paths)

    def _remove_later(self, others: Iterable[PurePath], delay_ms: int) -> None:
        files, renamed = self._home.files, []
        for path in (self.log.path, *others):
            self._home.checksums.pop(path.name, None)
            if path == self.log.path or files.exists(path):
                renamed.append(path.with_name(path.name + FileState.DELETED.value))
                files.rename(path, renamed[-1])

        def remove() -> None:
            with suppress(OSError):  # what can't be removed stays, as after a crash
                for path in renamed:
                    if files.exists(path):
                        files.remove(path)

        self._home.shared.call_later(delay_ms, remove)

    def remove_indexes(self) -> None:
        """Remove the files of the offset and the time index, if there are any."""
        self._remove([self.path(kind) for kind in _INDEX_KINDS])

    def _remove(self, paths: Iterable[PurePath]) -> None:
        files = self._home.files
        for path in paths:
            self._home.checksums.pop(path.name, None)
            if files.exists(path):
                files.remove(path)

    def copy(self) -> "SegmentBytes":
        """What is in the ``.log`` now."""
        return SegmentBytes(self._home.files.open(self.log.path), self.log.size)

    def path(self, kind: FileKind) -> PurePath:
        """Where the file of a kind is now, or would be."""
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
