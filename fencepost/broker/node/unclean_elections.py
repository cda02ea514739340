"""What an unclean election loses: the records that the partition had and the new leader lacks.

They are those of the last leader's log behind the point up to which the new leader's log is the
same; where there was no leader, of the longest log in the ISR or among the eligible replicas.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from fencepost.broker.core.events import Events, Kind
from fencepost.broker.metadata.image import ClusterImage, PartitionImage
from fencepost.broker.node.broker import Broker
from fencepost.protocol.records import BatchHeader, iter_headers
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import Log

_READ_BYTES: Final = 1 << 20


class LostRecords(Struct, frozen=True, kw_only=True):
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


def emit_lost(events: Events, topic: str, index: int, lost: LostRecords) -> None:
    """Emit what a partition has lost."""
    events.emit(Kind.RECORDS_LOST, topic=topic, partition=index, **asdict(lost))


def emit_lost_by_elections(
    events: Events,
    brokers: Mapping[int, Broker],
    before: ClusterImage,
    after: ClusterImage,
    changed: frozenset[str],
) -> None:
    """Emit what each unclean election of a new image loses, before any broker acts on it.

    :param changed: Names of topics that are new, gone or different in it.
    """
    for topic, index, was, now in _unclean_elections(before, after, changed):
        lost = lost_records(brokers, was, topic, index, now.leader)
        if lost is not None:
            emit_lost(events, topic, index, lost)


def _unclean_elections(
    before: ClusterImage, after: ClusterImage, changed: frozenset[str]
) -> Iterator[tuple[str, int, PartitionImage, PartitionImage]]:
    for name in sorted(changed):
        old, new = before.topics.get(name), after.topics.get(name)
        if old is None or new is None or old.topic_id != new.topic_id:
            continue
        pairs = enumerate(zip(old.partitions, new.partitions, strict=False))
        for index, was, now in [(i, a, b) for i, (a, b) in pairs if a is not b]:
            if now.is_led_uncleanly_after(was):
                yield name, index, was, now


def lost_records(
    brokers: Mapping[int, Broker], partition: PartitionImage, topic: str, index: int, leader: int
) -> LostRecords | None:
    """What is lost if a broker leads a partition from now on; None where that is nothing."""
    logs = {
        broker_id: log
        for broker_id in partition.replicas
        if broker_id in brokers and (log := _log_of(brokers[broker_id], topic, index)) is not None
    }
    holder = _last_holder(partition, logs)
    if holder is None or holder == leader or leader not in logs:
        return None
    log = logs[holder]
    start = _common_end(log, logs[leader])
    if start >= log.log_end_offset:
        return None
    committed_end = _committed_end(brokers, topic, index, partition, logs)
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


def _log_of(broker: Broker, topic: str, index: int) -> Log | None:
    """A replica's log, also where its broker is down."""
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
    if not (log.config.keeps_leader_epochs and other.config.keeps_leader_epochs):
        return _end_of_same_batches(log, other)
    epochs = {entry.epoch for entry in other.epoch_entries()}
    for entry in reversed(log.epoch_entries()):
        if entry.epoch in epochs:
            return min(_end_of(each, entry.epoch) for each in (log, other))
    return log.log_start_offset


def _end_of_same_batches(log: Log, other: Log) -> int:
    """As `_common_end`, of logs in an old message format, which have no epochs (KIP-101)."""
    end = start = max(log.log_start_offset, other.log_start_offset)
    try:
        for ours, theirs in zip(_headers(log, start), _headers(other, start), strict=False):
            # The checksum covers all of a batch but where it lies and its leader epoch.
            if (ours.base_offset, ours.crc) != (theirs.base_offset, theirs.crc):
                break
            end = ours.last_offset + 1
    except StorageFailure:  # the files of a broker that is down can't be read
        return min(log.log_end_offset, other.log_end_offset)
    return end


def _end_of(log: Log, epoch: int) -> int:
    """Where an epoch that a log has ends; known also of a log that is closed."""
    later = (each.start_offset for each in log.epoch_entries() if each.epoch > epoch)
    return next(later, log.log_end_offset)


def _committed_end(
    brokers: Mapping[int, Broker],
    topic: str,
    index: int,
    partition: PartitionImage,
    logs: dict[int, Log],
) -> int:
    """The high watermark as the leader knows it, or what all of the ISR have."""
    leader = brokers.get(partition.leader)
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
