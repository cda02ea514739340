"""A log in files, as one in memory that answers the same."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from fencepost.protocol.records import Record, iter_records
from fencepost.storage.config import LogConfig
from fencepost.storage.contents import LogContents
from fencepost.storage.epochs import LeaderEpochCache
from fencepost.storage.files.failing import FailingFiles
from fencepost.storage.files.log import FileLog
from fencepost.storage.files.opening import Opened, open_log
from fencepost.storage.files.shared import Shared
from fencepost.storage.memory import MemorySegments
from fencepost.storage.memory_segment import MemorySegment
from fencepost.storage.producers import ProducerStates, ProducerView
from fencepost.storage.segmented import SegmentedLog

DIRECTORY = PurePath("/data/t-0")


def reopen(
    files: FailingFiles,
    config: LogConfig,
    *,
    clean: bool,
    now_ms: int = 0,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    cleaned_until: int = 0,
    shared: Shared | None = None,
) -> Opened:
    return open_log(
        files,
        DIRECTORY,
        "t-0",
        config,
        now_ms=now_ms,
        shared=shared or Shared(),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        cleaned_until=cleaned_until,
    )


def mirror(log: FileLog) -> SegmentedLog:
    """A log in memory that is what `log` is now."""
    segments = []
    for segment in log._segments.all:
        twin = MemorySegment(
            segment.base_offset,
            created_ms=segment.created_ms,
            producer_snapshot=segment.producer_snapshot,
        )
        for batch, header in segment.scan():
            twin.append(bytes(batch), header, segment.last_modified_ms)
        twin.last_modified_ms = segment.last_modified_ms
        segments.append(twin)
    producers = ProducerStates()
    producers.restore(log.producers())
    contents = LogContents(
        segments=segments,
        epochs=LeaderEpochCache(log.epoch_entries()),
        producers=producers,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        cleaned_until=log.cleaned_until,
    )
    return SegmentedLog(log.name, log.config, MemorySegments(), contents)


def all_records(log: SegmentedLog) -> list[Record]:
    """Every record that is there, before the log start too."""
    return [
        record
        for segment in log._segments.all
        for batch, _ in segment.scan()
        for record in iter_records(batch)
    ]


def as_kept(producers: Sequence[ProducerView]) -> list[ProducerView]:
    """Producers as a snapshot file keeps them: with their last batch."""
    return [replace(producer, batches=producer.batches[-1:]) for producer in producers]
