"""A real Kafka's metadata log, read from its files.

``__cluster_metadata-0`` holds what the controller of a Kafka knows (KIP-630, KIP-631): segments, of
which the first may be deleted, and snapshots (``<end offset>-<epoch>.checkpoint``), each of which
holds the state that all records before its end offset made. `KafkaMetadataLog` gives the records of
one such directory in order, from the earliest point on from which all that follows is there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Struct

from fencepost.protocol.framed_records import MalformedValue
from fencepost.protocol.metadata_records import (
    METADATA_RECORDS,
    TOPIC_RESOURCE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, CorruptBatch, crc_ok, iter_headers
from fencepost.storage.files.file_system import FileSystem
from fencepost.storage.formats.file_names import (
    FileKind,
    FileState,
    parse_segment_file_name,
    segment_file_name,
)

METADATA_LOG: Final = "__cluster_metadata"
"""A real controller keeps it beside the logs of topics, as if it were one."""
METADATA_DIRECTORY: Final = f"{METADATA_LOG}-0"
_SNAPSHOT: Final = re.compile(r"(?P<end>[0-9]{20})-(?P<epoch>[0-9]{10})\.checkpoint")


class SnapshotStart(Struct, frozen=True):
    """The entries that follow begin with a state: what came before is not known any more."""

    end: int
    """The offset behind the last record that made the state: history begins here."""


class MetadataEntry(NamedTuple):
    """A record of the metadata log that holds."""

    offset: int
    """In the log; of a record in a snapshot, the snapshot's end offset."""
    time_ms: int
    """When the controller wrote it, by its own clock."""
    record: object
    """One of `fencepost.protocol.metadata_records`."""
    is_state: bool
    """Whether it is of a snapshot."""


Entry: TypeAlias = MetadataEntry | SnapshotStart


class KafkaMetadataLog:
    """The metadata log, out of one copy of it or several.

    :ivar start: The offset from which on `entries` gave the history.
    :ivar end: The offset behind the last record that `entries` has read.
    :ivar problems: What could not be read, a sentence each.
    """

    def __init__(self, fs: FileSystem, *directories: PurePath) -> None:
        """What it is read from.

        :param directories: ``__cluster_metadata-0`` of nodes, of which each that ends earlier is
            the beginning of those that go further. Where one begins too late, ends or is damaged,
            the others are gone on with, in this order.
        """
        self.start = self.end = 0
        self.problems: list[str] = []
        self._fs = fs
        self._directories = directories
        self._transaction: list[MetadataEntry] | None = None

    def entries(self) -> Iterator[Entry]:
        """The records that hold, in order; those of types that are not known are left out.

        Ends at what can't be read, unless there is a snapshot of what came after it. What a
        metadata transaction holds that did not end is left out.

        :raises OSError: When a file can't be read.
        """
        names = {each: self._fs.names(each) for each in self._directories}
        segments = {directory: _segments(found) for directory, found in names.items()}
        snapshots = sorted(
            (end, directory / name)
            for directory, found in names.items()
            for end, name in _snapshots(found)
        )
        yield from self._log_entries(segments)
        for end, path in snapshots:
            state = self._state(end, path) if end > self.end else None
            if state is not None:
                yield SnapshotStart(end)
                yield from state
                self.start = self.end = end
                self._transaction = None
                yield from self._log_entries(segments)
        for directory, bases in segments.items():
            if bases and bases[0] and not self.end:
                self.problems.append(
                    f"{directory} begins at offset {bases[0]}, and no snapshot can be read that "
                    "holds what came before"
                )

    def _state(self, end: int, path: PurePath) -> list[MetadataEntry] | None:
        """The records of a snapshot; None where it can't be read to its end."""
        data = self._fs.read(path)
        found: list[MetadataEntry] = []
        size, header = 0, None
        try:
            for position, header in iter_headers(data):
                size = position + header.size
                found += [
                    MetadataEntry(end, time_ms, record, True)
                    for _, time_ms, record in _records(data, position, header)
                ]
        except (CorruptBatch, MalformedValue) as error:
            self.problems.append(f"{path} can't be read: {error}")
            return None
        # A footer, in a control batch, is the last that is written.
        if size != len(data) or header is None or not header.is_control:
            self.problems.append(f"{path} is not whole")
            return None
        return found

    def _log_entries(self, segments: Mapping[PurePath, Sequence[int]]) -> Iterator[MetadataEntry]:
        """The records from `end` on, out of the copies that have them."""
        for directory, bases in segments.items():
            if not bases or bases[0] > self.end:
                continue
            try:
                for entry in self._records_from_end(directory, bases):
                    yield from self._held(entry)
            except (CorruptBatch, MalformedValue) as error:
                self.problems.append(
                    f"{directory} can't be read from offset {self.end} on: {error}"
                )

    def _held(self, entry: MetadataEntry) -> Sequence[MetadataEntry]:
        """The entries that hold now that this one is there."""
        match entry.record:
            case BeginTransactionRecord():
                self._transaction = []
            case EndTransactionRecord():
                held, self._transaction = self._transaction or (), None
                return held
            case AbortTransactionRecord():
                self._transaction = None
            case _ if self._transaction is not None:
                self._transaction.append(entry)
            case _:
                return (entry,)
        return ()

    def _records_from_end(
        self, directory: PurePath, bases: Sequence[int]
    ) -> Iterator[MetadataEntry]:
        """The records from `end` on, which they raise, whether they hold or not.

        :raises CorruptBatch: At a batch that is damaged, or missing.
        :raises MalformedValue: At a record that is none, or of a newer version.
        """
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            if following is not None and following <= self.end:
                continue
            if base > self.end:
                raise CorruptBatch(f"the segment before offset {base} is not there, or cut short")
            data = self._fs.read(directory / segment_file_name(base, FileKind.LOG))
            for position, header in iter_headers(data):
                if header.next_offset <= self.end:
                    continue
                if header.base_offset > self.end:
                    raise CorruptBatch(f"the next batch begins at offset {header.base_offset}")
                # A batch counts as a whole: another copy may have one that can be read.
                yield from [
                    MetadataEntry(offset, time_ms, record, False)
                    for offset, time_ms, record in _records(data, position, header)
                ]
                self.end = header.next_offset


