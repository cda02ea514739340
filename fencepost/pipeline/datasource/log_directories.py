"""Where the logs of a cluster lie: log directories, replicas, and the files of their segments.

What is found is what a broker that starts now would open: leftovers of compaction and deletion are
taken as it takes them (`fencepost.storage.files.recovery`), but nothing is changed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final
from uuid import UUID

from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.files.index_lookup import scan_headers
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_partition_metadata,
    decode_properties,
)
from fencepost.storage.formats.file_names import (
    DirectoryState,
    FileKind,
    FileState,
    PartitionDirectory,
    SegmentFile,
    parse_directory_name,
    parse_segment_file_name,
    segment_file_name,
)

_BROKER_DIR: Final = re.compile(r"broker-(?P<id>[0-9]+)(?:\.d[0-9]+)?")
_DEPTH: Final = 2
_METADATA_LOG_FILE: Final = "registry.log"
"""Fencepost's own metadata log, beside the log directories that it made."""
OFFSET_CHECKPOINTS: Final = (
    file_names.RECOVERY_POINTS,
    file_names.HIGH_WATERMARKS,
    file_names.LOG_STARTS,
)
METADATA_TOPIC: Final = "__cluster_metadata"
"""KRaft's own log, which follows other rules."""


class UnreadableSource(ValueError):
    """What was named holds no logs, or not those of one cluster. The text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """One broker's log directory, or one of several."""

    path: Path
    broker: int
    cluster_id: str | None
    clean: bool
    """Whether the broker ended in order."""
    directory_id: str | None = None
    """Its own (KIP-858); None where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The files of one segment. The indexes need not be there."""

    base_offset: int
    log: Path
    active: bool
    """Whether it is the last one, to which is appended. Its indexes may say what is long gone."""
    swapped: bool = False
    """Whether compaction was about to put it into place: its indexes are rebuilt then."""
    snapshots: tuple[Path, ...] = ()
    """The ``.snapshot`` files of its offsets, and of later ones where it is the last, in order."""

    @property
    def offset_index(self) -> Path:
        """Its ``.index``."""
        return self._beside(FileKind.OFFSET_INDEX)

    @property
    def time_index(self) -> Path:
        """Its ``.timeindex``."""
        return self._beside(FileKind.TIME_INDEX)

    @property
    def transaction_index(self) -> Path:
        """Its ``.txnindex``, or what compaction was about to put into its place."""
        state = FileState.SWAP if self.swapped else FileState.LIVE
        name = segment_file_name(self.base_offset, FileKind.TRANSACTION_INDEX, state)
        return self.log.with_name(name)

    def _beside(self, kind: FileKind) -> Path:
        return self.log.with_name(segment_file_name(self.base_offset, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One partition in one broker's log directory."""

    log_dir: LogDir
    topic: str
    partition: int
    path: Path
    segments: tuple[Segment, ...]
    """In order; the last is the active one."""
    leftovers: tuple[str, ...] = ()
    """Names of files on their way in or out: ``.deleted``, ``.cleaned``, ``.swap``; sorted."""
    replaced: tuple[tuple[int, int], ...] = ()
    """Offsets of the segments that are left out for a ``.swap``: first and end (exclusive)."""

    @property
    def broker(self) -> int:
        """Whose it is."""
        return self.log_dir.broker


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDirs:
    """The log directories in a folder."""

    log_dirs: tuple[LogDir, ...]
    """Those whose logs are read, by broker and path."""
    set_aside: tuple[Path, ...]
    """Those whose logs are not read, as it is not known of which broker they are: they have no
    node id, or that of another node. In order."""


def find_log_dirs(folder: str | Path) -> tuple[LogDir, ...]:
    """The log directories in a folder whose logs are read, by broker: see `find_all_dirs`."""
    return find_all_dirs(folder).log_dirs


def find_all_dirs(folder: str | Path) -> FoundDirs:
    """The log directories in a folder.

    :param folder: A log directory itself, what ``serve --data-dir`` named, or a folder of such.
    :raises UnreadableSource: When there is none, it can't be read, or they are of several clusters.
    """
    top = Path(folder)
    if not top.is_dir():
        raise UnreadableSource(f"{top} is not a directory")
    try:
        walked = list(_log_dirs(top, _DEPTH))
        found = sorted(
            (each for each in walked if isinstance(each, LogDir)),
            key=lambda each: (each.broker, each.path),
        )
        _check_clusters(found)
        others = _of_other_nodes(found)
    except OSError as error:
        raise unreadable_source(top, error) from error
    if not found:
        raise UnreadableSource(
            f"no log directory in {top}: none has {file_names.META_PROPERTIES} or is a broker-N"
        )
    unknown = (each for each in walked if isinstance(each, Path))
    return FoundDirs(
        log_dirs=tuple(each for each in found if each not in others),
        set_aside=tuple(sorted((*unknown, *(each.path for each in others)))),
    )


def named_broker(path: Path) -> int | None:
    """The broker that the name of a log directory says, where fencepost made it; else None.

    A folder of Kafka's log directories may have any names.
    """
    named = _BROKER_DIR.fullmatch(path.name)
    if named is None or not (path.parent / _METADATA_LOG_FILE).exists():
        return None
    return int(named["id"])


def is_fenceposts(log_dir: Path) -> bool:
    """Whether fencepost has used a log directory: its own metadata log is beside it, or in it."""
    return any((top / _METADATA_LOG_FILE).exists() for top in (log_dir, log_dir.parent))


def _check_clusters(found: Iterable[LogDir]) -> None:
    """Whether they are of one cluster: by their cluster ids, or else by topic ids in common.

    Where directories have a topic id in common, a cluster id among theirs is wrong.

    :raises UnreadableSource: When they are not.
    """
    clusters: dict[str, list[LogDir]] = defaultdict(list)
    for each in found:
        if each.cluster_id:
            clusters[each.cluster_id].append(each)
    if len(clusters) < 2:
        return
    first, *others = (
        {topic_id for each in of_one for topic_id in _topic_ids(each)}
        for of_one in sorted(clusters.values(), key=len, reverse=True)
    )
    if any(first.isdisjoint(ids) for ids in others):
        shown = " and ".join(f"{dirs[0].path} (cluster {name})" for name, dirs in clusters.items())
        raise UnreadableSource(f"logs of more than one cluster: {shown}")


def _topic_ids(log_dir: LogDir) -> Iterator[UUID]:
    """The topic ids in the partitions' directories, as far as they can be read."""
    for path in log_dir.path.glob(f"*/{file_names.PARTITION_METADATA}"):
        parsed = parse_directory_name(path.parent.name)
        if parsed is not None and parsed.topic != METADATA_TOPIC:
            with suppress(CorruptCheckpoint):
                yield decode_partition_metadata(path.read_bytes())


def _of_other_nodes(found: Iterable[LogDir]) -> list[LogDir]:
    """Directories with the node id of an earlier one that are of another node nevertheless.

    A node has several directories, and its metadata log in one of them.
    """
    with_metadata: set[int] = set()
    others = []
    for each in found:
        if not has_metadata_log(each.path):
            continue
        if each.broker in with_metadata:
            others.append(each)
        with_metadata.add(each.broker)
    return others


def has_metadata_log(log_dir: Path) -> bool:
    """Whether a log directory is the one that its node has the metadata log of KRaft in."""
    return (log_dir / f"{METADATA_TOPIC}-0").is_dir()


def find_replicas(
    log_dirs: Iterable[LogDir], topics: Collection[str] | None = None
) -> tuple[Replica, ...]:
    """The replicas in log directories, by topic, partition and broker.

    Directories on their way out or in are left out.

    :param topics: Only of these; None for all.
    :raises UnreadableSource: When a directory can't be read, or a broker has a partition twice.
    """
    found: dict[tuple[str, int, int], Replica] = {}
    for log_dir in log_dirs:
        try:
            replicas = list(_replicas(log_dir, topics))
        except OSError as error:
            raise unreadable_source(log_dir.path, error) from error
        for replica in replicas:
            key = (replica.topic, replica.partition, replica.broker)
            other = found.setdefault(key, replica)
            if other is not replica:
                raise UnreadableSource(
                    f"broker {replica.broker} has {replica.path.name} twice: "
                    f"{other.path} and {replica.path}"
                )
    return tuple(found[key] for key in sorted(found))


def _log_dirs(folder: Path, depth: int) -> Iterator[LogDir | Path]:
    """Log directories; only the path of one of which nothing says whose it is."""
    own = _log_dir(folder)
    if own is not None:
        yield own
    elif any((folder / name).exists() for name in OFFSET_CHECKPOINTS):
        yield folder
        return
    elif not depth:
        return
    for child in sorted(folder.iterdir()):
        # A real Kafka's directory that was served with more brokers has theirs in it.
        if child.is_dir() and (own is None or _BROKER_DIR.fullmatch(child.name)):
            yield from _log_dirs(child, depth - 1 if own is None else 0)


def _log_dir(folder: Path) -> LogDir | None:
    properties: dict[str, str] = {}
    file = folder / file_names.META_PROPERTIES
    if file.exists():
        properties = decode_properties(file.read_bytes())
    broker = named_broker(folder)
    if broker is None:
        broker = _node_id(file, properties)
    if broker is None:
        named = _BROKER_DIR.fullmatch(folder.name)
        broker = None if named is None else int(named["id"])
    if broker is None:
        return None
    return LogDir(
        path=folder,
        broker=broker,
        cluster_id=properties.get("cluster.id"),
        clean=(folder / file_names.CLEAN_SHUTDOWN).exists(),
        directory_id=properties.get("directory.id"),
    )


def _node_id(file: Path, properties: Mapping[str, str]) -> int | None:
    """:raises UnreadableSource: When it is no number."""
    text = node_id_text(properties)
    if not text:
        return None
    if not text.isdecimal():
        raise UnreadableSource(f"{file} says node.id={text}, which is no number")
    return int(text)


def node_id_text(properties: Mapping[str, str]) -> str:
    """The node id in a ``meta.properties``, which was the broker id before KRaft; empty without."""
    return properties.get("node.id") or properties.get("broker.id") or ""


def _replicas(log_dir: LogDir, topics: Collection[str] | None) -> Iterator[Replica]:
    for path in sorted(log_dir.path.iterdir()):
        parsed = parse_directory_name(path.name)
        if parsed is None or parsed.state is not DirectoryState.LIVE or not path.is_dir():
            continue
        if parsed.topic == METADATA_TOPIC or (topics is not None and parsed.topic not in topics):
            continue
        yield _replica(log_dir, path, parsed)


def read_replica(log_dir: LogDir, name: str) -> Replica:
    """The replica in one directory of a log directory.

    :param name: Of the directory, which is one of a partition.
    :raises UnreadableSource: When it can't be read.
    """
    named = parse_directory_name(name)
    assert named is not None, "it is the name of a partition's directory"
    try:
        return _replica(log_dir, log_dir.path / name, named)
    except OSError as error:
        raise unreadable_source(log_dir.path, error) from error


def _replica(log_dir: LogDir, path: Path, named: PartitionDirectory) -> Replica:
    parsed = [parse_segment_file_name(each.name) for each in path.iterdir()]
    files = [file for file in parsed if file is not None]
    live = {
        file.offset: file
        for file in files
        if file.kind is FileKind.LOG and file.state is FileState.LIVE
    }
    swaps = _swaps(files)
    replaced = _replaced(path, list(live.values()), swaps)
    logs = {offset: file for offset, file in live.items() if file not in replaced}
    logs |= {file.offset: file for file in swaps}
    bases = sorted(logs)
    snapshots = _snapshots(path, files, bases)
    return Replica(
        log_dir=log_dir,
        topic=named.topic,
        partition=named.partition,
        path=path,
        segments=tuple(
            Segment(
                base_offset=offset,
                log=path / segment_file_name(*logs[offset]),
                active=offset == bases[-1],
                swapped=logs[offset].state is FileState.SWAP,
                snapshots=tuple(snapshots[offset]),
            )
            for offset in bases
        ),
        leftovers=tuple(
            sorted(segment_file_name(*each) for each in files if each.state is not FileState.LIVE)
        ),
        replaced=tuple((file.offset, _end_of(path, file)) for file in replaced),
    )


def _replaced(folder: Path, live: list[SegmentFile], swaps: list[SegmentFile]) -> list[SegmentFile]:
    """The segments that a broker removes when it puts the swaps into their place, in order."""
    if not swaps:
        return []
    end = max(_end_of(folder, file) for file in swaps)
    return sorted(
        (file for file in live if swaps[0].offset <= file.offset < end),
        key=lambda each: each.offset,
    )


def _snapshots(
    folder: Path, files: Iterable[SegmentFile], bases: Sequence[int]
) -> Mapping[int, list[Path]]:
    """The producer snapshots of each segment, in order."""
    found: dict[int, list[Path]] = defaultdict(list)
    for file in sorted(files, key=attrgetter("offset")):
        if file.kind is FileKind.PRODUCER_SNAPSHOT and file.state is FileState.LIVE:
            number = bisect_right(bases, file.offset) - 1
            if number >= 0:  # what is older than the log counts for nothing
                found[bases[number]].append(folder / segment_file_name(*file))
    return found


def _swaps(files: list[SegmentFile]) -> list[SegmentFile]:
    """The ``.log.swap`` that a broker would put into place, in order."""
    unfinished = [file.offset for file in files if file.state is FileState.CLEANED]
    return sorted(
        (
            file
            for file in files
            if file.state is FileState.SWAP
            and file.kind is FileKind.LOG
            and (not unfinished or file.offset < min(unfinished))
        ),
        key=lambda each: each.offset,
    )


def _end_of(folder: Path, file: SegmentFile) -> int:
    """The offset behind a segment's last batch, as far as it can be read."""
    end = file.offset
    path = folder / segment_file_name(*file)
    with path.open("rb") as opened:

        def read(start: int, stop: int) -> bytes:
            opened.seek(start)
            return opened.read(stop - start)

        try:
            for _, header in scan_headers(read, 0, path.stat().st_size):
                end = header.next_offset
        except DamagedSegment:
            pass
    return end


def unreadable_source(path: Path, error: OSError) -> UnreadableSource:
    """What is wrong with a log directory that can't be read."""
    return UnreadableSource(f"{error.filename or path} can't be read: {error.strerror or error}")
