"""What an unclean election loses: the records that the partition had and the new leader lacks.

They are those of the last leader's log behind the point up to which the new leader's log is the
same; where there was no leader, of the longest log in the ISR or among the eligible replicas.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.records import BatchHeader, iter_headers
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import Log

_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRecords:
    """Records that a replica has, and the new leader does not."""

    broker: int
    """The broker that has them. It truncates its log when it follows the new leader."""
    start_offset: int
    end_offset: int
    """Exclusive."""
    records: int | None
    """None where the log can't be read."""
    committed_records: int | None
    """Those of them below the high watermark; where that is not known because the leader is down,
    those that every replica of the ISR has."""


def lost_records(cluster: Cluster, topic: str, index: int, leader: int) -> LostRecords | None:
    """What is lost if a broker leads a partition from now on; None where that is nothing."""
    partition = cluster.controller.partition(topic, index)
    logs = {
        broker_id: log
        for broker_id in partition.replicas
        if (log := _log_of(cluster, broker_id, topic, index)) is not None
    }
    holder = _last_holder(partition, logs)
    if holder is None or holder == leader or leader not in logs:
        return None
    log = logs[holder]
    start = _common_end(log, logs[leader])
    if start >= log.log_end_offset:
        return None
    committed_end = _committed_end(cluster, topic, index, partition, logs)
    records = committed = None
    try:
        headers = list(_headers(log, start))
    except StorageFailure:
        pass  # the files of a broker that is down can't be read
    else:
        records = sum(header.record_count for header in headers)
        committed = sum(each.record_count for each in headers if each.last_offset < committed_end)
    return LostRecords(
        broker=holder,
        start_offset=start,
        end_offset=log.log_end_offset,
        records=records,
        committed_records=committed,
    )


def _log_of(cluster: Cluster, broker_id: int, topic: str, index: int) -> Log | None:
    """A replica's log, also where its broker is down."""
    broker = cluster.brokers[broker_id]
    replica = broker.replicas.get((topic, index))
    return broker.storage.peek_log(topic, index) if replica is None else replica.log


def _last_holder(partition: PartitionImage, logs: dict[int, Log]) -> int | None:
    """The leader, or else the replica whose log went farthest among those that may lead."""
    if partition.leader in logs:
        return partition.leader
    candidates = [each for each in (*partition.isr, *partition.elr) if each in logs]

    def progress(broker_id: int) -> tuple[int, int]:
        epoch = logs[broker_id].latest_epoch
        return (-1 if epoch is None else epoch), logs[broker_id].log_end_offset

    return max(candidates, key=progress, default=None)


def _common_end(log: Log, other: Log) -> int:
    """The offset up to which two logs have the same records."""
    epochs = {entry.epoch for entry in other.epoch_entries()}
    for entry in reversed(log.epoch_entries()):
        if entry.epoch in epochs:
            return min(_end_of(each, entry.epoch) for each in (log, other))
    return log.log_start_offset


def _end_of(log: Log, epoch: int) -> int:
    """Where an epoch that a log has ends; known also of a log that is closed."""
    later = (each.start_offset for each in log.epoch_entries() if each.epoch > epoch)
    return next(later, log.log_end_offset)


def _committed_end(
    cluster: Cluster, topic: str, index: int, partition: PartitionImage, logs: dict[int, Log]
) -> int:
    """The high watermark as the leader knows it, or what all of the ISR have."""
    leader = cluster.brokers.get(partition.leader)
    replica = None if leader is None else leader.replicas.get((topic, index))
    if replica is not None:
        return replica.high_watermark
    in_sync = [each for each in (partition.isr or partition.elr) if each in logs]
    return min((logs[each].log_end_offset for each in in_sync), default=0)


def _headers(log: Log, start: int) -> Iterable[BatchHeader]:
    """The headers of the batches from an offset on.

    :raises StorageFailure: When they can't be read.
    """
    offset = max(start, log.local_log_start_offset)
    while offset < log.log_end_offset:
        found = log.read(
            offset, max_bytes=_READ_BYTES, upper_bound=log.log_end_offset, min_one_batch=True
        )
        headers = [header for buffer in found.buffers for _, header in iter_headers(buffer)]
        if not headers:
            return
        yield from (each for each in headers if each.last_offset >= offset)
        offset = headers[-1].last_offset + 1
