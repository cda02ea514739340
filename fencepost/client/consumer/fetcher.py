"""Fetch (1): records from the leaders, or from the followers that they name (KIP-392).

A node gets one request at a time, with all its partitions that have a position and no records left
to hand out. There are no fetch sessions (KIP-227): each request names its partitions. With
``read_committed`` the broker stops at the last stable offset, and the records of the transactions
that it names as aborted are left out here; markers always are.

    version  brings
    9        the leader epoch that the consumer knows; another one is refused (KIP-320). In the
             earlier draft, the epoch of the record before the offset instead
    11       the consumer's rack, and the follower to read from
    12       the epoch of the record before the offset, and where the logs diverge
    13       topics by their ids
    16       the addresses of leaders that the answer names (KIP-951)
"""

from typing import Final
from uuid import UUID

from msgspec import Struct

from fencepost.client.aborted_transactions import aborted_transactions
from fencepost.client.batches import FetchedRecords, decode_records
from fencepost.client.consumer.cluster_metadata import LeaderAndEpoch
from fencepost.client.consumer.context import CONSUMER, ConsumerContext, may_pass
from fencepost.client.consumer.fetch_buffer import FetchBuffer
from fencepost.client.consumer.nodes import Address
from fencepost.client.consumer.position import (
    AssignedPartition,
    Corrupt,
    FetchState,
    OutOfRange,
    Position,
)
from fencepost.client.consumer.requests import Channel, Request, Turn, typed
from fencepost.client.consumer.reset_policy import Situation
from fencepost.client.consumer.truncation import Valid, compare
from fencepost.client.errors import KafkaClientError
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_FETCH: Final = BY_NAME["fetch"]
_NEWEST_BY_NAME: Final = 12
_NO_NODE: Final = -1


class _Sent(Struct, frozen=True, kw_only=True, eq=False):
    """What a request asked of one partition."""

    partition: AssignedPartition
    position: Position
    node: int
    addresses: dict[int, Address]
    """Of brokers that the answer names."""


