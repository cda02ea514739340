"""Whatever happens to a tiered partition, the invariants of tiered storage hold.

With Lx the local log start, Ly the last stable offset, Lz the log end, and Rx and Ry the first and
the last offset in the tier: Lz >= Ly >= Lx, Ly >= Ry >= Rx and Rx <= Lx <= Ry + 1; and everything
from the log start to the high watermark can be read, here or in the tier, as it was written.
"""

from __future__ import annotations

from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.remote_storage import RemoteFaultRule, RemoteOperation
from fencepost.broker.node import operator_actions
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import ObjectKind, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment
from tests.harness.records import batch
from tests.harness.remote_tier import PLAIN_KINDS, Tier

BROKERS = st.integers(1, 3)


class TieredPartition(RuleBasedStateMachine):
    """Three replicas of one partition, of which the tier gets all that is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tier = Tier(3, local_retention_ms="100000", retention_ms="400000")
        self.cluster = self.tier.cluster
        self.appended = 0
        self.deleted_until = 0
        """The highest log start (exclusive) that a leader had."""
        self.committed: dict[int, bytes | None] = {}
        """The values that were below a high watermark, by offset: they are there for good."""
        self.read: dict[UUID, dict[int, bytes | None]] = {}
        """The values in the segments that were read in the tier."""

    @property
    def leader(self) -> Replica | None:
        partition = self.tier.partition("t")
        broker = self.cluster.brokers.get(partition.leader)
        return None if broker is None else broker.replicas.get(("t", 0))

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        for _ in range(count):
            leader = self.leader
            if leader is None:
                return
            self.appended += 1
            value = b"%d" % self.appended
            now_ms = self.tier.clock.now_ms()
            result = leader.append(batch((now_ms, b"k", value)), now_ms=now_ms)
            assert isinstance(result, AppendResult)
            self.cluster.scheduler.run_due()

    @rule(ms=st.sampled_from([1, 1000, 30_000, 90_000, 300_000]))
    def wait(self, ms: int) -> None:
        self.tier.advance(ms)

    @rule(broker=BROKERS)
    def run_task(self, broker: int) -> None:
        replica = self.tier.broker(broker).replicas.get(("t", 0))
        if replica is not None:
            self.tier.broker(broker).remote_log_manager.run_task(replica, lambda _: None)
            self.cluster.scheduler.run_due()

    @rule(broker=BROKERS)
    def delete_local(self, broker: int) -> None:
        replica = self.tier.broker(broker).replicas.get(("t", 0))
        if replica is not None:
            self.tier.broker(broker).remote_log_manager.delete_local(replica)

    @rule()
    def forget(self) -> None:
        if self.leader is not None:
            self.tier.manager.forget(self.leader, lambda _: None)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        leader = self.leader
        if leader is not None:
            start = leader.log.log_start_offset
            leader.delete_records(start + int((leader.high_watermark - start) * share))
            self.cluster.scheduler.run_due()

    @rule(broker=BROKERS)
    def roll(self, broker: int) -> None:
        """Replicas need not cut their segments at the same offsets."""
        replica = self.tier.broker(broker).replicas.get(("t", 0))
        if replica is not None:
            replica.log.roll(self.tier.clock.now_ms())

    @rule(operation=st.sampled_from(RemoteOperation), delay_ms=st.sampled_from([None, 5000]))
    def break_the_tier(self, operation: RemoteOperation, delay_ms: int | None) -> None:
        error = "broken" if delay_ms is None else None
        rule_ = RemoteFaultRule(operation=operation, error=error, delay_ms=delay_ms, count=2)
        self.cluster.tier_faults.add(rule_)

    @rule(broker=BROKERS)
    def elect(self, broker: int) -> None:
        if broker in self.tier.partition("t").isr and self.cluster.controller.is_online(broker):
            self.tier.elect("t", 0, broker)

    @rule(broker=BROKERS)
    def hold(self, broker: int) -> None:
        self.tier.broker(broker).replica_manager.hold("t", 0, None)

    @rule(broker=BROKERS)
    def release(self, broker: int) -> None:
        self.tier.broker(broker).replica_manager.release("t", 0)
        self.cluster.scheduler.run_due()

    @precondition(lambda self: self.leader is not None)
    @rule(broker=BROKERS, crash=st.booleans())
    def restart(self, broker: int, *, crash: bool) -> None:
        stop = operator_actions.kill if crash else operator_actions.stop
        if self.tier.broker(broker).running:
            stop(self.cluster, broker)
        else:
            operator_actions.start(self.cluster, broker)
        self.cluster.scheduler.run_due()

    @rule(broker=BROKERS)
    def wipe(self, broker: int) -> None:
        partition = self.tier.partition("t")
        if broker != partition.leader and set(partition.isr) - {broker}:
            try:
                operator_actions.wipe(self.cluster, "t", 0, broker)
            except ControllerError as error:
                assert error.code is ErrorCode.INVALID_REQUEST
            self.cluster.scheduler.run_due()

    @invariant()
    def offsets_are_in_order(self) -> None:
        leader = self.leader
        if leader is None:
            return
        local, end = leader.log.local_log_start_offset, leader.log.log_end_offset
        assert end >= leader.last_stable_offset
        view = self.tier.manager.state(leader)
        assert view is not None
        if not leader.gate_is_open:
            return  # until then its high watermark may be lower than it was
        assert leader.last_stable_offset >= local
        if view.start_offset > local:
            # What another leader expired, this one could not take over while its gate was shut.
            self.cluster.tier_faults.reset()
            self.tier.advance(5000)  # for what is delayed
            assert self.tier.run() is None
            self.offsets_are_in_order()
        elif view.start_offset >= 0:
            last = view.last_tiered_offset
            assert leader.last_stable_offset >= last >= view.start_offset
            assert view.start_offset <= local <= last + 1

    @invariant()
    def what_is_committed_can_be_read(self) -> None:
        served = self._served()
        leader = self.leader
        if leader is not None:  # a new one may not have heard of it
            self.deleted_until = max(self.deleted_until, leader.log.log_start_offset)
        for broker in self.cluster.brokers.values():
            replica = broker.replicas.get(("t", 0))
            if replica is not None:
                self._check_readable(replica, self.deleted_until, served)

    def _check_readable(self, replica: Replica, start: int, served: RemoteSegments) -> None:
        log, lineage = replica.log, replica.log.epoch_entries()
        first = max(start, log.log_start_offset)
        found = self._read_here(replica, max(first, log.local_log_start_offset))
        for offset in range(first, min(log.local_log_start_offset, replica.high_watermark)):
            tiered = served.range_for(lineage, offset)
            assert tiered is not None, f"{offset} of broker {replica.broker_id} is nowhere"
            found[offset] = self._read_there(tiered.segment)[offset]
        for offset in range(first, replica.high_watermark):
            assert found[offset] == self.committed.setdefault(offset, found[offset])

    def _read_here(self, replica: Replica, offset: int) -> dict[int, bytes | None]:
        found: dict[int, bytes | None] = {}
        while offset < replica.log.log_end_offset:
            end = replica.log.log_end_offset
            read = replica.log.read(offset, max_bytes=1 << 20, upper_bound=end, min_one_batch=True)
            for buffer in read.buffers:
                found |= values(buffer)
            offset = max(found) + 1
        return found

    def _read_there(self, segment: RemoteSegment) -> dict[int, bytes | None]:
        if segment.id not in self.read:
            self.read[segment.id] = values(
                self.tier.objects.objects[object_key(segment, ObjectKind.LOG)]
            )
        return self.read[segment.id]

    def _served(self) -> RemoteSegments:
        """What the tier itself has."""
        segments = RemoteSegments()
        for key, data in self.tier.objects.objects.items():
            if key.endswith(ObjectKind.METADATA):
                segments.put(RemoteSegment.from_json(data))
        return segments

    @invariant()
    def what_is_served_is_whole(self) -> None:
        for segment in self._served():
            if segment.is_served:
                for part in PLAIN_KINDS:
                    assert object_key(segment, part) in self.tier.objects.objects


def values(records: Buffer) -> dict[int, bytes | None]:
    return {
        record.offset: record.value
        for position, _ in iter_headers(records)
        for record in iter_records(records, position)
    }


TestTieredPartition = TieredPartition.TestCase
TestTieredPartition.settings = settings(max_examples=60, stateful_step_count=40)
