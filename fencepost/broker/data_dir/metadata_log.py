"""What the controller must still know when its process is gone: a file that is appended to.

Each line is a CRC-32 (eight hexadecimal digits), a space, and a JSON array: the records of one
image (`fencepost.broker.data_dir.metadata_records`), so that what changed together is there
together or not at all. At a start the file is rewritten as short as can be; from then on only
changes are appended. A process that ends in the midst of a line leaves a torn one at the end, which
is cut: it was never acted upon. A bad line before a good one is damage, and nothing to guess about.
"""

import json
from binascii import crc32
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Final

from fencepost.broker.data_dir.metadata_records import (
    LAYOUT,
    ControllerState,
    Record,
    UnknownRecord,
    changed_records,
)
from fencepost.broker.metadata.image import ClusterImage
from fencepost.storage.files.file_system import File, FileSystem

_CRC_DIGITS: Final = 8


class CorruptMetadataLog(Exception):
    """The file can't be what was written. The text is one line."""


class MetadataLog:
    """The file, open.

    What can't be written, as on a full disk, is kept and written before whatever comes next: the
    cluster goes on, and only an end of the process before that loses it.

    :param complain: Told what could not be written, at each attempt.
    """

    def __init__(
        self, file: File, *, sync: bool, complain: Callable[[OSError], None] = lambda _: None
    ) -> None:
        self.report_problem = complain
        self._file = file
        self._sync = sync
        self._unwritten: list[bytes] = []

    @property
    def has_unwritten(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self._unwritten)

    def append_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Keep what is different in a new image, before anybody acts on it."""
        self._append(list(changed_records(before, after, changed)))

    def append_producer_ids(self, next_producer_id: int) -> None:
        """Append the next unused producer id, before a lower one is given to a client."""
        self._append([["producer_ids", next_producer_id]])

    def write_pending(self) -> None:
        """Write what could not be written before."""
        if self._unwritten:
            self._write()

    def close(self) -> None:
        """Write what is left, if that goes, and close the file."""
        self.write_pending()
        self._file.close()

    def _append(self, records: list[Record]) -> None:
        if records:
            self._unwritten.append(_line(records))
            self._write()

    def _write(self) -> None:
        try:
            self._file.append(self._unwritten)
            self._unwritten = []
            if self._sync:
                self._file.sync()
        except OSError as error:
            self.report_problem(error)


def load(fs: FileSystem, path: PurePath) -> tuple[ControllerState, int] | None:
    """What a file says, and how many torn bytes at its end were left out; None without a file.

    :raises CorruptMetadataLog: When it is damaged, or made by a newer fencepost.
    :raises OSError: When it can't be read.
    """
    if not fs.exists(path):
        return None
    data = fs.read(path)
    known = ControllerState(cluster_id="")
    kept = 0
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        records = _records(line)
        if records is None:
            if any(
                _records(later) is not None
                for later in data[kept + len(line) :].splitlines(keepends=True)
            ):
                raise CorruptMetadataLog(f"{path}: line {number} is damaged, and others follow it")
            break
        try:
            for record in records:
                known.apply(record)
                if known.layout > LAYOUT:
                    raise CorruptMetadataLog(
                        f"{path.parent} was made by a newer fencepost: its layout is "
                        f"{known.layout}, and {LAYOUT} is the newest that this one knows"
                    )
        except UnknownRecord as error:
            raise CorruptMetadataLog(
                f"{path}: line {number} says what is not known: {error}"
            ) from error
        kept += len(line)
    if not known.cluster_id:
        raise CorruptMetadataLog(f"{path} does not say which cluster it is of")
    return known, len(data) - kept


def rewrite(fs: FileSystem, path: PurePath, known: ControllerState, *, sync: bool) -> MetadataLog:
    """Rewrite the file with the present state, and open it to append to.

    :raises OSError: When that fails.
    """
    fs.write_atomic(path, _line(known.records()), sync=sync)
    return MetadataLog(fs.open(path), sync=sync)


def _line(records: Iterable[Record]) -> bytes:
    text = json.dumps(list(records), ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %b\n" % (crc32(text), text)


def _records(line: bytes) -> list[Record] | None:
    """What a line says; None where it is not whole."""
    crc, text = line[:_CRC_DIGITS], line[_CRC_DIGITS + 1 : -1]
    if line[-1:] != b"\n" or crc != b"%08x" % crc32(text):
        return None
    records: list[Record] = json.loads(text)
    return records
