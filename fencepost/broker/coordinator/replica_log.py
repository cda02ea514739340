"""A leader replica as the log of a coordinator's shard."""

from collections.abc import Callable, Iterator
from typing import Final

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.core.waits import Wait
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, iter_headers, iter_records
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected

_READ_BYTES: Final = 1 << 20


class ReplicaLog:
    """A leader replica in the leader epoch in which this object was made: see `PartitionLog`."""

    def __init__(self, replica: Replica, scheduler: Scheduler) -> None:
        self._replica = replica
        self._scheduler = scheduler
        self._leader_epoch = replica.leader_epoch

    @property
    def high_watermark(self) -> int:
        """The first offset that is not committed."""
        return self._replica.high_watermark

    def append(self, batch: bytearray) -> int | ErrorCode:
        """Append one batch as acks=all does; the offset of its last record, or an error."""
        if not self._leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self._replica.has_min_isr():
            return ErrorCode.NOT_ENOUGH_REPLICAS
        result = self._replica.append(
            batch, now_ms=self._scheduler.now_ms(), origin=AppendOrigin.COORDINATOR
        )
        return result.error if isinstance(result, AppendRejected) else result.last_offset

    def read_all(self) -> Iterator[Record]:
        """Every record from the log's start to its end, in offset order.

        A log that cannot be read marks its replica offline, which closes the shard as well.
        """
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
                self._replica.mark_offline(self._replica, failure)
                return
            for buffer in read.buffers:
                for at, header in iter_headers(buffer):
                    offset = header.last_offset + 1
                    if not header.is_control:
                        yield from iter_records(buffer, at)

    def when_committed(self, offset: int, callback: Callable[[], None]) -> None:
        """Call once the high watermark is above ``offset``; never, if leadership ends before."""
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
