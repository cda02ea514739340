"""Finds the metadata logs in the directories of a cluster, and reads the one that goes furthest.

Every node of a Kafka has a copy of the metadata log, the controllers as voters and the brokers as
observers. A copy that ends earlier is the beginning of one that goes further (KIP-595): of each of
the others only the last batch is compared. Among copies that part, the one whose last batch has the
highest epoch holds, as in an election of a controller; of equal ones the longest.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.broker.data_dir.kafka_metadata import (
    METADATA_DIRECTORY,
    SnapshotName,
    parse_snapshot_name,
)
from fencepost.broker.data_dir.metadata_log import CorruptMetadataLog
from fencepost.pipeline.audit.cluster_metadata import ClusterMetadata
from fencepost.pipeline.audit.log_files import find_segments, last_header, whole_headers
from fencepost.pipeline.audit.metadata_replay import replay_fencepost, replay_kafka
from fencepost.pipeline.datasource.log_directories import LogDir
from fencepost.protocol.records import BatchHeader
from fencepost.storage.files.file_system import RealFileSystem

_REGISTRY: Final = "registry.log"
_FOREVER: Final = 1 << 62
"""No offset is as great."""
_NO_SNAPSHOT: Final = SnapshotName(-1, 0)


def read_cluster_metadata(log_dirs: Iterable[LogDir]) -> ClusterMetadata:
    """What the directories of a cluster have of its metadata.

    Where fencepost has served a real Kafka's directory, its own metadata are the newer ones.
    What can't be read is among the ``problems``.
    """
    tops = sorted({top for each in log_dirs for top in (each.path, each.path.parent)})
    problems: list[str] = []
    read = _read_registries(tops, problems)
    if read is None:
        read = _read_copies(tops, problems)
    return read.with_problems(*problems)


def _read_registries(tops: Iterable[Path], problems: list[str]) -> ClusterMetadata | None:
    """The newest of fencepost's; None where there is none."""
    found = []
    for path in (top / _REGISTRY for top in tops):
        try:
            if path.exists():
                found.append(replay_fencepost(RealFileSystem(), path))
        except CorruptMetadataLog as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(_unreadable(path, error))
    return max(found, key=_end_of, default=None)


def _end_of(metadata: ClusterMetadata) -> int:
    source = metadata.reading.source
    return 0 if source is None else source.end


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A node's copy of the metadata log."""

    path: Path
    start: int
    """Base offset of its first segment."""
    last: BatchHeader | None
    """Of its last whole batch; None where there is none."""
    snapshot: SnapshotName
    """The newest one."""

    @property
    def rank(self) -> SnapshotName:
        """Epoch and end of the last that it has: of two copies that part the greater one holds."""
        if self.last is None:
            return self.snapshot
        last = SnapshotName(self.last.partition_leader_epoch, self.last.next_offset)
        return max(last, self.snapshot)

    @property
    def end(self) -> int:
        """Behind the last record that it has (exclusive)."""
        return self.rank.end


def _read_copies(tops: Iterable[Path], problems: list[str]) -> ClusterMetadata:
    copies = list(_copies(tops, problems))
    if not copies:
        return ClusterMetadata()
    furthest = max(copies, key=lambda copy: copy.rank)
    agreeing = [each for each in copies if each is not furthest]
    for each in _parted(furthest, agreeing):
        agreeing.remove(each)
        problems.append(
            f"{each.path} parts from {furthest.path}: the one ends at offset {each.end}, with a "
            "batch that the other does not have there"
        )
    earliest_first = sorted(agreeing, key=lambda copy: (copy.start, -copy.end))
    paths = [each.path for each in earliest_first if each.start < furthest.start][:1]
    try:
        read = replay_kafka(RealFileSystem(), *paths, furthest.path)
        if _end_of(read) < furthest.end and agreeing:
            every = [each.path for each in earliest_first]
            read = replay_kafka(RealFileSystem(), *every, furthest.path)
    except OSError as error:
        problems.append(_unreadable(furthest.path, error))
        return ClusterMetadata()
    return read


def _copies(tops: Iterable[Path], problems: list[str]) -> Iterator[_Copy]:
    for path in (top / METADATA_DIRECTORY for top in tops):
        try:
            if path.is_dir():
                segments = find_segments(path)
                names = [parse_snapshot_name(each.name) for each in path.iterdir()]
                yield _Copy(
                    path=path,
                    start=min(segments, default=0),
                    last=last_header(segments),
                    snapshot=max((each for each in names if each), default=_NO_SNAPSHOT),
                )
        except OSError as error:
            problems.append(_unreadable(path, error))


def _parted(furthest: _Copy, others: Collection[_Copy]) -> list[_Copy]:
    """The copies that are no beginning of the one that goes furthest."""
    wanted = {each.last.base_offset: each.last for each in others if each.last is not None}
    there: dict[int, BatchHeader] = {}
    segments = find_segments(furthest.path)
    bases = sorted(segments)
    for base, end in zip(bases, [*bases[1:], _FOREVER], strict=False):
        if any(base <= each < end for each in wanted):
            path = segments[base]
            there |= {h.base_offset: h for h in whole_headers(path) if h.base_offset in wanted}
    return [
        each
        for each in others
        if each.last is not None
        and each.last.base_offset >= furthest.start
        and there.get(each.last.base_offset) != each.last
    ]


def _unreadable(path: Path, error: OSError) -> str:
    return f"{error.filename or path} can't be read: {error.strerror or error}"
