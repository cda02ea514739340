"""Where a broker's group coordinator meets its replicas of ``__consumer_offsets``."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC, GroupCoordinator
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, iter_headers, iter_records
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker

_MINUTE_MS = 60_000
_READ_BYTES = 1 << 20


class ReplicaLog:
    """A leader replica as the log of a coordinator's shard, in the epoch it had at the start."""

    def __init__(self, replica: Replica, scheduler: Scheduler) -> None:
        self._replica = replica
        self._scheduler = scheduler
        self._leader_epoch = replica.leader_epoch

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        return self._replica.high_watermark

    def append(self, batch: bytearray) -> int | ErrorCode:
        """Append one batch as acks=all does; the offset of its last record, or why not."""
        if not self._leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self._replica.has_min_isr():
            return ErrorCode.NOT_ENOUGH_REPLICAS
        result = self._replica.append(
            batch, now_ms=self._scheduler.now_ms(), origin=AppendOrigin.COORDINATOR
        )
        return result.error if isinstance(result, AppendRejected) else result.last_offset

    def read_all(self) -> Iterator[Record]:
        """Every record from the log's start to its end, in their order."""
        log = self._replica.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            try:
                read = log.read(
                    offset,
                    max_bytes=_READ_BYTES,
                    upper_bound=log.log_end_offset,
                    min_one_batch=True,
                )
            except StorageFailure as failure:
                self._replica.mark_offline(self._replica, failure)  # which ends the shard as well
                return
            for buffer in read.buffers:
                for at, header in iter_headers(buffer):
                    offset = header.last_offset + 1
                    if not header.is_control:
                        yield from iter_records(buffer, at)

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        """Call once the high watermark is above ``offset``; never when leadership ends before."""
        if self._replica.high_watermark > offset:
            callback()
            return

        def attempt() -> bool | None:
            if not self._leads:
                return False
            return True if self._replica.high_watermark > offset else None

        wait: Wait[bool] = Wait()
        wait.then(lambda committed: callback() if committed else None)
        wait.watch([self._replica.watermark_watch], attempt)

    @property
    def _leads(self) -> bool:
        return self._replica.is_leader and self._replica.leader_epoch == self._leader_epoch


class GroupCoordination:
    """Tells a broker's coordinator which partitions it leads, and which topics are gone."""

    def __init__(self, broker: "Broker", offset_value_version: int) -> None:
        self._broker = broker
        self.group_coordinator = GroupCoordinator(
            scheduler=broker.scheduler,
            rng=broker.rng,
            config=_group_config(broker, offset_value_version),
            partition_count=self._partition_count,
        )

    def on_elected(self, replica: Replica) -> None:
        """A replica leads, in a new epoch."""
        if replica.topic == OFFSETS_TOPIC:
            self.group_coordinator.on_elected(
                replica.index, ReplicaLog(replica, self._broker.scheduler)
            )

    def on_resigned(self, replica: Replica) -> None:
        """A replica does not lead any more."""
        if replica.topic == OFFSETS_TOPIC:
            self.group_coordinator.on_resigned(replica.index)

    def _partition_count(self) -> int:
        topic = self._broker.view.topics.get(OFFSETS_TOPIC)
        return 0 if topic is None else len(topic.partitions)


def _group_config(broker: "Broker", offset_value_version: int) -> GroupConfig:
    """The group configs of a broker, none of which changes while it runs."""
    configs = broker.configs
    return GroupConfig(
        initial_rebalance_delay_ms=configs.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=configs.group_min_session_timeout_ms,
        max_session_timeout_ms=configs.group_max_session_timeout_ms,
        max_size=configs.group_max_size,
        offset_metadata_max_bytes=configs.offset_metadata_max_bytes,
        offsets_commit_timeout_ms=configs.offsets_commit_timeout_ms,
        offsets_retention_ms=configs.offsets_retention_minutes * _MINUTE_MS,
        offsets_retention_check_interval_ms=configs.offsets_retention_check_interval_ms,
        offset_value_version=offset_value_version,
    )