class Fetcher:
    """Fetches the assigned partitions."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context
        self._busy: set[int] = set()
        """Nodes with a Fetch under way."""

    def run(self, turn: Turn) -> None:
        """Fetch what is due, where records are wanted."""
        if not turn.fetches:
            return
        by_node: dict[int, list[AssignedPartition]] = {}
        for each in self._context.assignment.due(FetchState.FETCHING, turn):
            if not each.is_paused and each.buffer is None:
                node = self._choose_node(each, turn.now)
                if node is not None:
                    by_node.setdefault(node, []).append(each)
        for node, partitions in by_node.items():
            if node not in self._busy and self._context.nodes.is_ready(node, turn):
                self._fetch(node, partitions, turn)

    def _choose_node(self, partition: AssignedPartition, now: int) -> int | None:
        """The preferred follower until its time is over, else the leader; None without any."""
        if partition.preferred is not None:
            node, until = partition.preferred
            if now < until and node in self._context.metadata.brokers:
                return node
            partition.preferred = None
        assert partition.position is not None
        return self._context.metadata.leader(partition.partition).leader

    def _fetch(self, node: int, partitions: list[AssignedPartition], turn: Turn) -> None:
        ids = {
            each.partition.topic: self._context.metadata.topic_id(each.partition.topic)
            for each in partitions
        }
        at_most = _NEWEST_BY_NAME if None in ids.values() else None
        version = self._context.nodes.version(node, _FETCH, at_most=at_most)
        if version is None:
            return
        by_id = version > _NEWEST_BY_NAME
        sent: dict[tuple[str | UUID | None, int], _Sent] = {}
        addresses: dict[int, Address] = {}
        for each in partitions:
            assert each.position is not None
            topic = each.partition.topic
            sent[ids[topic] if by_id else topic, each.partition.index] = _Sent(
                partition=each, position=each.position, node=node, addresses=addresses
            )
        self._busy.add(node)
        config = self._context.config
        topics = tuple(
            FetchTopic(
                topic="" if by_id else topic,
                topic_id=topic_id if by_id else None,
                partitions=tuple(
                    self._partition(each) for each in partitions if each.partition.topic == topic
                ),
            )
            for topic, topic_id in ids.items()
        )

        def answered(response: FetchResponse, now: int) -> None:
            self._busy.discard(node)
            addresses.update(
                {each.node_id: (each.host, each.port) for each in response.node_endpoints}
            )
            for fetched in response.responses:
                for part in fetched.partitions:
                    key = (fetched.topic_id if by_id else fetched.topic, part.partition_index)
                    if key in sent:
                        self._handle(sent.pop(key), part, now)
            for left in sent.values():  # the error is the whole answer's, if there is one
                self._handle(left, PartitionData(error_code=response.error_code), now)

        def failed(_error: KafkaClientError, now: int) -> None:
            self._busy.discard(node)
            for each in sent.values():
                self._retry(each, now)

        turn.send(
            Request(
                node=node,
                channel=Channel.FETCH,
                api=_FETCH,
                version=version,
                message=self._request(topics),
                timeout_ms=config.fetch_max_wait_ms + config.request_timeout_ms,
                on_answer=typed(FetchResponse, answered),
                on_failure=failed,
            )
        )

    def _request(self, topics: tuple[FetchTopic, ...]) -> FetchRequest:
        config = self._context.config
        return FetchRequest(
            replica_id=CONSUMER,
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation,
            rack_id=config.client_rack,
            topics=topics,
        )

    def _partition(self, partition: AssignedPartition) -> FetchPartition:
        position = partition.position
        assert position is not None
        return FetchPartition(
            partition=partition.partition.index,
            fetch_offset=position.offset,
            partition_max_bytes=self._context.config.max_partition_fetch_bytes,
            current_leader_epoch=position.leader.epoch,
            last_fetched_epoch=position.fetched_epoch,
        )

    # -- answers --------------------------------------------------------------------------------

    def _handle(self, sent: _Sent, part: PartitionData, now: int) -> None:
        partition = sent.partition
        is_assigned = partition.partition in self._context.assignment
        if partition.position is not sent.position or not is_assigned:
            return  # the consumer was sent elsewhere, or the leader has changed
        if partition.state is not FetchState.FETCHING or partition.problem is not None:
            return
        if part.error_code != ErrorCode.NONE:
            self._handle_error(sent, part, now)
        elif part.diverging_epoch.epoch >= 0 or part.diverging_epoch.end_offset >= 0:
            self._handle_divergence(sent, part)
        elif part.preferred_read_replica != _NO_NODE:
            until = now + self._context.config.metadata_max_age_ms
            partition.preferred = part.preferred_read_replica, until
            if part.preferred_read_replica not in self._context.metadata.brokers:
                self._context.refresh.request()
        else:
            partition.retry.reset()
            aborted = aborted_transactions(part) if self._context.config.isolation else ()
            content = decode_records(part.records or (), sent.position.offset, aborted)
            self._keep(partition, content)

    def _keep(self, partition: AssignedPartition, content: FetchedRecords) -> None:
        if content.next_offset is not None:
            partition.buffer = FetchBuffer(content)
        elif content.corrupt is not None:
            partition.problem = Corrupt(content.corrupt)

    def _handle_divergence(self, sent: _Sent, part: PartitionData) -> None:
        diverging = part.diverging_epoch
        found = compare(sent.position, diverging.epoch, diverging.end_offset)
        if isinstance(found, Valid):
            sent.partition.validated(found.epoch)
        else:
            self._context.assignment.truncated(sent.partition, found)

    def _handle_error(self, sent: _Sent, part: PartitionData, now: int) -> None:
        code = part.error_code
        partition = sent.partition
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if partition.preferred is not None:
                partition.preferred = None  # the follower has another range; the leader decides
            elif self._context.config.reset_policy.resets:
                partition.await_reset(
                    self._context.config.reset_policy.target(Situation.OUT_OF_RANGE)
                )
            else:
                partition.problem = OutOfRange()
        elif code == ErrorCode.LOG_TRUNCATION and self._context.config.draft is not None:
            partition.await_divergence()
        elif may_pass(code):
            current = part.current_leader
            if current.leader_id != _NO_NODE:
                leader = LeaderAndEpoch(leader=current.leader_id, epoch=current.leader_epoch)
                self._context.metadata.see_leader(partition.partition, leader, sent.addresses)
                self._context.nodes.learn(sent.addresses)
            self._retry(sent, now)
        else:
            self._context.refuse(_FETCH, partition, code, now)

    def _retry(self, sent: _Sent, now: int) -> None:
        """Ask the leader again, as newer metadata will name it."""
        self._context.refresh.request()
        if sent.partition.position is not sent.position:
            return
        sent.partition.preferred = None
        sent.partition.retry.pause(now)
