"""A segment's aborted transactions in memory and in their file, which grows with each.

The file is read on first use. One that is missing or broken is rebuilt from the batches of the
segment: an index that says too little would let aborted records be read as committed ones.
"""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from zlib import crc32

from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.formats.indexes import (
    CorruptIndex,
    decode_transactions,
    encode_transactions,
)
from fencepost.storage.log.transactions import AbortedTransaction

Rebuild = Callable[[], list[AbortedTransaction]]
"""Finds a segment's aborted transactions in its batches."""


class TransactionIndexFile:
    """The aborted transactions of one segment.

    :param path: Where the file is now, or would be.
    :param checksums: CRC-32 of files as they were written last, by name: see `LogDirectory`.
    :param rebuilt: Gets the name of the file where it is rebuilt.
    """

    __slots__ = ("_checksums", "_entries", "_files", "_path", "_rebuilt")

    def __init__(
        self,
        files: FileSystem,
        path: Callable[[], PurePath],
        checksums: dict[str, int],
        rebuilt: list[str],
    ) -> None:
        self._files = files
        self._path = path
        self._checksums = checksums
        self._rebuilt = rebuilt
        self._entries: list[AbortedTransaction] | None = None

    def entries(self, base_offset: int, rebuild: Rebuild) -> Sequence[AbortedTransaction]:
        """The transactions in order of their markers.

        :param base_offset: The segment's.
        """
        if self._entries is None:
            self._entries = self._read(base_offset, rebuild)
        return self._entries

    def append(self, transaction: AbortedTransaction) -> None:
        """Add a transaction; `entries` or `clear` was called before."""
        assert self._entries is not None
        path, data = self._path(), encode_transactions([transaction])
        file = self._files.open(path)
        try:
            file.append([data])
        finally:
            file.close()
        self._checksums[path.name] = crc32(data, self._checksums.get(path.name, 0))
        self._entries.append(transaction)

    def truncate(self, offset: int) -> None:
        """Drop the transactions whose markers are at or behind `offset`, durably.

        `entries` was called before.
        """
        assert self._entries is not None
        kept = [each for each in self._entries if each.last_offset < offset]
        if len(kept) < len(self._entries):
            self._write(kept, sync=True)

    def clear(self) -> None:
        """Drop all, and the file that may be there."""
        self._write([], sync=False)

    def _read(self, base_offset: int, rebuild: Rebuild) -> list[AbortedTransaction]:
        path = self._path()
        known = self._checksums.get(path.name)
        try:
            if known is None and not self._files.exists(path):
                return []
            data = self._files.read(path)
            checksum = crc32(data)
            if known in (None, checksum):
                entries = decode_transactions(data, base_offset)
                self._checksums[path.name] = checksum
                return entries
        except (CorruptIndex, FileNotFoundError):
            pass  # as where it is another file than was written
        entries = rebuild()
        self._write(entries, sync=False)
        self._rebuilt.append(path.name)
        return entries

    def _write(self, entries: list[AbortedTransaction], *, sync: bool) -> None:
        path, data = self._path(), encode_transactions(entries)
        if entries:
            self._files.write_atomic(path, data, sync=sync)
            self._checksums[path.name] = crc32(data)
        else:
            self._checksums.pop(path.name, None)
            if self._files.exists(path):
                self._files.remove(path)
        self._entries = entries
