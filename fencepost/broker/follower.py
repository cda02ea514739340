"""The follower of one partition: the same requests that a real follower sends.

    FETCHING      asks the leader for what comes after its log end, under the leader epoch it knows
                  and with the epoch of its last record (KIP-320). Records are appended as they
                  are; a diverging epoch truncates (KIP-595); no records means that it is caught
                  up: IDLE.
    OUT_OF_RANGE  asks for the leader's log end, then, if that is not below its own, for its log
                  start, truncates to the one or starts anew at the other, and goes on FETCHING.
    IDLE          waits for the leader to ring, or for a new view.

Every other error leaves it IDLE: the next view or ring brings it back, with what changed meanwhile.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final, cast

from fencepost.broker.replica import UNKNOWN_OFFSET, Replica
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker

LATEST: Final = -1
EARLIEST_LOCAL: Final = -4
_FETCH: Final = BY_NAME["fetch"]
_LIST_OFFSETS: Final = BY_NAME["list_offsets"]


class State(Enum):
    """What a follower is doing."""

    IDLE = "idle"
    FETCHING = "fetching"
    OUT_OF_RANGE = "out of range"


class Follower:
    """Steps one replica after its leader, one request at a time."""

    __slots__ = ("_broker", "_queued", "replica", "state")

    def __init__(self, broker: "Broker", replica: Replica) -> None:
        self._broker = broker
        self.replica = replica
        self.state = State.IDLE
        self._queued = False

    def poke(self) -> None:
        """There may be something to fetch: take steps until there is not."""
        if self.state is State.IDLE:
            self.state = State.FETCHING
        if not self._queued:
            self._queued = True
            self._broker.scheduler.soon(self._run)

    def step(self) -> None:
        """Send the one request that is due now."""
        replica = self.replica
        if replica.is_leader or replica.leader < 0:
            self.state = State.IDLE
        elif self.state is State.OUT_OF_RANGE:
            self._list_offset(LATEST)
        else:
            self._fetch()

    def _run(self) -> None:
        self._queued = False
        self.step()

    def _again(self) -> None:
        self.poke()

    def _fetch(self) -> None:
        replica, configs = self.replica, self._broker.configs
        latest = replica.log.latest_epoch
        partition = FetchPartition(
            partition=replica.index,
            current_leader_epoch=replica.leader_epoch,
            fetch_offset=replica.log.log_end_offset,
            last_fetched_epoch=-1 if latest is None else latest,
            log_start_offset=replica.log.log_start_offset,
            partition_max_bytes=configs.replica_fetch_max_bytes,
            high_watermark=replica.high_watermark,
        )
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=replica.broker_id, replica_epoch=self._broker.epoch
            ),
            max_bytes=configs.replica_fetch_response_max_bytes,
            topics=(FetchTopic(topic_id=replica.topic_id, partitions=(partition,)),),
        )
        self._broker.network.request(self._broker, replica.leader, _FETCH, request, self._fetched)

    def _fetched(self, response: object) -> None:
        answer = cast(FetchResponse, response)
        if not answer.responses or self.replica.is_leader:
            self.state = State.IDLE
            return
        partition = answer.responses[0].partitions[0]
        if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.state = State.OUT_OF_RANGE
            self._again()
        elif partition.error_code != ErrorCode.NONE:
            self.state = State.IDLE
        elif partition.diverging_epoch.epoch >= 0:
            self._truncate_diverging(
                partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset
            )
        else:
            self._take(partition)

    def _take(self, partition: PartitionData) -> None:
        replica = self.replica
        if partition.records:
            replica.append_fetched(partition.records, now_ms=self._broker.scheduler.now_ms())
        log_start = min(partition.log_start_offset, replica.log.log_end_offset)
        start_moved = replica.log.advance_log_start(log_start)
        replica.learn_watermark(partition.high_watermark)
        if partition.records or start_moved:  # the next fetch tells the leader so
            self._again()
        else:
            self.state = State.IDLE

    def _truncate_diverging(self, epoch: int, end_offset: int) -> None:
        """Cut to where the own log and the leader's last agreed (KIP-101, KIP-279)."""
        log = self.replica.log
        own_epoch, own_end = self.replica.end_offset_for_epoch(epoch)
        agreed = end_offset if own_epoch < 0 else min(end_offset, own_end)
        log.truncate_to(min(agreed, log.log_end_offset))
        self._again()

    def _list_offset(self, timestamp: int) -> None:
        replica = self.replica
        request = ListOffsetsRequest(
            replica_id=replica.broker_id,
            topics=(
                ListOffsetsTopic(
                    name=replica.topic,
                    partitions=(
                        ListOffsetsPartition(
                            partition_index=replica.index,
                            current_leader_epoch=replica.leader_epoch,
                            timestamp=timestamp,
                        ),
                    ),
                ),
            ),
        )

        def answered(response: object) -> None:
            partition = cast(ListOffsetsResponse, response).topics[0].partitions[0]
            if partition.error_code != ErrorCode.NONE or partition.offset == UNKNOWN_OFFSET:
                self.state = State.IDLE
            elif timestamp == LATEST:
                self._learn_end(partition.offset)
            else:
                self._start_at(partition.offset)

        self._broker.network.request(self._broker, replica.leader, _LIST_OFFSETS, request, answered)

    def _learn_end(self, leader_end: int) -> None:
        if leader_end < self.replica.log.log_end_offset:
            self.replica.log.truncate_to(leader_end)
            self.state = State.FETCHING
            self._again()
        else:
            self._list_offset(EARLIEST_LOCAL)

    def _start_at(self, offset: int) -> None:
        if offset <= self.replica.log.log_end_offset:
            self.state = State.IDLE  # to fetch the same again would be refused again
            return
        self.replica.log.truncate_fully_and_start_at(offset, now_ms=self._broker.scheduler.now_ms())
        self.state = State.FETCHING
        self._again()