def _records(data: bytes, position: int, header: BatchHeader) -> Iterator[tuple[int, int, object]]:
    """Offset, time and record of each that is known in a batch.

    :raises CorruptBatch: When the batch is damaged.
    :raises MalformedValue: When a value is no record, or of a newer version.
    """
    if not crc_ok(data, position, header):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} is wrong")
    if header.is_control:
        return
    for each in iter_records(data, position):
        record = None if each.value is None else METADATA_RECORDS.decode(each.value)
        if record is not None:
            yield each.offset, each.timestamp, record


def _segments(names: Iterable[str]) -> list[int]:
    """Base offsets of the segments in use, in order."""
    parsed = [parse_segment_file_name(name) for name in names]
    return sorted(
        each.offset
        for each in parsed
        if each is not None and (each.kind, each.state) == (FileKind.LOG, FileState.LIVE)
    )


def _snapshots(names: Iterable[str]) -> list[tuple[int, str]]:
    """End offsets and names of snapshots that have a state, in order.

    The one of end offset 0 has what the directory was formatted with; the log repeats it.
    """
    parsed = [(parse_snapshot_name(name), name) for name in names]
    return sorted((found.end, name) for found, name in parsed if found is not None and found.end)


class SnapshotName(NamedTuple):
    """What the name of a snapshot says."""

    epoch: int
    """Of the last record that made the state."""
    end: int
    """The offset behind it."""


def parse_snapshot_name(name: str) -> SnapshotName | None:
    """What the name of a snapshot says; None where it is no such name."""
    match = _SNAPSHOT.fullmatch(name)
    return match and SnapshotName(int(match["epoch"]), int(match["end"]))


def topic_configs(fs: FileSystem, log_dir: PurePath) -> dict[str, dict[str, str]]:
    """The dynamic configs of every topic that has some, by topic.

    Where the metadata can't be read, what could be before; nothing without any.

    :raises OSError: When a file can't be read.
    """
    directory = log_dir / METADATA_DIRECTORY
    configs: dict[str, dict[str, str]] = {}
    if not fs.exists(directory):
        return configs
    topics: dict[UUID | None, str] = {}
    for entry in KafkaMetadataLog(fs, directory).entries():
        if isinstance(entry, SnapshotStart):
            configs.clear()
            continue
        match entry.record:
            case TopicRecord(name=name, topic_id=topic_id):
                topics[topic_id] = name
            case RemoveTopicRecord(topic_id=topic_id):
                configs.pop(topics.pop(topic_id, ""), None)
            case ConfigRecord(resource_type=kind) as config if kind == TOPIC_RESOURCE:
                apply_config(configs.setdefault(config.resource_name, {}), config)
    return configs


def apply_config(configs: dict[str, str], record: ConfigRecord) -> None:
    """Set, or take away, a config of a resource."""
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
