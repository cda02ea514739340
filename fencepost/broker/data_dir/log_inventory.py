"""A broker's inventory of its logs: what of them was there when it was last written down.

It is the truth about a log directory. Kafka's checkpoints, which say a part of the same, have no
checksum and no names of segments: they are written for others, and read where there is none.

``broker-N.inventory`` lies beside the log directory, so that not both are lost at once. It is a
file of lines as ``registry.log`` is (`metadata_log.encode_line`). A line holds records:

    ["inventory", 1, cluster id, broker id]   the version of the format; the first of the file
    ["at", starts, version]                   the process, and the image, in which what follows was
                                              written
    ["begun"]                                 the broker started: no log is as it was written
    ["log", topic, index, topic id, is closed, is whole, [log start, end, high watermark, recovery
     point, cleaned until], [[epoch, start], ...], [[base offset, size, head], ...], {name: CRC}]
                                              a log; unless it is whole, segments and checksums come
                                              to those that the line before it has
    ["losing", topic, index, [base offset, ...]]
                                              these segments are about to be removed or changed, or
                                              were when the file was rewritten
    ["gone", topic, index]                    the log is about to be deleted

What removes or cuts something is written before it is done, and what adds something afterwards. So
at every moment, and after every end of the process, the files have at least what it says. A log
that was closed has exactly that. Lines are appended when a segment is begun, when the leader epochs
change, and with the checkpoints; at an end in order the file is rewritten.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import Struct

from fencepost.broker.data_dir.metadata_log import Record, decode_line, encode_line
from fencepost.broker.data_dir.offset_checkpoints import Key
from fencepost.storage.files.file_system import File, FileSystem
from fencepost.storage.files.inventory import LogInventory, SegmentEntry
from fencepost.storage.log.leader_epoch_cache import EpochEntry

VERSION: Final = 1
_REWRITE_BYTES: Final = 1 << 20
_MANY: Final = 4
"""The file is rewritten when so many times its own size were appended."""


class ClusterPosition(Struct):
    """How far the cluster's metadata have come.

    :ivar starts: How many processes have begun with the directory, with this one.
    :ivar version: Of the newest image.
    :ivar restored_starts: How many had before this one, as ``registry.log`` says.
    :ivar has_inventories: Whether ``registry.log`` is of a layout that no fencepost without
        inventories opens.
    :ivar accepts_loss: Whether partitions are served that have lost records.
    """

    starts: int = 0
    version: int = 0
    restored_starts: int = 0
    has_inventories: bool = False
    accepts_loss: bool = False


class InventoryRow(NamedTuple):
    """One log.

    :ivar is_closed: Whether nothing was written to the log since.
    """

    topic_id: UUID
    inventory: LogInventory
    is_closed: bool = False


class CorruptInventory(Exception):
    """The file can't be what was written. The text is one line."""


