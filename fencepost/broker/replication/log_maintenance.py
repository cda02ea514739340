"""The periodic work on a broker's logs: retention, compaction, expiry of idle producers."""

from collections.abc import Callable
from typing import Protocol

from fencepost.broker.core.scheduler import Timer
from fencepost.broker.replication.isr import IsrManager
from fencepost.broker.replication.node import ReplicaNode
from fencepost.broker.replication.replica_manager import ReplicaManager


class MaintainedNode(ReplicaNode, Protocol):
    """What the maintenance of logs needs of a broker."""

    isr_manager: IsrManager
    replica_manager: ReplicaManager


class LogMaintenance:
    """The periodic work of one broker; each interval is read from the configs when it starts."""

    def __init__(self, broker: MaintainedNode) -> None:
        self._broker = broker
        self._timers: dict[Callable[[], None], Timer] = {}

    def start(self) -> None:
        """Set the first timers, or set them again."""
        self._after(self._broker.configs.log_retention_check_interval_ms, self._delete_expired)
        self._after(
            self._broker.configs.producer_id_expiration_check_interval_ms, self._expire_producers
        )
        self._after(self._broker.configs.log_cleaner_backoff_ms, self._compact)
        self._after(self._broker.configs.replica_lag_time_max_ms // 2, self._shrink_isrs)
        self._after(
            self._broker.configs.replica_high_watermark_checkpoint_interval_ms, self._checkpoint
        )

    def _shrink_isrs(self) -> None:
        """As often as in Kafka: so a laggard stays for one and a half times its time at most."""
        self._broker.isr_manager.maybe_shrink_isrs()
        self._after(self._broker.configs.replica_lag_time_max_ms // 2, self._shrink_isrs)

    def _checkpoint(self) -> None:
        for replica in self._broker.replicas.values():
            replica.checkpointed_high_watermark = replica.high_watermark
        self._after(
            self._broker.configs.replica_high_watermark_checkpoint_interval_ms, self._checkpoint
        )

    def _after(self, delay_ms: int, work: Callable[[], None]) -> None:
        scheduler = self._broker.scheduler
        due_ms = scheduler.now_ms() + max(delay_ms, 1)
        if work in self._timers:
            self._timers[work].move_to(due_ms)
        else:
            self._timers[work] = scheduler.at(due_ms, work)

    def _delete_expired(self) -> None:
        now_ms = self._broker.scheduler.wall_ms()
        for replica in list(self._broker.replicas.values()):
            with self._broker.offline_on_failure(replica):
                replica.log.delete_expired(now_ms, replica.high_watermark)
                if not self._broker.replica_manager.log_dir_moves.is_moving(replica):
                    self._broker.remote_log_manager.delete_local(replica, now_ms)
        self._after(self._broker.configs.log_retention_check_interval_ms, self._delete_expired)

    def _expire_producers(self) -> None:
        configs, now_ms = self._broker.configs, self._broker.scheduler.wall_ms()
        for replica in list(self._broker.replicas.values()):
            with self._broker.offline_on_failure(replica):
                replica.log.expire_producers(now_ms)
        self._after(configs.producer_id_expiration_check_interval_ms, self._expire_producers)

    def _compact(self) -> None:
        configs = self._broker.configs
        if configs.log_cleaner_enable:
            now_ms = self._broker.scheduler.wall_ms()
            moves = self._broker.replica_manager.log_dir_moves
            for replica in list(self._broker.replicas.values()):
                if not replica.log.config.is_compacted or moves.is_moving(replica):
                    continue
                with self._broker.offline_on_failure(replica):
                    replica.log.compact(now_ms, replica.high_watermark)
        self._after(configs.log_cleaner_backoff_ms, self._compact)
