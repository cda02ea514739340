"""Clusters that do something wrong to their logs, to show that an audit notices.

``python -m tests.pipeline.audit.log_mutants nothing_truncated,... serve ...`` is ``fencepost
serve`` with some of the simulation's mutants.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from fencepost.broker.data_dir import directory, partition_directories
from fencepost.broker.data_dir.offset_checkpoints import OffsetCheckpoints
from fencepost.broker.data_dir.partition_directories import PartitionDirectories
from fencepost.broker.handlers import produce
from fencepost.cli import main
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.transaction_markers import TransactionMarker, encode_marker
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.segment_files import ProducerSnapshots
from fencepost.storage.files.transaction_index_file import TransactionIndexFile
from fencepost.storage.formats.checkpoints import encode_partition_metadata
from fencepost.storage.formats.file_names import FileState
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from tests.simulation import mutants, tier_mutants, transaction_mutants


def producers_unchecked(patch: pytest.MonkeyPatch) -> None:
    """Each batch of a producer is appended, whatever it says."""
    patch.setattr(ProducerStateManager, "duplicate_of", lambda _self, _header: None)
    patch.setattr(ProducerStateManager, "refusal", lambda _self, _header, **_how: None)
    patch.setattr(ProducerStateManager, "verification_refusal", lambda _self, _header, _guard: None)
    patch.setattr(produce, "_is_transactional", lambda _request, **_how: False)


def markers_turned(patch: pytest.MonkeyPatch) -> None:
    """A transaction that is to be committed has markers that abort it."""

    def to_batch(self: TransactionMarker, timestamp_ms: int) -> bytearray:
        return encode_marker(replace(self, committed=False), timestamp_ms)

    patch.setattr(TransactionMarker, "to_batch", to_batch)


def coordinator_epochs_fall(patch: pytest.MonkeyPatch) -> None:
    """Each marker has an older coordinator epoch than the one before, and none is looked at."""
    epochs = iter(range(1_000_000, 0, -1))

    def to_batch(self: TransactionMarker, timestamp_ms: int) -> bytearray:
        return encode_marker(replace(self, coordinator_epoch=next(epochs)), timestamp_ms)

    patch.setattr(TransactionMarker, "to_batch", to_batch)
    patch.setattr(ProducerStateManager, "marker_refusal", lambda _self, _batch, _header, _by: None)


def snapshots_not_written(patch: pytest.MonkeyPatch) -> None:
    """There are no producer snapshots."""
    patch.setattr(ProducerSnapshots, "write", lambda _self, _offset, _producers, **_how: None)


def snapshots_without_batches(patch: pytest.MonkeyPatch) -> None:
    """Producer snapshots know no batches."""
    whole = ProducerSnapshots.write

    def write(
        self: ProducerSnapshots,
        offset: int,
        producers: Iterable[ProducerStateEntry],
        *,
        sync: bool = False,
    ) -> None:
        whole(self, offset, [replace(each, batches=()) for each in producers], sync=sync)

    patch.setattr(ProducerSnapshots, "write", write)


def aborts_not_indexed(patch: pytest.MonkeyPatch) -> None:
    """Transaction indexes stay empty."""
    patch.setattr(TransactionIndexFile, "append", lambda _self, _transaction: None)


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
    "producers_unchecked": producers_unchecked,
    "snapshots_not_written": snapshots_not_written,
    "snapshots_without_batches": snapshots_without_batches,
    "aborts_not_indexed": aborts_not_indexed,
    "markers_turned": markers_turned,
    "coordinator_epochs_fall": coordinator_epochs_fall,
    "one_marker_enough": transaction_mutants.one_marker_enough,
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
