"""Checks how late laggards leave the ISR; part of the `ClusterChecker`.

What a leader knows of a follower is the offset that it fetched from last. A follower lags since the
leader got the first record behind that offset; one that lost its disk has had the records before.
The leader looks every half
``replica.lag.time.max.ms`` and proposes the ISR without all followers that lag longer than that.
Only one proposal is on its way at a time; what a leader can't propose meanwhile, it does half that
time after it knows the outcome.
"""

from bisect import bisect_right

from msgspec import Struct, field

from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.simulation import invariants as must
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC

_IsrState = tuple[tuple[int, ...], tuple[int, ...] | None]
"""The ISR of a leader, and the one that it has proposed."""


class LeaderTerm(Struct):
    """What a leader was seen to have, in one leader epoch. Times are in ms."""

    replica: Replica
    epoch: int
    ends: list[int] = field(default_factory=list)
    """Its log ends, each higher than the one before."""
    times_ms: list[int] = field(default_factory=list)
    """Since when it had more than the log end before; the first one: since when it leads."""
    fetched: dict[int, int] = field(default_factory=dict)
    """The offset that each follower fetched from last, by broker."""
    caught_up_ms: dict[int, int] = field(default_factory=dict)
    """Until when each follower is known to have had all, by broker."""
    isr: _IsrState = ((), None)
    isr_since_ms: int = 0

    def see_end(self, log_end_offset: int, now_ms: int) -> None:
        """Its log may have grown."""
        if not self.ends or log_end_offset > self.ends[-1]:
            self.ends.append(log_end_offset)
            self.times_ms.append(now_ms)

    def see_fetch(self, follower_id: int, offset: int, now_ms: int) -> None:
        """A follower fetches from an offset; a wiped one from a smaller one than before."""
        before = self.fetched.get(follower_id, -1)
        for each in (offset,) if offset == before else (before, offset):
            since_ms = self.lags_since_ms(each)
            had_all_ms = now_ms if since_ms is None else since_ms
            if had_all_ms > self.caught_up_ms.get(follower_id, 0):
                self.caught_up_ms[follower_id] = had_all_ms
        self.fetched[follower_id] = offset

    def lags_since_ms(self, fetch_offset: int) -> int | None:
        """Since when a follower lacks records that fetched last from an offset; None: it has all.

        :param fetch_offset: -1 where it has not fetched from this leader.
        """
        at = bisect_right(self.ends, fetch_offset)
        return self.times_ms[at] if at < len(self.ends) else None


class IsrChecker:
    """The leaders of one cluster, and how long their followers lag."""

    def __init__(self, cluster: Cluster, partition_count: int) -> None:
        self._cluster = cluster
        self._terms: dict[int, list[LeaderTerm | None]] = {
            broker_id: [None] * partition_count for broker_id in cluster.brokers
        }
        """By broker and partition."""

    def see_leader(self, replica: Replica) -> None:
        """A leader has changed: it was elected, or its log has grown."""
        now_ms = self._cluster.scheduler.now_ms()
        terms, index = self._terms[replica.broker_id], replica.index
        term = terms[index]
        if term is None or term.replica is not replica or term.epoch != replica.leader_epoch:
            term = LeaderTerm(replica, replica.leader_epoch, isr_since_ms=now_ms)
            terms[index] = term
        term.see_end(replica.log.log_end_offset, now_ms)

    def see_fetch(self, leader_id: int, follower_id: int) -> None:
        """A message of another broker has arrived at one that may lead: perhaps a Fetch."""
        for term in self._terms[leader_id]:
            if term is not None:
                progress = term.replica.followers.get(follower_id)
                if progress is not None:
                    now_ms = self._cluster.scheduler.now_ms()
                    term.see_fetch(follower_id, progress.log_end_offset, now_ms)

    def check_time(self, before_ms: int) -> None:
        """Time has passed, and all that was due has happened.

        :param before_ms: The time before: what messages have changed since they changed then.
        """
        for broker in self._cluster.brokers.values():
            for (topic, index), replica in broker.replicas.items():
                if topic != TOPIC or not replica.is_leader:
                    continue
                term = self._terms[broker.broker_id][index]
                if term is not None:
                    max_lag_ms = broker.configs.replica_lag_time_max_ms
                    self._check_leader(term, replica, before_ms, max_lag_ms)

    def _check_leader(
        self, term: LeaderTerm, replica: Replica, before_ms: int, max_lag_ms: int
    ) -> None:
        now_ms = self._cluster.scheduler.now_ms()
        isr = (replica.isr, replica.pending_isr)
        if isr != term.isr:
            term.isr, term.isr_since_ms = isr, before_ms
        if replica.pending_isr is not None:
            term.isr_since_ms = now_ms
            return
        for broker_id in replica.isr:
            if broker_id == replica.broker_id:
                continue
            since_ms = term.lags_since_ms(replica.followers[broker_id].log_end_offset)
            if since_ms is not None:
                since_ms = max(since_ms, term.caught_up_ms.get(broker_id, 0))
                where = f"p{replica.index} on broker {replica.broker_id}: follower {broker_id}"
                latest_ms = max(since_ms + max_lag_ms, term.isr_since_ms) + max_lag_ms // 2
                require(must.laggards_leave_the_isr, where, now_ms - since_ms, latest_ms - since_ms)
