"""Records as a test appends and reads them: the verbs, without HTTP.

They go to the leader's replica, and not through a listener: no fault hits them, and no journal has
them. All else is as for a client: an append is checked, replicated and committed as that of a
Produce request, and a read ends at the high watermark or at the last stable offset.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.operator_actions import find_leader
from fencepost.broker.produce.append import ALL, PartitionOutcome, PendingAppend, find_targets
from fencepost.broker.produce.expected_offsets import append_all_or_none
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.broker.tiering.remote_reader import RemoteReader
from fencepost.broker.tiering.remote_segments import list_metadata
from fencepost.protocol.byte_utils import Buffer, murmur2
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.expected_offsets import UNSPECIFIED
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, Record, build_batch, iter_headers
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import OffsetMovedToTier
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import ObjectStore, TierError
from fencepost.storage.tier.segment_metadata import TopicIdPartition

LEADER: Final = 1
"""acks=1: the leader's append is enough."""
_CLIENT_ID: Final = "fencepost"
_LAST_VERSION_WITH_NAMES: Final = 12
_POSITIVE: Final = 0x7FFFFFFF

Headers = tuple[tuple[str, bytes | None], ...]


class NewRecord(Struct, frozen=True, kw_only=True):
    """A record to append."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """Since 1970-01-01 UTC; None is the cluster's time."""


# -- appending ----------------------------------------------------------------------------------


class PartitionAppend(Struct, frozen=True, kw_only=True):
    """The batch of one partition, and its outcome."""

    topic: str
    index: int
    positions: tuple[int, ...]
    """Of its records among all of the call, from 0."""
    leader: int
    """The broker id of the leader that it went to."""
    outcome: PartitionOutcome

    @property
    def error(self) -> ErrorCode:
        """NONE where the records are committed (acks=1: appended), REQUEST_TIMED_OUT until then."""
        code = self.outcome.response.error_code
        if code or self.outcome.appended is None:
            return ErrorCode(code)
        self.outcome.appended.settle()  # it may not have been waited for
        return self.outcome.appended.error

    @property
    def base_offset(self) -> int:
        """Of its first record; -1 where nothing was appended."""
        return self.outcome.response.base_offset


class Append(Struct, frozen=True, kw_only=True):
    """What became of the records of one call, partition by partition."""

    cluster: Cluster
    parts: tuple[PartitionAppend, ...]

    def wait(self) -> Wait[bool]:
        """Complete when every batch is committed, or cannot be any more; cancel it to give up."""
        pending = [part.outcome.appended for part in self.parts if part.outcome.appended]
        wait: Wait[bool] = Wait()
        wait.watch_each(pending, lambda: True)
        return wait

    def offsets(self) -> list[tuple[int, int]]:
        """Partition and offset of each record, in the order of the call.

        :raises ControllerError: When a batch is not committed: why, and what was appended.
        """
        failed = [part for part in self.parts if part.error]
        if failed:
            reasons = "; ".join(_reason(self.cluster, part) for part in self.parts)
            raise ControllerError(failed[0].error, reasons)
        found = {
            position: (part.index, part.base_offset + at)
            for part in self.parts
            for at, position in enumerate(part.positions)
        }
        return [found[position] for position in range(len(found))]


def append(
    cluster: Cluster,
    topic: str,
    records: Sequence[NewRecord],
    *,
    partition: int | None = None,
    acks: int = ALL,
) -> Append:
    """Append records, those of one partition as one batch.

    Without a partition each record with a key goes where Kafka's default partitioner sends it, and
    those without a key together to the partition whose log ends first.

    :param acks: `ALL` or `LEADER`. Followers have fetched, as far as they can, when this returns.
    :raises ControllerError: When a partition has no leader: then nothing was appended to any.
    """
    if topic in INTERNAL_TOPICS:
        raise ControllerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic} is the brokers' own: what is appended to it would not reach its coordinators",
        )
    positions: dict[int, list[int]] = {}
    for at, index in enumerate(_chosen_partitions(cluster, topic, records, partition)):
        positions.setdefault(index, []).append(at)
    leaders = {index: find_leader(cluster, topic, index) for index in positions}
    parts: list[PartitionAppend] = []
    for broker in dict.fromkeys(broker for broker, _ in leaders.values()):
        batches = {
            index: _batch(cluster, replica, [records[at] for at in positions[index]])
            for index, (leader, replica) in leaders.items()
            if leader is broker
        }
        outcomes = _append_batches(broker, topic, batches, acks)
        parts += (
            PartitionAppend(
                topic=topic,
                index=index,
                positions=tuple(positions[index]),
                leader=broker.broker_id,
                outcome=outcome,
            )
            for index, outcome in zip(batches, outcomes, strict=True)
        )
    cluster.scheduler.run_due()
    return Append(cluster=cluster, parts=tuple(parts))