class InventoryFile:
    """The file of one broker.

    :param position: Of the cluster, as it moves on.
    :param sync: Whether what is appended is to outlive the machine.
    :param path: Of the file.
    :ivar rows: By topic and partition; what the file says.
    :ivar found: How far the metadata had come when it was last written to.
    :ivar is_torn: Whether there are bytes behind the last whole line, as a kill leaves them:
        nothing may be appended to them.
    :ivar report_problem: Told what can't be written.
    """

    def __init__(
        self,
        fs: FileSystem,
        path: PurePath,
        *,
        broker_id: int,
        cluster_id: Callable[[], str],
        position: ClusterPosition,
        sync: bool,
    ) -> None:
        self.rows: dict[Key, InventoryRow] = {}
        self.found = ClusterPosition()
        self.report_problem: Callable[[str], None] = _ignore_problem
        self._fs = fs
        self.path = path
        self._broker_id = broker_id
        self._cluster_id = cluster_id
        self._position = position
        self._sync = sync
        self._file: File | None = None
        self._said = ClusterPosition(-1, -1)
        self._unwritten: list[Record] = []
        self.is_torn = False
        self._is_behind = False
        """Whether something could not be written, so that the whole has to be."""
        self._size = 0
        self._limit = _REWRITE_BYTES

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self._fs.exists(self.path)

    def _check_first(self, line: bytes) -> None:
        """The first line names the format."""
        records = decode_line(line)
        if not records or records[0][:1] != ["inventory"]:
            raise CorruptInventory(f"{self.path} does not begin with the version of an inventory")

    def read(self) -> None:
        """Take up what the file says; nothing where there is none.

        :raises CorruptInventory: When it is damaged, of another broker or of a newer fencepost.
        :raises OSError: When it can't be read.
        """
        self.rows, self.found, self.is_torn = {}, ClusterPosition(), False
        if not self.exists:
            return
        data = self._fs.read(self.path)
        kept, number = 0, 0
        for number, line in enumerate(data.splitlines(keepends=True), start=1):
            records = decode_line(line)
            if records is None:
                break
            if number == 1:
                self._check_first(line)
            for record in records:
                self._load(record, number)
            kept += len(line)
        self.is_torn = kept < len(data)
        if not kept:
            raise CorruptInventory(
                f"{self.path} has no whole line; the first one names its version"
            )
        rest = data[kept:].splitlines(keepends=True)[1:]
        if any(decode_line(line) is not None for line in rest):
            raise CorruptInventory(f"{self.path}: line {number} is damaged, and others follow it")

    def _load(self, record: Record, number: int) -> None:
        try:
            self._apply(record)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CorruptInventory(
                f"{self.path}: line {number} has no record that is known: {record!r}"[:300]
            ) from error

    def _apply(self, record: Record) -> None:
        match record:
            case ["inventory", version, cluster_id, broker_id]:
                self._check_identity(version, cluster_id, broker_id)
            case ["at", int(starts), int(version)]:
                self.found = ClusterPosition(starts, version)
            case ["begun"]:
                self.rows = {key: row._replace(is_closed=False) for key, row in self.rows.items()}
            case ["log", topic, index, topic_id, closed, whole, *fields]:
                before = None if whole else self.rows[topic, index].inventory
                row = InventoryRow(UUID(topic_id), _inventory(before, *fields), bool(closed))
                self.rows[str(topic), int(index)] = row
            case ["losing", topic, index, bases]:
                row = self.rows[topic, index]
                self.rows[topic, index] = row._replace(inventory=row.inventory.without(bases))
            case ["gone", topic, index]:
                self.rows.pop((topic, index), None)
            case _:
                raise ValueError

    def _check_identity(self, version: int, cluster_id: str, broker_id: int) -> None:
        if version != VERSION:
            raise CorruptInventory(
                f"{self.path} has version {version}, and {VERSION} is the one that is known here"
            )
        if (cluster_id, broker_id) != (self._cluster_id(), self._broker_id):
            raise CorruptInventory(
                f"{self.path} is of broker {broker_id} of cluster {cluster_id}, and is to be of "
                f"broker {self._broker_id} of cluster {self._cluster_id()}"
            )

    # -- writing --------------------------------------------------------------------------------

    def begin(self) -> None:
        """The broker starts; the rows stay as they were read, until they are written again."""
        self._close()
        if self.is_torn or not self.rows or not self.exists:
            self._rewrite_quietly()
        if self.rows:
            self._said = ClusterPosition(-1, -1)
            self._append([["begun"]])

    def put(self, key: Key, row: InventoryRow) -> None:
        """Write down the present state of a log, with the next `flush`."""
        before = self.rows.get(key)
        if before != row:
            self.rows[key] = row
            self._unwritten.append(_log_record(key, before, row))

    def before_loss(self, key: Key, bases: list[int]) -> None:
        """Write down that segments go, before they do."""
        row = self.rows.get(key)
        if row is not None and any(e.base_offset in bases for e in row.inventory.segments):
            less = row.inventory.without(bases)
            self.rows[key] = InventoryRow(row.topic_id, less)
            self._append([["losing", *key, bases]])

    def remove(self, key: Key) -> None:
        """Write down that a log goes, before it does."""
        if self.rows.pop(key, None) is not None:
            self._append([["gone", *key]])

    def flush(self) -> None:
        """Append what was put, or could not be written before."""
        if self._unwritten or self._is_behind:
            self._append([])

    def rewrite(self) -> None:
        """Write all of it, durably, as at an end in order.

        :raises OSError: When that fails.
        """
        self._close()
        self._write_whole(sync=True)

    def close(self) -> None:
        """Let go of the file."""
        self._close()

    def _append(self, records: list[Record]) -> None:
        records = [*self._unwritten, *records]
        if (self._said.starts, self._said.version) != (
            self._position.starts,
            self._position.version,
        ):
            records.insert(0, ["at", self._position.starts, self._position.version])
        line = encode_line(records)
        try:
            if self._is_behind or self._size + len(line) > self._limit:
                self._close()
                self._write_whole(sync=self._sync)
                return
            if self._file is None:
                self._file = self._fs.open(self.path)
                self._size = self._file.size
            self._file.append((line,))
            self._size += len(line)
            if self._sync:
                self._file.sync()
        except OSError as error:
            self.report_problem(str(error))
            self._unwritten, self._is_behind = [], True
            return
        self._said = ClusterPosition(self._position.starts, self._position.version)
        self._unwritten = []

    def _rewrite_quietly(self) -> None:
        try:
            self._write_whole(sync=self._sync)
        except OSError as error:
            self.report_problem(str(error))
            self._is_behind = True

    def _write_whole(self, *, sync: bool) -> None:
        data = b"".join(map(encode_line, self._lines()))
        self._fs.write_atomic(self.path, data, sync=sync)
        self._said = ClusterPosition(self._position.starts, self._position.version)
        self._unwritten, self._is_behind = [], False
        self._size = len(data)
        self._limit = max(_REWRITE_BYTES, _MANY * len(data))

    def _lines(self) -> Iterator[list[Record]]:
        position = self._position
        yield [
            ["inventory", VERSION, self._cluster_id(), self._broker_id],
            ["at", position.starts, position.version],
        ]
        if self.rows:
            yield [_log_record(key, None, row) for key, row in self.rows.items()]
        unsettled = {key: row.inventory.unsettled for key, row in self.rows.items()}
        losing: list[Record] = [
            ["losing", *key, bases] for key, bases in unsettled.items() if bases
        ]
        if losing:
            yield losing

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _ignore_problem(_why: str) -> None:
    """The default: no listener."""


