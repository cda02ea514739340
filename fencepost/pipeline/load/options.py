"""The options of a load, and its results: loaded, refused for good, or interrupted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from fencepost.pipeline.load.batch_encoding import BatchLimits

FORMATS: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
"""Formats by how a file's name ends, once that of a compression is taken away."""
_PACKED: Final = frozenset({".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"})
DEFAULT_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The source: files, or folders of files, which do not change while they are loaded.

    :ivar paths: As Spark takes them: local ones, or URLs of what Spark can reach.
    :ivar format: ``parquet``, ``csv`` or ``json`` (an object a line).
    :ivar options: Of Spark's reader of that format.
    """

    paths: tuple[str, ...]
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns make a record.

    :ivar key: None: records have no key.
    :ivar value: None: the column ``value`` where there is one, otherwise the row as JSON.
    :ivar timestamp: A timestamp, or milliseconds since the epoch. Where it is None or null, the
        time of modification of the row's file.
    :ivar headers: A map, or an array of structs of ``key`` and ``value``.
    :ivar partition: The number of the row's partition. None: by the key as Kafka's producers do
        it, and by the row's content where it has none.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where records go.

    :ivar bootstrap: ``host:port,...``, as executors reach them.
    :ivar topic: One with ``check.expected.offsets=true``.
    :ivar limits: Where batches and requests end. Best the same in every attempt: then existing
        batches are compared byte by byte, and not record by record.
    :ivar patience_s: How long to go on with one request while brokers fail, in seconds.
    """

    bootstrap: str
    topic: str
    limits: BatchLimits = field(default_factory=BatchLimits)
    patience_s: float = DEFAULT_PATIENCE_S


def format_of(path: str) -> str | None:
    """The format that a file's name tells of; None where it tells of none."""
    name = PurePosixPath(path)
    suffix = name.suffix.lower()
    if suffix in _PACKED:
        suffix = name.with_suffix("").suffix.lower()
    return FORMATS.get(suffix)


class LoadRefused(Exception):
    """The topic has something else than the source, or will not take its rows.

    To start again does not help. The text names partition and offset, where there is one.
    """


class LoadInterrupted(Exception):
    """It could not be seen through. To start again is safe, and goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoaded:
    """A partition has all its rows."""

    partition: int
    base: int
    """Offset of the first of them."""
    found: int
    """Records that earlier attempts had brought there."""
    appended: int
    """Records that this one has."""

    @property
    def next_offset(self) -> int:
        """Behind the last of them."""
        return self.base + self.found + self.appended


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """All rows are in the topic, and every in-sync replica has them."""

    topic: str
    partitions: tuple[PartitionLoaded, ...]
    """Those that have any, by their numbers."""

    @property
    def found(self) -> int:
        """Records that earlier attempts had brought there, as the last attempt of each task saw."""
        return sum(each.found for each in self.partitions)

    @property
    def appended(self) -> int:
        """Records that this one has appended."""
        return sum(each.appended for each in self.partitions)

    @property
    def rows(self) -> int:
        """All of the source."""
        return self.found + self.appended