def _chosen_partitions(
    cluster: Cluster, topic: str, records: Sequence[NewRecord], partition: int | None
) -> list[int]:
    """The partition of each record."""
    if partition is not None:
        return [partition] * len(records)
    image = cluster.controller.image.topics.get(topic)
    if image is None:
        raise ControllerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
    count = len(image.partitions)
    without_key = (
        _least_filled(cluster, topic, count) if any(each.key is None for each in records) else 0
    )
    return [
        without_key if each.key is None else (murmur2(each.key) & _POSITIVE) % count
        for each in records
    ]


def _least_filled(cluster: Cluster, topic: str, count: int) -> int:
    """The partition whose log ends first, among those that have a leader; the first without any.

    Kafka's partitioner draws one. A test is to find its records at the same place each time.
    """
    ends: list[tuple[int, int]] = []
    for index in range(count):
        try:
            _, replica = find_leader(cluster, topic, index)
        except ControllerError:
            continue
        ends.append((replica.log.log_end_offset, index))
    return min(ends, default=(0, 0))[1]


def _batch(cluster: Cluster, replica: Replica, records: Sequence[NewRecord]) -> bytearray:
    # Under KIP-27 a base offset of 0 is an expectation, and it is none of a test's that says none.
    base = UNSPECIFIED if replica.log.config.check_expected_offsets else 0
    now_ms = cluster.scheduler.wall_ms()
    return build_batch(
        [
            Record(
                base + at,
                now_ms if each.timestamp_ms is None else each.timestamp_ms,
                each.key,
                each.value,
                each.headers,
            )
            for at, each in enumerate(records)
        ],
        base_offset=base,
    )


def _append_batches(
    broker: Broker, topic: str, batches: dict[int, bytearray], acks: int
) -> list[PartitionOutcome]:
    context = Context(
        broker=broker,
        version=_LAST_VERSION_WITH_NAMES,
        client_id=_CLIENT_ID,
        peer=Peer(connection_id=_CLIENT_ID, host=""),
        now_ms=broker.scheduler.now_ms(),
        wall_ms=broker.scheduler.wall_ms(),
    )
    data = tuple(
        PartitionProduceData(index=index, records=batch) for index, batch in batches.items()
    )
    request = ProduceRequest(
        acks=acks, timeout_ms=0, topic_data=(TopicProduceData(name=topic, partition_data=data),)
    )
    return append_all_or_none(context, find_targets(context, request), acks)


def _reason(cluster: Cluster, part: PartitionAppend) -> str:
    """What became of one partition's batch."""
    name, code, first = f"{part.topic}-{part.index}", part.error, part.base_offset
    count = len(part.positions)
    offsets = f"offset {first}" if count == 1 else f"offsets {first} to {first + count - 1}"
    if code is ErrorCode.NONE:
        return f"{name} has {offsets}"
    if first < 0:
        return f"{name}: nothing was appended: {_refusal(cluster, part)}"
    appended = f"{name}: appended at {offsets} by broker {part.leader}, but not committed"
    pending = part.outcome.appended
    if code is ErrorCode.REQUEST_TIMED_OUT and pending is not None:
        high_watermark = f"the high watermark is {pending.replica.high_watermark}"
        return f"{appended} in time: {', '.join((high_watermark, *_laggards(cluster, pending)))}"
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return f"{appended}: it does not lead any more"
    return f"{appended}: {code.name}"


def _refusal(cluster: Cluster, part: PartitionAppend) -> str:
    response = part.outcome.response
    replica = cluster.brokers[part.leader].replicas.get((part.topic, part.index))
    if response.error_code == ErrorCode.NOT_ENOUGH_REPLICAS and replica is not None:
        return f"min.insync.replicas is {replica.min_insync_replicas}, the ISR {list(replica.isr)}"
    of_records = "; ".join(
        f"record {part.positions[each.batch_index]}: {each.batch_index_error_message}"
        for each in response.record_errors
    )
    return of_records or response.error_message or ErrorCode(response.error_code).name


def _laggards(cluster: Cluster, pending: PendingAppend) -> Iterator[str]:
    """The replicas of the ISR that keep the high watermark down."""
    replica = pending.replica
    for broker_id, progress in replica.followers.items():
        if broker_id in replica.isr and progress.log_end_offset < pending.next_offset:
            holds = cluster.brokers[broker_id].replica_manager.holds
            is_held = (replica.topic, replica.index) in holds
            yield f"broker {broker_id} of the ISR {'is held' if is_held else 'has not fetched it'}"


