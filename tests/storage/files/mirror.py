"""A log in files, as one in memory that answers the same."""

from collections.abc import Sequence
from pathlib import PurePath

from msgspec.structs import replace

from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.inventory import LogInventory
from fencepost.storage.files.open_log import OpenedLog, open_log
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.segments import InitialLogState
from fencepost.storage.memory import MemorySegment, MemorySegmentStore
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import segmented

DIRECTORY = PurePath("/data/t-0")


def reopen(
    files: FaultyFileSystem,
    config: LogConfig,
    *,
    clean: bool,
    now_ms: int = 0,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaned_until: int = 0,
    shared: ProcessLimits | None = None,
    inventory: LogInventory | None = None,
) -> OpenedLog:
    return open_log(
        files,
        DIRECTORY,
        "t-0",
        config,
        now_ms=now_ms,
        shared=shared or ProcessLimits(),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_until=cleaned_until,
        inventory=inventory,
    )


def mirror(log: FileLog) -> SegmentedLog:
    """A log in memory that is what `log` is now."""
    segments = []
    for segment in segmented(log).local_segments.all:
        twin = MemorySegment(
            segment.base_offset,
            created_ms=segment.created_ms,
            producer_snapshot=segment.producer_snapshot,
        )
        for batch, header in segment.scan():
            twin.append(bytes(batch), header, segment.last_modified_ms)
        for transaction in segment.aborted:
            twin.add_aborted(transaction)
        twin.last_modified_ms = segment.last_modified_ms
        segments.append(twin)
    producers = ProducerStateManager()
    producers.restore(log.producers())
    contents = InitialLogState(
        segments=segments,
        epochs=LeaderEpochCache(log.epoch_entries()),
        producers=producers,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        cleaned_until=log.cleaned_until,
    )
    return SegmentedLog(log.name, log.config, MemorySegmentStore(), contents)


def all_records(log: Log) -> list[Record]:
    """Every record that is there, before the log start too."""
    return [
        record
        for segment in segmented(log).local_segments.all
        for batch, _ in segment.scan()
        for record in iter_records(batch)
    ]


def as_kept(producers: Sequence[ProducerStateEntry]) -> list[ProducerStateEntry]:
    """Producers as a snapshot file keeps them: with their last batch, and one time for both."""
    return [
        replace(
            producer,
            batches=tuple(
                batch._replace(timestamp=producer.last_timestamp) for batch in producer.batches[-1:]
            ),
        )
        for producer in producers
    ]
