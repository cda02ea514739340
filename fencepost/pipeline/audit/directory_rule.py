"""A rule about log directories: the evidence that it is given, which is a listing.

Rules about partitions are shown batches; these are shown the names in one log directory and its
small files, besides what there is of the broker's other directories and who all directories say
that they are. They do no I/O and keep no state, so that a task can follow them wherever a broker's
directories can be listed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from fencepost.pipeline.audit.rule import Severity, TopicPartition, Violation
from fencepost.pipeline.datasource.log_directories import (
    METADATA_TOPIC,
    OFFSET_CHECKPOINTS,
    find_all_dirs,
    named_broker,
    node_id_text,
    unreadable_source,
)
from fencepost.pipeline.datasource.schemas import Place
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_offsets,
    decode_properties,
)
from fencepost.storage.formats.file_names import (
    DirectoryState,
    PartitionDirectory,
    parse_directory_name,
)

SMALL_FILES: Final = (file_names.META_PROPERTIES, *OFFSET_CHECKPOINTS)
"""What a listing has the bytes of."""
_ENDS: Final = (file_names.HIGH_WATERMARKS, file_names.RECOVERY_POINTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryIdentity:
    """Who a log directory says that it is."""

    path: str
    properties: Mapping[str, str] | None
    """Of ``meta.properties``; None without the file."""
    has_metadata_log: bool
    """Whether it is where its node has the metadata log of KRaft."""

    @property
    def node_id(self) -> str:
        """As the file says it; empty where it says none."""
        return node_id_text(self.properties or {})


@dataclass(frozen=True, kw_only=True)
class DirectoryListing:
    """What there is in a log directory: names, and the bytes of small files."""

    path: str
    broker: int | None
    """Whose logs they are taken to be; None where they are not read, as nothing tells."""
    named_broker: int | None = None
    """By the directory's name, where fencepost made it."""
    clean: bool
    """Whether the broker ended in order."""
    directories: tuple[str, ...] = ()
    """Names of directories, those of partitions and others, in order."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Those of `SMALL_FILES` that are there and can be read."""
    checkpointed_ns: int = 0
    """When the newer one of the checkpoints of ends was written: high watermarks, recovery points.
    0 without any."""

    @cached_property
    def partitions(self) -> Mapping[str, PartitionDirectory]:
        """The directories of partitions by name, KRaft's own log left out."""
        parsed = {name: parse_directory_name(name) for name in self.directories}
        return {
            name: each
            for name, each in parsed.items()
            if each is not None and each.topic != METADATA_TOPIC
        }

    @cached_property
    def logs(self) -> frozenset[TopicPartition]:
        """The partitions that have a log in it, or a copy that is being moved here."""
        states = (DirectoryState.LIVE, DirectoryState.FUTURE)
        return frozenset(
            (each.topic, each.partition)
            for each in self.partitions.values()
            if each.state in states
        )

    @property
    def identity(self) -> DirectoryIdentity:
        """Who it says that it is."""
        data = self.files.get(file_names.META_PROPERTIES)
        return DirectoryIdentity(
            path=self.path,
            properties=None if data is None else decode_properties(data),
            has_metadata_log=f"{METADATA_TOPIC}-0" in self.directories,
        )

    def checkpoint(self, name: str) -> Mapping[TopicPartition, int]:
        """What a checkpoint of offsets says; nothing where it can't be read."""
        try:
            return decode_offsets(self.files.get(name, b""))
        except CorruptCheckpoint:
            return {}


def read_listings(folder: str | Path) -> tuple[DirectoryListing, ...]:
    """The listing of each log directory in a folder, by path.

    The checkpoints are read before the names are: what a running broker makes meanwhile is there.

    :raises UnreadableSource: When there is none, or they are of several clusters.
    """
    found = find_all_dirs(folder)
    listings = [read_listing(each.path, each.broker) for each in found.log_dirs]
    listings += [read_listing(path, None) for path in found.set_aside]
    return tuple(sorted(listings, key=lambda each: each.path))


def read_listing(path: Path, broker: int | None) -> DirectoryListing:
    """The listing of a log directory.

    :param broker: None where its logs are not read: then it may be one that can't be.
    :raises UnreadableSource: When it can't be read.
    """
    checkpointed_ns = max(map(modified_ns, (path / name for name in _ENDS)))
    files = {name: data for name in SMALL_FILES if (data := _read(path / name)) is not None}
    try:
        names = sorted(each.name for each in path.iterdir() if each.is_dir())
    except OSError as error:
        if broker is not None:
            raise unreadable_source(path, error) from error
        names = []
    return DirectoryListing(
        path=str(path),
        broker=broker,
        named_broker=named_broker(path),
        clean=(path / file_names.CLEAN_SHUTDOWN).exists(),
        directories=tuple(names),
        files=files,
        checkpointed_ns=checkpointed_ns,
    )


def modified_ns(path: Path) -> int:
    """When a file was written last, in nanoseconds since 1970-01-01 UTC; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEvidence:
    """All that a rule about directories is shown."""

    listing: DirectoryListing
    """The directory that it is about."""
    siblings: tuple[DirectoryListing, ...] = ()
    """The other directories of its broker."""
    identities: tuple[DirectoryIdentity, ...] = ()
    """Of all directories, its own too, by path."""


def directory_violation(
    rule: str,
    listing: DirectoryListing,
    message: str,
    explanation: str | None = None,
    *,
    partition: TopicPartition | None = None,
    offset: int | None = None,
) -> Violation:
    """A violation in a directory, whose path the message begins with.

    :param partition: Where it is about one.
    """
    topic, index = (None, None) if partition is None else partition
    return Violation(
        rule=rule,
        topic=topic,
        partition=index,
        message=f"{listing.path}: {message}",
        explanation=explanation,
        broker=listing.broker,
        place=Place.LOG,
        offset=offset,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryRule:
    """What must be so of log directories."""

    name: str
    """In kebab-case, as ``--rule`` and the column ``rule`` say it."""
    about: str
    """One sentence for people."""
    source: str
    """Where it is written: a KIP, or a part of Kafka."""
    order: int
    """Where it stands among the rules about directories, which come before those about logs."""
    severity: Severity
    """Of what it finds."""
    remedy: str
    """What can be done about it."""
    check: Callable[[DirectoryEvidence], Iterator[Violation]]

    @property
    def needs_trace(self) -> bool:
        """None does."""
        return False

    @property
    def needs_records(self) -> bool:
        """None does."""
        return False
