"""Clusters that do something wrong to their logs, to show that an audit notices.

``python -m tests.pipeline.audit.log_mutants nothing_truncated,... serve ...`` is ``fencepost
serve`` with some of the simulation's mutants.
"""

from __future__ import annotations

import sys
from typing import Final
from uuid import UUID, uuid4

import pytest

from fencepost.broker.data_dir import directory, partition_directories
from fencepost.broker.data_dir.offset_checkpoints import OffsetCheckpoints
from fencepost.broker.data_dir.partition_directories import PartitionDirectories
from fencepost.cli import main
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.formats.checkpoints import encode_partition_metadata
from fencepost.storage.formats.file_names import FileState
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from tests.simulation import mutants, tier_mutants


def log_start_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Segments are deleted at the head, and neither checkpoint knows of it."""
    patch.setattr(LeaderEpochCache, "truncate_from_start", lambda _cache, _offset: None)
    patch.setattr(OffsetCheckpoints, "record_log_start", lambda _offsets, _key, _log: None)


def topic_ids_made_up(patch: pytest.MonkeyPatch) -> None:
    """Each replica's ``partition.metadata`` has a topic id of its own."""

    def encode(_topic_id: UUID) -> bytes:
        return encode_partition_metadata(uuid4())

    patch.setattr(partition_directories, "encode_partition_metadata", encode)


def swaps_not_finished(patch: pytest.MonkeyPatch) -> None:
    """Compaction leaves ``.swap`` files, and removes what they are to replace."""
    whole = FileSegment.rename

    def rename(self: FileSegment, state: FileState) -> None:
        if state is not FileState.LIVE:
            whole(self, state)

    patch.setattr(FileSegment, "rename", rename)


def deletions_not_checkpointed(patch: pytest.MonkeyPatch) -> None:
    """Checkpoints go on naming the logs that are deleted."""
    patch.setattr(OffsetCheckpoints, "remove", lambda _offsets, _key: None)
    patch.setattr(OffsetCheckpoints, "keep_only", lambda _offsets, _keys: None)


def deletions_not_finished(patch: pytest.MonkeyPatch) -> None:
    """Directories on their way out stay."""
    patch.setattr(PartitionDirectories, "_removal", lambda _directories, _path: iter(()))
    patch.setattr(partition_directories, "free_in_steps", lambda _logs: iter(()))


def directory_ids_alike(patch: pytest.MonkeyPatch) -> None:
    """Every log directory is made with the same directory id."""
    patch.setattr(directory, "format_uuid", lambda _unique: format_uuid(UUID(int=7)))


MUTANTS: Final = {
    "nothing_truncated": mutants.nothing_truncated,
    "everything_closed_deleted": tier_mutants.everything_closed_deleted,
    "deletions_not_checkpointed": deletions_not_checkpointed,
    "deletions_not_finished": deletions_not_finished,
    "directory_ids_alike": directory_ids_alike,
    "swaps_not_finished": swaps_not_finished,
    "topic_ids_made_up": topic_ids_made_up,
    "log_start_not_recorded": log_start_not_recorded,
    "epochs_of_segments_forgotten": tier_mutants.epochs_of_segments_forgotten,
}


def run(arguments: list[str]) -> int:
    names, *rest = arguments
    patch = pytest.MonkeyPatch()
    for name in names.split(","):
        MUTANTS[name](patch)
    return main(rest)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
