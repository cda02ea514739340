"""Where the logs of a cluster lie: log directories, replicas, and the files of their segments.

What is found is what a broker that starts now would open: leftovers of compaction and deletion are
taken as it takes them (`fencepost.storage.files.recovery`), but nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.files.index_lookup import scan_headers
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import decode_properties
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
_METADATA_TOPIC: Final = "__cluster_metadata"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The files of one segment. The indexes need not be there."""

    base_offset: int
    log: Path
    active: bool
    """Whether it is the last one, to which is appended. Its indexes may say what is long gone."""
    swapped: bool = False
    """Whether compaction was about to put it into place: its indexes are rebuilt then."""

    @property
    def offset_index(self) -> Path:
        """Its ``.index``."""
        return self._beside(FileKind.OFFSET_INDEX)

    @property
    def time_index(self) -> Path:
        """Its ``.timeindex``."""
        return self._beside(FileKind.TIME_INDEX)

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


def find_log_dirs(folder: str | Path) -> tuple[LogDir, ...]:
    """The log directories in a folder, by broker.

    :param folder: A log directory itself, what ``serve --data-dir`` named, or a folder of such.
    :raises UnreadableSource: When there is none, it can't be read, or they are of several clusters.
    """
    top = Path(folder)
    if not top.is_dir():
        raise UnreadableSource(f"{top} is not a directory")
    try:
        found = sorted(_log_dirs(top, _DEPTH), key=lambda each: (each.broker, each.path))
    except OSError as error:
        raise _unreadable_source(top, error) from error
    if not found:
        raise UnreadableSource(
            f"no log directory in {top}: none has {file_names.META_PROPERTIES} or is a broker-N"
        )
    clusters = {each.cluster_id: each.path for each in found if each.cluster_id}
    if len(clusters) > 1:
        shown = " and ".join(f"{path} (cluster {name})" for name, path in clusters.items())
        raise UnreadableSource(f"logs of more than one cluster: {shown}")
    return tuple(found)


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
            raise _unreadable_source(log_dir.path, error) from error
        for replica in replicas:
            key = (replica.topic, replica.partition, replica.broker)
            other = found.setdefault(key, replica)
            if other is not replica:
                raise UnreadableSource(
                    f"broker {replica.broker} has {replica.path.name} twice: "
                    f"{other.path} and {replica.path}"
                )
    return tuple(found[key] for key in sorted(found))


def _log_dirs(folder: Path, depth: int) -> Iterator[LogDir]:
    own = _log_dir(folder)
    if own is not None:
        yield own
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
    named = _BROKER_DIR.fullmatch(folder.name)
    broker = properties.get("node.id") or properties.get("broker.id") or (named and named["id"])
    if not broker:
        return None
    if not broker.isdecimal():
        raise UnreadableSource(f"{file} says node.id={broker}, which is no number")
    return LogDir(
        path=folder,
        broker=int(broker),
        cluster_id=properties.get("cluster.id"),
        clean=(folder / file_names.CLEAN_SHUTDOWN).exists(),
    )


def _replicas(log_dir: LogDir, topics: Collection[str] | None) -> Iterator[Replica]:
    for path in sorted(log_dir.path.iterdir()):
        parsed = parse_directory_name(path.name)
        if parsed is None or parsed.state is not DirectoryState.LIVE or not path.is_dir():
            continue
        if parsed.topic == _METADATA_TOPIC or (topics is not None and parsed.topic not in topics):
            continue
        yield _replica(log_dir, path, parsed)


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
    return Replica(
        log_dir=log_dir,
        topic=named.topic,
        partition=named.partition,
        path=path,
        segments=tuple(
            Segment(
                base_offset=offset,
                log=path / segment_file_name(*logs[offset]),
                active=offset == max(logs),
                swapped=logs[offset].state is FileState.SWAP,
            )
            for offset in sorted(logs)
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


def _unreadable_source(path: Path, error: OSError) -> UnreadableSource:
    return UnreadableSource(f"{error.filename or path} can't be read: {error.strerror or error}")
