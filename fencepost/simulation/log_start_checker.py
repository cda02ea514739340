"""Checks why log starts rise; part of the `ClusterChecker`.

A log start tells everyone that the records before it are gone for good. A leader's may rise because
a client has deleted records, because retention is due, or because the tier has lost what was there.
A follower's rises to what a leader has said, so that it never lies beyond the highest log start
that a leader has had for a reason. Where a topic has no tier each replica expires by itself.
"""

from collections.abc import Sequence

from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.simulation import tier_invariants as must
from fencepost.simulation.history import Batch, PartitionHistory, ReplicaSnapshot
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.storage.log.config import LogConfig


class LogStartChecker:
    """What log starts may rise to.

    :param partitions: What really happened to each, by index.
    :param is_tiered: Whether the topic has a tier, from which its leaders alone expire.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: Sequence[PartitionHistory],
        *,
        is_tiered: bool,
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._is_tiered = is_tiered
        self._deletable = [0] * len(partitions)
        """Up to where clients have asked leaders to delete (exclusive), by partition."""

    def before_deletion(self, broker_id: int, index: int) -> None:
        """A client is about to delete all records below a broker's high watermark, if it leads."""
        replica = self._cluster.brokers[broker_id].replicas.get((TOPIC, index))
        if replica is not None and replica.is_leader:
            self._deletable[index] = max(self._deletable[index], replica.high_watermark)

    def check(self, seen: ReplicaSnapshot, replica: Replica) -> None:
        """A replica's log start is not what it was, or is that of another log."""
        history, start = self._partitions[replica.index], replica.log.log_start_offset
        if start > max(seen.start, history.deleted):
            allowed = self._allowed(history, seen, replica)
            require(must.log_starts_rise_for_a_reason, seen.location, seen.start, start, allowed)
        seen.start = start
        if replica.is_leader:
            history.deleted = max(history.deleted, start)

    def _allowed(self, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica) -> int:
        """The highest log start for which there is a reason now."""
        if not replica.is_leader:
            own = 0 if self._is_tiered else self._expired(history, seen, replica)
            return max(history.deleted, own)
        if history.tainted:  # what was committed says nothing of what a leader has
            return replica.log.log_start_offset
        expired = self._expired(history, seen, replica)
        return max(self._deletable[history.index], history.lost_until, expired)

    def _expired(self, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica) -> int:
        """What retention allows. What a leader does not hold itself is committed."""
        log, start = seen.model, seen.start
        held = [batch for batch in log.all if batch.next_offset > start]
        batches = [*history.committed.between(start, log.start), *held]
        now_ms = self._cluster.scheduler.wall_ms()
        return retained_from(batches, replica.log.config, start=start, now_ms=now_ms)


def retained_from(batches: Sequence[Batch], config: LogConfig, *, start: int, now_ms: int) -> int:
    """The highest log start that retention allows.

    It takes the oldest records of a log, in order: those without which the log still has
    ``retention.bytes``, and those that are older than ``retention.ms``. Where the records are, and
    how they are cut into segments, makes no difference.

    :param batches: All of the log from its start on, in order.
    :param start: The log start so far.
    """
    if not config.is_deleted:
        return start
    excess = sum(batch.size_bytes for batch in batches) - config.retention_bytes
    for batch in batches:
        by_size = config.retention_bytes >= 0 and batch.size_bytes <= excess
        by_time = 0 <= config.retention_ms <= now_ms - batch.max_timestamp
        if not by_size and not by_time:
            break
        excess -= batch.size_bytes
        start = batch.next_offset
    return start