# -- reading ------------------------------------------------------------------------------------


class StoredRecord(NamedTuple):
    """A record as it is in the log, with the header of its batch."""

    record: Record
    header: BatchHeader
    transaction: Literal["ongoing", "committed", "aborted"] | None = None
    """The state of its transaction; None of no transaction, or where it was not looked up."""


class ReadableRange(NamedTuple):
    """The offsets of a partition that a consumer may read.

    :ivar start: The log start, inclusive.
    :ivar end: Exclusive: the high watermark, or the last stable offset.
    """

    replica: Replica
    start: int
    end: int
    committed: bool = False
    """Whether the consumer is read_committed."""


def readable_range(
    cluster: Cluster, topic: str, index: int, *, committed: bool = False
) -> ReadableRange:
    """What of a partition its leader lets consumers read.

    :param committed: Whether up to the last stable offset only.
    """
    _, replica = find_leader(cluster, topic, index)
    end = replica.last_stable_offset if committed else replica.high_watermark
    return ReadableRange(replica, replica.log.log_start_offset, end, committed)


def read(
    cluster: Cluster,
    replica: Replica,
    offset: int,
    upper_bound: int,
    *,
    max_bytes: int,
    then: Callable[[tuple[Buffer, ...] | ErrorCode], None],
) -> None:
    """The batches from the one that holds an offset on, from the log or from the tier.

    :param upper_bound: Only batches that end before this offset (exclusive).
    :param max_bytes: Of what comes behind the first batch.
    :param then: Called now or later: see `RemoteReader.read`.
    :raises OffsetOutOfRange: When the log does not have the offset.
    """
    try:
        found = replica.log.read(
            offset, max_bytes=max_bytes, upper_bound=upper_bound, min_one_batch=True
        )
    except StorageFailure as failure:
        replica.mark_offline(replica, failure)
        then(ErrorCode.KAFKA_STORAGE_ERROR)
    except OffsetMovedToTier:
        manager = cluster.brokers[replica.broker_id].remote_log_manager
        reader = RemoteReader(_TierWithoutFaults(manager, cluster.objects), lambda: 0)
        reader.read(
            replica,
            offset,
            max_bytes=max_bytes,
            upper_bound=upper_bound,
            min_one_batch=True,
            then=then,
        )
    else:
        then(found.buffers)


def aborted_transactions(
    cluster: Cluster,
    replica: Replica,
    start: int,
    end: int,
    *,
    then: Callable[[tuple[AbortedTransaction, ...] | ErrorCode], None],
) -> None:
    """The aborted transactions of a range, from the log or from the tier.

    :param start: Inclusive.
    :param end: Exclusive.
    :param then: Called now or later, with the transactions or why they cannot be read.
    """
    if start < replica.log.local_log_start_offset:
        manager = cluster.brokers[replica.broker_id].remote_log_manager
        reader = RemoteReader(_TierWithoutFaults(manager, cluster.objects), lambda: 0)
        reader.aborted_transactions(replica, start, end, then)
        return
    try:
        found = replica.log.aborted_transactions(start, end)
    except StorageFailure as failure:
        replica.mark_offline(replica, failure)
        then(ErrorCode.KAFKA_STORAGE_ERROR)
    else:
        then(found)


class _TierWithoutFaults(NamedTuple):
    """A tier as a leader knows it, read past the faults that stand before it for brokers."""

    manager: RemoteLogManager
    objects: ObjectStore | None

    def segments(
        self, replica: Replica, then: Callable[[RemoteSegments | TierError], None]
    ) -> None:
        """See `RemoteLogManager.segments`; a leader that does not know learns nothing by it."""
        known, objects = self.manager.loaded_segments(replica), self.objects
        if known is not None or objects is None:
            self.manager.segments(replica, then)
            return
        whose = TopicIdPartition(
            topic=replica.topic, topic_id=replica.topic_id, index=replica.index
        )
        found = RemoteSegments()
        listing = list_metadata(objects, whose, found)
        AsyncTask(
            listing, lambda outcome: then(outcome if isinstance(outcome, TierError) else found)
        ).start()


def stored_records(buffers: Sequence[Buffer]) -> Iterator[tuple[BatchHeader, list[StoredRecord]]]:
    """Each whole batch and its records; of a batch of control records there are none.

    :raises CorruptBatch: When one is broken.
    """
    for buffer in buffers:
        for at, header in iter_headers(buffer):
            records = () if header.is_control else iter_records(buffer, at)
            yield header, [StoredRecord(record, header) for record in records]
