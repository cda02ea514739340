"""What a broker with files writes beside its logs, as often as Kafka does."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fencepost.broker.checkpoint_files import Key
from fencepost.broker.data_dir import DataDir
from fencepost.broker.log_dirs import LogDir
from fencepost.storage.files.failures import StorageFailure

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker

_NEVER_MS: Final = 1 << 62
"""What is due later is never due."""


class Checkpoints:
    """The timers of one broker; each is set anew by the configs of then."""

    def __init__(self, broker: "Broker", log_dir: LogDir, data_dir: DataDir) -> None:
        self._broker = broker
        self._log_dir = log_dir
        self._data_dir = data_dir

    def start(self) -> None:
        """Set the first timers."""
        configs = self._broker.configs
        self._every(
            lambda: configs.replica_high_watermark_checkpoint_interval_ms, self._high_watermarks
        )
        self._every(
            lambda: configs.log_flush_offset_checkpoint_interval_ms,
            self._recovery_points,
        )
        self._every(
            lambda: configs.log_flush_start_offset_checkpoint_interval_ms,
            self._log_dir.write_log_starts,
        )
        self._every(lambda: configs.log_flush_scheduler_interval_ms, self._flush)

    def _every(self, interval_ms: Callable[[], int], work: Callable[[], None]) -> None:
        scheduler = self._broker.scheduler

        def tick() -> None:
            if self._broker.running:
                work()
            self._every(interval_ms, work)

        wait_ms = interval_ms()
        if wait_ms < _NEVER_MS:
            scheduler.at(scheduler.now_ms() + max(wait_ms, 1), tick)

    def _high_watermarks(self) -> None:
        self._log_dir.write_high_watermarks(self._broker.replicas)
        if self._data_dir.registry is not None:
            self._data_dir.registry.catch_up()

    def _recovery_points(self) -> None:
        """Where nothing else is flushed, closed segments are, and need not be recovered."""
        self._log_dir.write_recovery_points()
        self._log_dir.sync_closed_segments(self._fail)

    def _flush(self) -> None:
        for key, failure in self._log_dir.flush_overdue(self._broker.scheduler.now_ms()):
            self._fail(key, failure)

    def _fail(self, key: Key, failure: StorageFailure) -> None:
        replica = self._broker.replicas.get(key)
        if replica is not None:
            self._broker.fail(replica, failure)
