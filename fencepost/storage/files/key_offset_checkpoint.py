"""The last offsets of a log's keys in a file, so that a start need not read the log for them.

The file covers the records before some offset. A missing file costs time only. But an existing one
is trusted, so it must not outlive the records that it covers. These rules ensure that:

- Before the log is cut below that offset, or a compaction swapped in that took the last record of a
  key, the file is removed, durably. A crash between the two leaves no file.
- A crash may also take the end of the log, or a part of it before the end, and leave the file. So a
  file that goes beyond the log end, or beyond a gap that may be such a loss, is removed when the
  log is opened, before anything is appended to it.
- A crash may take back a truncation that was not durable, and leave the file that was written after
  it: there are as many records again, but others. They are of another leader epoch, because two
  records with one offset and one epoch are the same, and so are all before them. The file has the
  epoch of the last record that it covers; one that is not the log's is removed when the log is
  opened. Logs without epochs (the old message format) have no file.
- A crash may set the log start back. Then the file does not know of records that are there again,
  and it is not used: it says which log start it was made with.

A checksum shows whether the file is whole, and another one, which the broker's inventory keeps,
that it is not that of another log.
"""

from pathlib import PurePath
from zlib import crc32

from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.files.segment_files import is_as_written
from fencepost.storage.formats.checkpoints import (
    HEAD_SIZE,
    CorruptKeyOffsets,
    KeyOffsetScope,
    decode_key_offsets,
    decode_scope,
    encode_key_offsets,
)
from fencepost.storage.formats.file_names import KEY_OFFSETS
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache


class KeyOffsetCheckpoint:
    """The file in a log's directory; there is none unless the log compares keys.

    :param directory: It is there.
    :param checksums: See `fencepost.storage.files.segment_files.LogDirectory`.
    """

    __slots__ = ("_checksums", "_directory", "_files", "_until")

    def __init__(
        self, files: FileSystem, directory: PurePath, checksums: dict[str, int] | None = None
    ) -> None:
        self._checksums = {} if checksums is None else checksums
        self._files = files
        self._directory = directory
        self._until: int | None = None  # end (exclusive) of a file that belongs to this log

    @property
    def _path(self) -> PurePath:
        return self._directory / KEY_OFFSETS

    def load(self, whole_until: int, epochs: LeaderEpochCache) -> None:
        """Take up the file that a former process left, or remove one that is not of this log.

        :param whole_until: Nothing of the log was lost before this offset (exclusive).
        """
        if not self._files.exists(self._path):
            return
        scope = self._scope()
        if (
            scope is not None
            and scope.until <= whole_until
            and scope.epoch == epochs.epoch_for_offset(scope.until - 1)
        ):
            self._until = scope.until
        else:
            self._remove()

    def _scope(self) -> KeyOffsetScope | None:
        file = self._files.open(self._path)
        try:
            return decode_scope(file.read(0, min(file.size, HEAD_SIZE)))
        except CorruptKeyOffsets:
            return None
        finally:
            file.close()

    def read(self, log_start_offset: int) -> LatestKeyOffsets | None:
        """What the file says; None where it says nothing that is of use."""
        if self._until is None:
            return None
        try:
            data = self._files.read(self._path)
            scope, offsets = decode_key_offsets(data)
            is_good = scope.until == self._until
            is_good = is_good and is_as_written(self._checksums, self._path, data)
        except (FileNotFoundError, CorruptKeyOffsets):
            is_good = False
        if not is_good:
            self._remove()
            return None
        if scope.log_start > log_start_offset:
            return None
        keys = LatestKeyOffsets(scope.until, offsets)
        keys.drop_before(log_start_offset)
        return keys

    def write(
        self,
        keys: LatestKeyOffsets,
        log_start_offset: int,
        epochs: LeaderEpochCache,
        *,
        sync: bool = False,
    ) -> None:
        """Keep them, unless the file knows as much.

        What a crash of the machine leaves of it need not be whole.
        """
        epoch = epochs.epoch_for_offset(keys.until - 1)
        if epoch is None or keys.until == self._until:
            return
        data = encode_key_offsets(KeyOffsetScope(keys.until, epoch, log_start_offset), keys.offsets)
        self._files.write_atomic(self._path, data, sync=sync)
        self._checksums[KEY_OFFSETS] = crc32(data)
        self._until = keys.until

    def write_if_grown(
        self, keys: LatestKeyOffsets, log_start_offset: int, epochs: LeaderEpochCache
    ) -> None:
        """Keep them if as many records came to them as there are keys.

        Writing all keys so costs each record its share, however often it is asked.
        """
        if self._until is None or keys.until - self._until >= len(keys):
            self.write(keys, log_start_offset, epochs)

    def discard_from(self, offset: int) -> None:
        """Lose the file, durably, if it speaks of records from `offset` on."""
        if self._until is not None and self._until > offset:
            self._remove()

    def _remove(self) -> None:
        self._until = None
        self._checksums.pop(KEY_OFFSETS, None)
        if self._files.exists(self._path):
            self._files.remove(self._path)
        self._files.sync_dir(self._directory)
