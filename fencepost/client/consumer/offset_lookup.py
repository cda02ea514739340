"""ListOffsets (2): offsets by time, and where logs begin and end.

version  brings
4        the leader epoch that the consumer knows, and the epoch of the offset found (KIP-320);
         the latter alone in its earlier draft
5        OFFSET_NOT_AVAILABLE shortly after an election (KIP-207): it is asked again, without
         new metadata, as the leader is the right one
10       how long the broker may take
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from fencepost.client.consumer.cluster_metadata import NO_EPOCH, ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.metadata_refresh import MetadataRefresh
from fencepost.client.consumer.model import OffsetAndTimestamp
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Backoff, Request, Retry, Turn, typed
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_LIST_OFFSETS: Final = BY_NAME["list_offsets"]
_CONSUMER: Final = -1
_NONE_FOUND: Final = -1


Found: TypeAlias = dict[Partition, OffsetAndTimestamp | None]
"""What was found for each partition; None where there is no such record."""


class _Lookup(Struct, kw_only=True, eq=False):
    """One partition's part of an operation."""

    partition: Partition
    timestamp: int
    """In ms, or an `OffsetSpec`."""
    operation: Operation[Found]
    found: Found
    """Of the whole operation."""
    wanted: int
    """Partitions of the operation."""
    retry: Retry
    in_flight: bool = False

    def complete(self, offset: OffsetAndTimestamp | None) -> None:
        """Take the result; the operation is done with that of its last partition."""
        self.found[self.partition] = offset
        if len(self.found) == self.wanted:
            self.operation.complete(self.found)

    @property
    def is_open(self) -> bool:
        """Whether its result is still to be found."""
        return not self.operation.done and self.partition not in self.found


class OffsetLookups:
    """Looks up offsets of any partitions, until they are found or nothing waits for them."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        refresh: MetadataRefresh,
        nodes: Nodes,
        config: ConsumerConfig,
    ) -> None:
        self._metadata = metadata
        self._refresh = refresh
        self._nodes = nodes
        self._config = config
        self._backoff = Backoff(
            initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms
        )
        self._lookups: list[_Lookup] = []

    @property
    def partitions(self) -> set[Partition]:
        """Whose leaders are needed."""
        return {each.partition for each in self._lookups if each.is_open}

    def find(self, timestamps: Mapping[Partition, int]) -> Operation[Found]:
        """The first record at or after a timestamp, or what an `OffsetSpec` means.

        :param timestamps: In ms, or an `OffsetSpec`, for each partition.
        """
        operation: Operation[Found] = Operation()
        found: Found = {}
        if not timestamps:
            operation.complete(found)
        self._lookups += (
            _Lookup(
                partition=partition,
                timestamp=timestamp,
                operation=operation,
                found=found,
                wanted=len(timestamps),
                retry=Retry(self._backoff),
            )
            for partition, timestamp in timestamps.items()
        )
        return operation

    def run(self, turn: Turn) -> None:
        """Ask the leaders, with one request each."""
        self._lookups = [each for each in self._lookups if each.is_open]
        by_leader: dict[int, dict[Partition, _Lookup]] = {}
        for each in self._lookups:
            if each.in_flight or not turn.is_due(each.retry.at):
                continue
            leader = self._metadata.leader(each.partition).leader
            if leader is None:
                each.operation.reason = "no leader is known"
            elif self._nodes.is_ready(leader, turn):
                # A request names a partition once: another lookup of it waits for the next turn.
                by_leader.setdefault(leader, {}).setdefault(each.partition, each)
        for leader, lookups in by_leader.items():
            version = self._nodes.version(leader, _LIST_OFFSETS)
            if version is not None:
                turn.send(self._request(leader, version, lookups))

    def _request(self, leader: int, version: int, lookups: dict[Partition, _Lookup]) -> Request:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for partition, lookup in lookups.items():
            lookup.in_flight = True
            epoch = self._metadata.leader(partition).epoch
            asked = ListOffsetsPartition(
                partition_index=partition.index,
                current_leader_epoch=epoch,
                timestamp=lookup.timestamp,
            )
            topics.setdefault(partition.topic, []).append(asked)
        waiting = dict(lookups)

        def answered(response: ListOffsetsResponse, now: int) -> None:
            for topic in response.topics:
                for part in topic.partitions:
                    partition = Partition(topic=topic.name, index=part.partition_index)
                    if partition in waiting:
                        self._handle(waiting.pop(partition), part, now)
            self._retry(waiting.values(), "the answer leaves out the partition", now)

        def failed(error: KafkaClientError, now: int) -> None:
            self._retry(waiting.values(), str(error), now)

        return Request(
            node=leader,
            api=_LIST_OFFSETS,
            version=version,
            message=ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=self._config.isolation,
                topics=tuple(
                    ListOffsetsTopic(name=name, partitions=tuple(asked))
                    for name, asked in topics.items()
                ),
                timeout_ms=self._config.request_timeout_ms,
            ),
            timeout_ms=self._config.request_timeout_ms,
            on_answer=typed(ListOffsetsResponse, answered),
            on_failure=failed,
        )

    def _handle(self, lookup: _Lookup, part: ListOffsetsPartitionResponse, now: int) -> None:
        lookup.in_flight = False
        code = part.error_code
        if code == ErrorCode.NONE:
            epoch = None if part.leader_epoch == NO_EPOCH else part.leader_epoch
            if self._metadata.see_epoch(lookup.partition, epoch):
                self._refresh.request()
            found = OffsetAndTimestamp(
                offset=part.offset, timestamp=part.timestamp, leader_epoch=epoch
            )
            lookup.complete(None if part.offset == _NONE_FOUND else found)
        elif code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            lookup.complete(None)
        elif code in RETRIABLE or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            lookup.operation.reason = error_name(code)
            lookup.retry.pause(now)
            if code != ErrorCode.OFFSET_NOT_AVAILABLE:
                self._refresh.request()
        else:
            topic = lookup.partition
            subject = f"ListOffsets of {topic.topic}-{topic.index}"
            lookup.operation.fail(RequestRefused(subject, code))

    def _retry(self, lookups: Iterable[_Lookup], reason: str, now: int) -> None:
        for each in lookups:
            each.in_flight = False
            each.operation.reason = reason
            each.retry.pause(now)
            self._refresh.request()
