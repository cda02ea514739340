"""Names of the files and directories of a log directory, and what they say.

``DIR/<topic>-<partition>/`` holds a log. Its segments' files are named by the base offset in 20
digits; a producer snapshot by the offset that it was taken before. A second suffix tells that a
file is on its way in or out: ``.cleaned`` (compaction is writing it), ``.swap`` (it is whole and
about to take the place of others), ``.deleted``. A directory on its way out is
``<topic>-<partition>.<id>-delete``.
"""

import re
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
KEY_OFFSETS: Final = "key-offset-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
LOCK: Final = ".lock"

MAX_NAME: Final = 255
"""The most characters of a file's or a directory's name."""
MAX_FUTURE_TOPIC: Final = MAX_NAME - len("-." + 32 * "f" + "-future")
"""The most characters of a topic and a partition that can be moved to another directory."""


class FileKind(Enum):
    """What a file of a segment holds, by its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"


class FileState(Enum):
    """Whether a file of a segment is in use, by its second suffix."""

    LIVE = ""
    CLEANED = ".cleaned"
    SWAP = ".swap"
    DELETED = ".deleted"


class SegmentFile(NamedTuple):
    """What the name of a segment's file says."""

    offset: int
    kind: FileKind
    state: FileState


class DirectoryState(Enum):
    """Whether a partition's directory is in use, by its suffix."""

    LIVE = ""
    DELETED = "delete"
    FUTURE = "future"
    """A copy that was being moved here from another directory of the same broker."""
    STRAY = "stray"
    """Kafka found that no partition of the cluster belongs to it."""


class PartitionDirectory(NamedTuple):
    """What the name of a partition's directory says.

    The topic may be cut short where it is not live: see `deleted_directory_name`.
    """

    topic: str
    partition: int
    state: DirectoryState


_SEGMENT_FILE: Final = re.compile(
    r"(?P<offset>[0-9]{20})"
    r"(?P<kind>\.(?:log|index|timeindex|txnindex|snapshot))"
    r"(?P<state>\.(?:cleaned|swap|deleted))?",
)
_DIRECTORY: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)"
    r"(?:\.(?P<id>[0-9a-zA-Z]+)-(?P<state>delete|future|stray))?",
)


def offset_name(offset: int) -> str:
    """An offset in 20 digits, which begin the names of its segment's files."""
    return f"{offset:020d}"


def segment_file_name(offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> str:
    """The name of a segment's file: ``00000000000000000042.log``."""
    return offset_name(offset) + kind.value + state.value


def parse_segment_file_name(name: str) -> SegmentFile | None:
    """What the name of a segment's file says; None where it is no such name."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    state = FileState(match["state"] or "")
    return SegmentFile(int(match["offset"]), FileKind(match["kind"]), state)


def directory_name(topic: str, partition: int) -> str:
    """The name of a partition's directory: ``topic-0``."""
    return f"{topic}-{partition}"


def deleted_directory_name(topic: str, partition: int, unique: UUID) -> str:
    """The name of a partition's directory on its way out: ``topic-0.<32 hex digits>-delete``.

    Of a topic whose name is too long only so much is in it that the whole has 255 characters.
    """
    end = f"-{partition}.{unique.hex}-{DirectoryState.DELETED.value}"
    return topic[: MAX_NAME - len(end)] + end


def future_directory_name(topic: str, partition: int, unique: UUID) -> str:
    """The name of a partition's directory on its way in: ``topic-0.<32 hex digits>-future``.

    The topic's name and the number have `MAX_FUTURE_TOPIC` characters together at most.
    """
    return f"{topic}-{partition}.{unique.hex}-{DirectoryState.FUTURE.value}"


def parse_directory_name(name: str) -> PartitionDirectory | None:
    """What the name of a partition's directory says; None where it is no such name.

    A topic may end like that as well (``a-0.b-delete-1``); the last number tells.
    """
    match = _DIRECTORY.fullmatch(name)
    if match is None:
        return None
    state = DirectoryState(match["state"] or "")
    return PartitionDirectory(match["topic"], int(match["partition"]), state)