def _log_record(key: Key, before: InventoryRow | None, row: InventoryRow) -> Record:
    now, old = row.inventory, None if before is None else before.inventory
    had: frozenset[SegmentEntry] = frozenset()
    sums: Mapping[str, int] = {}
    if old is not None and _only_grew(old, now):
        had, sums = frozenset(old.segments), old.checksums
    else:
        old = None
    return [
        "log",
        *key,
        row.topic_id.hex,
        int(row.is_closed),
        int(old is None),
        [
            now.log_start_offset,
            now.log_end_offset,
            now.high_watermark,
            now.recovery_point,
            now.cleaned_until,
        ],
        now.epochs,
        [entry for entry in now.segments if entry not in had],
        {name: crc for name, crc in now.checksums.items() if sums.get(name) != crc},
    ]


def _only_grew(old: LogInventory, now: LogInventory) -> bool:
    """Whether all that the earlier line names is there still."""
    bases = {entry.base_offset for entry in now.segments}
    return (
        all(entry.base_offset in bases for entry in old.segments)
        and old.checksums.keys() <= now.checksums.keys()
    )


def _inventory(
    before: LogInventory | None,
    offsets: list[int],
    epochs: list[list[int]],
    entries: list[list[int | None]],
    checksums: dict[str, int],
) -> LogInventory:
    start, end, high_watermark, recovery_point, cleaned_until = map(_offset, offsets)
    segments = {} if before is None else {e.base_offset: e for e in before.segments}
    for base, size, head in entries:
        segments[_offset(base)] = SegmentEntry(_offset(base), _offset(size), head)
    return LogInventory(
        segments=tuple(entry for _, entry in sorted(segments.items())),
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=high_watermark,
        recovery_point=recovery_point,
        cleaned_until=cleaned_until,
        epochs=tuple(EpochEntry(_offset(epoch), _offset(at)) for epoch, at in epochs),
        checksums={**({} if before is None else before.checksums), **checksums},
    )


def _offset(number: int | None) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{number!r} is no offset")
    return number
