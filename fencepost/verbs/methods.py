"""Every verb as a method, sync and async. Written by tools/generate_verbs.py.

All raise `fencepost.verbs.remote.Refused` when the cluster refuses, and `Unreachable`
where there is none.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Literal

from fencepost.verbs.answers import Done, Health
from fencepost.verbs.answers.cluster import (
    BrokerState,
    ClockState,
    ClusterState,
    EventState,
    ExchangeState,
    TimelineState,
)
from fencepost.verbs.answers.faults import FaultState, TierFaultState
from fencepost.verbs.answers.groups import GroupsState, GroupState
from fencepost.verbs.answers.records import ExpectedRecords, ProducedRecords, RecordsState
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    StepState,
    TierState,
    TopicState,
)
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.answers.verify import Verified
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import Remote
from fencepost.verbs.remote_async import AsyncRemote

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class Verbs:
    """The verbs of a cluster, for sync code.

    :param remote: Its control API.
    """

    def __init__(self, remote: Remote) -> None:
        self.remote = remote

    def healthz(
        self,
    ) -> Health:
        """Answer that the cluster is up."""
        return self.remote.call(VERBS["healthz"], Health, {}, {})

    def cluster(
        self,
    ) -> ClusterState:
        """Show brokers, controller, features and time."""
        return self.remote.call(VERBS["cluster"], ClusterState, {}, {})

    def stop_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Shut a broker down: others become leaders where it led, then its port refuses."""
        return self.remote.call(
            VERBS["stop_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    def kill_broker(
        self,
        broker: int,
        *,
        fence: Literal["now", "timeout", "never"] = "now",
    ) -> BrokerState:
        """Kill a broker at once: connections are reset; the controller notices when you choose."""
        return self.remote.call(
            VERBS["kill_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {
                "fence": fence,
            },
        )

    def start_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Start a broker that is down, on its port; answers when it has caught up."""
        return self.remote.call(
            VERBS["start_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    def isolate_broker(
        self,
        broker: int,
        *,
        origin: Literal["controller"] | Sequence[int],
        fence: Literal["now", "timeout", "never"] | None = None,
    ) -> BrokerState:
        """Cut a broker off from the controller, or from other brokers; clients still reach it."""
        return self.remote.call(
            VERBS["isolate_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {
                "from": origin,
                "fence": fence,
            },
        )

    def rejoin_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Restore all links of a broker; answers when it has caught up."""
        return self.remote.call(
            VERBS["rejoin_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    def advance_clock(
        self,
        ms: int,
    ) -> ClockState:
        """Advance a manual clock; answers when everything due by then has happened."""
        return self.remote.call(
            VERBS["advance_clock"],
            ClockState,
            {},
            {
                "ms": ms,
            },
        )

    def reset(
        self,
        *,
        topics: Sequence[str | Mapping[str, object]] = (),
    ) -> Done:
        """Forget all topics, records, groups, configs, faults and the journal; keep the ports."""
        return self.remote.call(
            VERBS["reset"],
            Done,
            {},
            {
                "topics": topics,
            },
        )

    def topics(
        self,
    ) -> list[TopicState]:
        """List all topics, by name."""
        return self.remote.call_list(VERBS["topics"], TopicState, {}, {})

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        assignments: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicState:
        """Create a topic; answers when every replica is in the ISR."""
        return self.remote.call(
            VERBS["create_topic"],
            TopicState,
            {},
            {
                "name": name,
                "partitions": partitions,
                "replication_factor": replication_factor,
                "assignments": assignments,
                "configs": configs or {},
            },
        )

    def delete_topic(
        self,
        topic: str,
    ) -> Done:
        """Delete a topic; answers when no broker has it."""
        return self.remote.call(
            VERBS["delete_topic"],
            Done,
            {
                "topic": topic,
            },
            {},
        )

    def produce_records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        records: Sequence[str | Mapping[str, object]] | None = None,
        key: str | None = None,
        value: object = None,
        headers: Mapping[str, str | None] | Sequence[Sequence[str | None]] | None = None,
        timestamp: int | None = None,
        encoding: Literal["text", "base64", "json"] = "text",
        acks: Literal["all", "1"] = "all",
        timeout_ms: int = 10000,
    ) -> ProducedRecords:
        """Append records to a topic; answers when they are committed."""
        return self.remote.call(
            VERBS["produce_records"],
            ProducedRecords,
            {
                "topic": topic,
            },
            {
                "partition": partition,
                "records": records,
                "key": key,
                "value": value,
                "headers": headers or {},
                "timestamp": timestamp,
                "encoding": encoding,
                "acks": acks,
                "timeout_ms": timeout_ms,
            },
        )

    def read_records(
        self,
        topic: str,
        partition: int,
        *,
        from_offset: int | None = None,
        to: int | None = None,
        last: int | None = None,
        limit: int = 100,
        encoding: Literal["text", "base64", "json"] = "text",
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> RecordsState:
        """Read records of a partition, decoded."""
        return self.remote.call(
            VERBS["read_records"],
            RecordsState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "from": from_offset,
                "to": to,
                "last": last,
                "limit": limit,
                "encoding": encoding,
                "isolation": isolation,
            },
        )

    def expect_records(
        self,
        topic: str,
        *,
        key: EllipsisType | str | None = ...,
        value: EllipsisType | object = ...,
        headers: Mapping[str, str | None] | Sequence[Sequence[str | None]] | None = None,
        partition: int | None = None,
        count: int = 1,
        encoding: Literal["text", "base64", "json"] = "text",
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        timeout_ms: int = 10000,
    ) -> ExpectedRecords:
        """Wait until a topic has matching records; refused with the nearest ones."""
        return self.remote.call(
            VERBS["expect_records"],
            ExpectedRecords,
            {
                "topic": topic,
            },
            {
                "key": key,
                "value": value,
                "headers": headers or {},
                "partition": partition,
                "count": count,
                "encoding": encoding,
                "isolation": isolation,
                "timeout_ms": timeout_ms,
            },
        )

    def partition(
        self,
        topic: str,
        partition: int,
    ) -> PartitionState:
        """Show a partition: its leader, its ISR, and the log of each replica."""
        return self.remote.call(
            VERBS["partition"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    def elect(
        self,
        topic: str,
        partition: int,
        *,
        leader: int,
        unclean: bool = False,
    ) -> PartitionState:
        """Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays."""
        return self.remote.call(
            VERBS["elect"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "leader": leader,
                "unclean": unclean,
            },
        )

    def roll(
        self,
        topic: str,
        partition: int,
    ) -> PartitionState:
        """Close the active segment of every replica; an empty one stays."""
        return self.remote.call(
            VERBS["roll"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    def compact(
        self,
        topic: str,
        partition: int,
    ) -> CompactionState:
        """Compact the closed segments of every replica, however little there is to gain."""
        return self.remote.call(
            VERBS["compact"],
            CompactionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    def tier(
        self,
        topic: str,
        partition: int,
        *,
        action: Literal["upload", "delete-local", "expire", "forget", "lose"],
    ) -> TierState:
        """Upload to a partition's remote tier, delete from it or lose its objects, at once."""
        return self.remote.call(
            VERBS["tier"],
            TierState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "action": action,
            },
        )

    def hold(
        self,
        topic: str,
        partition: int,
        broker: int,
        *,
        at: int | None = None,
        leave_isr: bool = False,
    ) -> PartitionState:
        """Keep a replica from fetching, at once or from an offset on."""
        return self.remote.call(
            VERBS["hold"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {
                "at": at,
                "leave_isr": leave_isr,
            },
        )

    def release(
        self,
        topic: str,
        partition: int,
        broker: int,
    ) -> PartitionState:
        """Let a replica fetch again; answers when it has caught up."""
        return self.remote.call(
            VERBS["release"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {},
        )

    def step(
        self,
        topic: str,
        partition: int,
        broker: int,
        *,
        fetches: int = 1,
    ) -> StepState:
        """Let a replica send a number of fetches, held or not; answers the result of each."""
        return self.remote.call(
            VERBS["step"],
            StepState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {
                "fetches": fetches,
            },
        )

    def wipe(
        self,
        topic: str,
        partition: int,
        broker: int,
    ) -> PartitionState:
        """Lose a replica's disk: it leaves the ISR and starts empty."""
        return self.remote.call(
            VERBS["wipe"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {},
        )

    def groups(
        self,
    ) -> GroupsState:
        """List all groups, by name."""
        return self.remote.call(VERBS["groups"], GroupsState, {}, {})

    def group(
        self,
        group: str,
    ) -> GroupState:
        """Show a group: its members, its committed offsets and its lag."""
        return self.remote.call(
            VERBS["group"],
            GroupState,
            {
                "group": group,
            },
            {},
        )

    def wait_for_group(
        self,
        group: str,
        *,
        state: Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
        | None = None,
        members: int | None = None,
        timeout_ms: int = 10000,
    ) -> GroupState:
        """Wait until a group is stable, or in another state, with so many members."""
        return self.remote.call(
            VERBS["wait_for_group"],
            GroupState,
            {
                "group": group,
            },
            {
                "state": state,
                "members": members,
                "timeout_ms": timeout_ms,
            },
        )

    def move_coordinator(
        self,
        group: str,
        *,
        broker: int,
    ) -> GroupState:
        """Make a broker the coordinator of a group, and of all groups of its partition."""
        return self.remote.call(
            VERBS["move_coordinator"],
            GroupState,
            {
                "group": group,
            },
            {
                "broker": broker,
            },
        )

    def rebalance_group(
        self,
        group: str,
    ) -> GroupState:
        """Begin a rebalance of a group; its members join again at their next heartbeat."""
        return self.remote.call(
            VERBS["rebalance_group"],
            GroupState,
            {
                "group": group,
            },
            {},
        )

    def remove_member(
        self,
        group: str,
        member: str,
    ) -> GroupState:
        """Remove a member from a group, as if it had left; the others rebalance."""
        return self.remote.call(
            VERBS["remove_member"],
            GroupState,
            {
                "group": group,
                "member": member,
            },
            {},
        )

    def set_offsets(
        self,
        group: str,
        *,
        offsets: Sequence[str | Mapping[str, object]],
    ) -> GroupState:
        """Commit offsets for a group, whatever its state; a new group is created."""
        return self.remote.call(
            VERBS["set_offsets"],
            GroupState,
            {
                "group": group,
            },
            {
                "offsets": offsets,
            },
        )

    def delete_offsets(
        self,
        group: str,
        *,
        topics: Sequence[str],
    ) -> GroupState:
        """Delete the committed offsets of topics from a group, whatever its state."""
        return self.remote.call(
            VERBS["delete_offsets"],
            GroupState,
            {
                "group": group,
            },
            {
                "topics": topics,
            },
        )

    def transactions(
        self,
    ) -> TransactionsState:
        """List all transactional ids, by name."""
        return self.remote.call(VERBS["transactions"], TransactionsState, {}, {})

    def transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Show a transactional id: its producer, and what its transaction has."""
        return self.remote.call(
            VERBS["transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    def abort_transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Abort an open transaction and fence its producer, as its coordinator may."""
        return self.remote.call(
            VERBS["abort_transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    def abort_hanging_transaction(
        self,
        topic: str,
        partition: int,
        producer_id: int,
    ) -> PartitionState:
        """Abort a producer's open transaction in a partition that no coordinator knows."""
        return self.remote.call(
            VERBS["abort_hanging_transaction"],
            PartitionState,
            {},
            {
                "topic": topic,
                "partition": partition,
                "producer_id": producer_id,
            },
        )

    def expire_transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Move the manual clock until a transaction times out, or an idle id is forgotten."""
        return self.remote.call(
            VERBS["expire_transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    def hold_marker(
        self,
        transactional_id: str,
        topic: str,
        partition: int,
    ) -> TransactionState:
        """Hold the markers of a transactional id on their way to a partition."""
        return self.remote.call(
            VERBS["hold_marker"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {
                "topic": topic,
                "partition": partition,
            },
        )

    def release_marker(
        self,
        transactional_id: str,
        topic: str,
        partition: int,
    ) -> TransactionState:
        """Let the markers of a transactional id go to a partition again."""
        return self.remote.call(
            VERBS["release_marker"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {
                "topic": topic,
                "partition": partition,
            },
        )

    def add_fault(
        self,
        api: str | int | Sequence[str | int],
        *,
        versions: str | int | None = None,
        broker: int | None = None,
        client_id: str | None = None,
        source: Literal["clients", "brokers"] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        record: Mapping[str, object] | None = None,
        count: int | None = 1,
        after: int = 0,
        probability: float = 1,
        action: str | Mapping[str, object] | None = None,
        sequence: Sequence[str | Mapping[str, object]] | None = None,
    ) -> FaultState:
        """Add a fault for matching requests; of several faults the first that matches hits."""
        return self.remote.call(
            VERBS["add_fault"],
            FaultState,
            {},
            {
                "api": api,
                "versions": versions,
                "broker": broker,
                "client_id": client_id,
                "source": source,
                "topic": topic,
                "partition": partition,
                "group": group,
                "transactional_id": transactional_id,
                "record": record,
                "count": count,
                "after": after,
                "probability": probability,
                "action": action,
                "sequence": sequence,
            },
        )

    def faults(
        self,
    ) -> list[FaultState]:
        """List all faults and their hits, in the order in which they are tried."""
        return self.remote.call_list(VERBS["faults"], FaultState, {}, {})

    def fault(
        self,
        id: int,
    ) -> FaultState:
        """Show a fault and its hits."""
        return self.remote.call(
            VERBS["fault"],
            FaultState,
            {
                "id": id,
            },
            {},
        )

    def wait_for_fault(
        self,
        id: int,
        *,
        hits: int = 1,
        timeout_ms: int = 10000,
    ) -> FaultState:
        """Wait until a fault has this number of hits."""
        return self.remote.call(
            VERBS["wait_for_fault"],
            FaultState,
            {
                "id": id,
            },
            {
                "hits": hits,
                "timeout_ms": timeout_ms,
            },
        )

    def remove_fault(
        self,
        id: int,
    ) -> FaultState:
        """Remove a fault; answers its hits."""
        return self.remote.call(
            VERBS["remove_fault"],
            FaultState,
            {
                "id": id,
            },
            {},
        )

    def remove_faults(
        self,
    ) -> Done:
        """Remove all faults."""
        return self.remote.call(VERBS["remove_faults"], Done, {}, {})

    def add_tier_fault(
        self,
        operation: Literal["upload", "fetch", "delete", "list"],
        *,
        error: str | Literal[True] | None = None,
        delay_ms: int | None = None,
        count: int | None = 1,
    ) -> TierFaultState:
        """Add a fault for operations on the remote tier; the first that matches hits."""
        return self.remote.call(
            VERBS["add_tier_fault"],
            TierFaultState,
            {},
            {
                "operation": operation,
                "error": error,
                "delay_ms": delay_ms,
                "count": count,
            },
        )

    def tier_faults(
        self,
    ) -> list[TierFaultState]:
        """List all tier faults and their hits, in the order in which they are tried."""
        return self.remote.call_list(VERBS["tier_faults"], TierFaultState, {}, {})

    def remove_tier_fault(
        self,
        id: int,
    ) -> TierFaultState:
        """Remove a tier fault; answers its hits."""
        return self.remote.call(
            VERBS["remove_tier_fault"],
            TierFaultState,
            {
                "id": id,
            },
            {},
        )

    def remove_tier_faults(
        self,
    ) -> Done:
        """Remove all tier faults."""
        return self.remote.call(VERBS["remove_tier_faults"], Done, {}, {})

    def events(
        self,
        *,
        since: int | None = None,
        follow: bool = True,
    ) -> Iterator[EventState]:
        """Stream verbs and changes of state as server-sent events, from now or from a number on."""
        return self.remote.call_stream(
            VERBS["events"],
            EventState,
            {},
            {
                "since": since,
                "follow": follow,
            },
        )

    def timeline(
        self,
        *,
        since: int = 0,
        requests_since: int = 0,
        limit: int = 500,
    ) -> TimelineState:
        """Show verbs, events and requests in one order of time, and the state at the end."""
        return self.remote.call(
            VERBS["timeline"],
            TimelineState,
            {},
            {
                "since": since,
                "requests_since": requests_since,
                "limit": limit,
            },
        )

    def trace(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        broker: int | None = None,
        source: Literal["clients", "brokers", "all"] | None = None,
        error: str | None = None,
        since: int = 0,
        limit: int = 100,
    ) -> list[ExchangeState]:
        """Show the last requests and answers, decoded, the oldest first."""
        return self.remote.call_list(
            VERBS["trace"],
            ExchangeState,
            {},
            {
                "api": api,
                "client_id": client_id,
                "topic": topic,
                "broker": broker,
                "source": source,
                "error": error,
                "since": since,
                "limit": limit,
            },
        )

    def wait_for_trace(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        broker: int | None = None,
        source: Literal["clients", "brokers", "all"] | None = None,
        error: str | None = None,
        since: int = 0,
        timeout_ms: int = 10000,
    ) -> ExchangeState:
        """Wait for a matching request and its answer."""
        return self.remote.call(
            VERBS["wait_for_trace"],
            ExchangeState,
            {},
            {
                "api": api,
                "client_id": client_id,
                "topic": topic,
                "broker": broker,
                "source": source,
                "error": error,
                "since": since,
                "timeout_ms": timeout_ms,
            },
        )

    def verify(
        self,
        api: str | int | Sequence[str | int],
        *,
        count: int | Mapping[str, object],
        since: int = 0,
        versions: str | int | None = None,
        broker: int | None = None,
        client_id: str | None = None,
        source: Literal["clients", "brokers"] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        record: Mapping[str, object] | None = None,
    ) -> Verified:
        """Verify how many matching requests came; refused with the nearest ones."""
        return self.remote.call(
            VERBS["verify"],
            Verified,
            {},
            {
                "count": count,
                "since": since,
                "api": api,
                "versions": versions,
                "broker": broker,
                "client_id": client_id,
                "source": source,
                "topic": topic,
                "partition": partition,
                "group": group,
                "transactional_id": transactional_id,
                "record": record,
            },
        )


class AsyncVerbs:
    """The verbs of a cluster, for asyncio.

    :param remote: Its control API.
    """

    def __init__(self, remote: AsyncRemote) -> None:
        self.remote = remote

    async def healthz(
        self,
    ) -> Health:
        """Answer that the cluster is up."""
        return await self.remote.call(VERBS["healthz"], Health, {}, {})

    async def cluster(
        self,
    ) -> ClusterState:
        """Show brokers, controller, features and time."""
        return await self.remote.call(VERBS["cluster"], ClusterState, {}, {})

    async def stop_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Shut a broker down: others become leaders where it led, then its port refuses."""
        return await self.remote.call(
            VERBS["stop_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    async def kill_broker(
        self,
        broker: int,
        *,
        fence: Literal["now", "timeout", "never"] = "now",
    ) -> BrokerState:
        """Kill a broker at once: connections are reset; the controller notices when you choose."""
        return await self.remote.call(
            VERBS["kill_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {
                "fence": fence,
            },
        )

    async def start_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Start a broker that is down, on its port; answers when it has caught up."""
        return await self.remote.call(
            VERBS["start_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    async def isolate_broker(
        self,
        broker: int,
        *,
        origin: Literal["controller"] | Sequence[int],
        fence: Literal["now", "timeout", "never"] | None = None,
    ) -> BrokerState:
        """Cut a broker off from the controller, or from other brokers; clients still reach it."""
        return await self.remote.call(
            VERBS["isolate_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {
                "from": origin,
                "fence": fence,
            },
        )

    async def rejoin_broker(
        self,
        broker: int,
    ) -> BrokerState:
        """Restore all links of a broker; answers when it has caught up."""
        return await self.remote.call(
            VERBS["rejoin_broker"],
            BrokerState,
            {
                "broker": broker,
            },
            {},
        )

    async def advance_clock(
        self,
        ms: int,
    ) -> ClockState:
        """Advance a manual clock; answers when everything due by then has happened."""
        return await self.remote.call(
            VERBS["advance_clock"],
            ClockState,
            {},
            {
                "ms": ms,
            },
        )

    async def reset(
        self,
        *,
        topics: Sequence[str | Mapping[str, object]] = (),
    ) -> Done:
        """Forget all topics, records, groups, configs, faults and the journal; keep the ports."""
        return await self.remote.call(
            VERBS["reset"],
            Done,
            {},
            {
                "topics": topics,
            },
        )

    async def topics(
        self,
    ) -> list[TopicState]:
        """List all topics, by name."""
        return await self.remote.call_list(VERBS["topics"], TopicState, {}, {})

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        assignments: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicState:
        """Create a topic; answers when every replica is in the ISR."""
        return await self.remote.call(
            VERBS["create_topic"],
            TopicState,
            {},
            {
                "name": name,
                "partitions": partitions,
                "replication_factor": replication_factor,
                "assignments": assignments,
                "configs": configs or {},
            },
        )

    async def delete_topic(
        self,
        topic: str,
    ) -> Done:
        """Delete a topic; answers when no broker has it."""
        return await self.remote.call(
            VERBS["delete_topic"],
            Done,
            {
                "topic": topic,
            },
            {},
        )

    async def produce_records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        records: Sequence[str | Mapping[str, object]] | None = None,
        key: str | None = None,
        value: object = None,
        headers: Mapping[str, str | None] | Sequence[Sequence[str | None]] | None = None,
        timestamp: int | None = None,
        encoding: Literal["text", "base64", "json"] = "text",
        acks: Literal["all", "1"] = "all",
        timeout_ms: int = 10000,
    ) -> ProducedRecords:
        """Append records to a topic; answers when they are committed."""
        return await self.remote.call(
            VERBS["produce_records"],
            ProducedRecords,
            {
                "topic": topic,
            },
            {
                "partition": partition,
                "records": records,
                "key": key,
                "value": value,
                "headers": headers or {},
                "timestamp": timestamp,
                "encoding": encoding,
                "acks": acks,
                "timeout_ms": timeout_ms,
            },
        )

    async def read_records(
        self,
        topic: str,
        partition: int,
        *,
        from_offset: int | None = None,
        to: int | None = None,
        last: int | None = None,
        limit: int = 100,
        encoding: Literal["text", "base64", "json"] = "text",
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> RecordsState:
        """Read records of a partition, decoded."""
        return await self.remote.call(
            VERBS["read_records"],
            RecordsState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "from": from_offset,
                "to": to,
                "last": last,
                "limit": limit,
                "encoding": encoding,
                "isolation": isolation,
            },
        )

    async def expect_records(
        self,
        topic: str,
        *,
        key: EllipsisType | str | None = ...,
        value: EllipsisType | object = ...,
        headers: Mapping[str, str | None] | Sequence[Sequence[str | None]] | None = None,
        partition: int | None = None,
        count: int = 1,
        encoding: Literal["text", "base64", "json"] = "text",
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        timeout_ms: int = 10000,
    ) -> ExpectedRecords:
        """Wait until a topic has matching records; refused with the nearest ones."""
        return await self.remote.call(
            VERBS["expect_records"],
            ExpectedRecords,
            {
                "topic": topic,
            },
            {
                "key": key,
                "value": value,
                "headers": headers or {},
                "partition": partition,
                "count": count,
                "encoding": encoding,
                "isolation": isolation,
                "timeout_ms": timeout_ms,
            },
        )

    async def partition(
        self,
        topic: str,
        partition: int,
    ) -> PartitionState:
        """Show a partition: its leader, its ISR, and the log of each replica."""
        return await self.remote.call(
            VERBS["partition"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    async def elect(
        self,
        topic: str,
        partition: int,
        *,
        leader: int,
        unclean: bool = False,
    ) -> PartitionState:
        """Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays."""
        return await self.remote.call(
            VERBS["elect"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "leader": leader,
                "unclean": unclean,
            },
        )

    async def roll(
        self,
        topic: str,
        partition: int,
    ) -> PartitionState:
        """Close the active segment of every replica; an empty one stays."""
        return await self.remote.call(
            VERBS["roll"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    async def compact(
        self,
        topic: str,
        partition: int,
    ) -> CompactionState:
        """Compact the closed segments of every replica, however little there is to gain."""
        return await self.remote.call(
            VERBS["compact"],
            CompactionState,
            {
                "topic": topic,
                "partition": partition,
            },
            {},
        )

    async def tier(
        self,
        topic: str,
        partition: int,
        *,
        action: Literal["upload", "delete-local", "expire", "forget", "lose"],
    ) -> TierState:
        """Upload to a partition's remote tier, delete from it or lose its objects, at once."""
        return await self.remote.call(
            VERBS["tier"],
            TierState,
            {
                "topic": topic,
                "partition": partition,
            },
            {
                "action": action,
            },
        )

    async def hold(
        self,
        topic: str,
        partition: int,
        broker: int,
        *,
        at: int | None = None,
        leave_isr: bool = False,
    ) -> PartitionState:
        """Keep a replica from fetching, at once or from an offset on."""
        return await self.remote.call(
            VERBS["hold"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {
                "at": at,
                "leave_isr": leave_isr,
            },
        )

    async def release(
        self,
        topic: str,
        partition: int,
        broker: int,
    ) -> PartitionState:
        """Let a replica fetch again; answers when it has caught up."""
        return await self.remote.call(
            VERBS["release"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {},
        )

    async def step(
        self,
        topic: str,
        partition: int,
        broker: int,
        *,
        fetches: int = 1,
    ) -> StepState:
        """Let a replica send a number of fetches, held or not; answers the result of each."""
        return await self.remote.call(
            VERBS["step"],
            StepState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {
                "fetches": fetches,
            },
        )

    async def wipe(
        self,
        topic: str,
        partition: int,
        broker: int,
    ) -> PartitionState:
        """Lose a replica's disk: it leaves the ISR and starts empty."""
        return await self.remote.call(
            VERBS["wipe"],
            PartitionState,
            {
                "topic": topic,
                "partition": partition,
                "broker": broker,
            },
            {},
        )

    async def groups(
        self,
    ) -> GroupsState:
        """List all groups, by name."""
        return await self.remote.call(VERBS["groups"], GroupsState, {}, {})

    async def group(
        self,
        group: str,
    ) -> GroupState:
        """Show a group: its members, its committed offsets and its lag."""
        return await self.remote.call(
            VERBS["group"],
            GroupState,
            {
                "group": group,
            },
            {},
        )

    async def wait_for_group(
        self,
        group: str,
        *,
        state: Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
        | None = None,
        members: int | None = None,
        timeout_ms: int = 10000,
    ) -> GroupState:
        """Wait until a group is stable, or in another state, with so many members."""
        return await self.remote.call(
            VERBS["wait_for_group"],
            GroupState,
            {
                "group": group,
            },
            {
                "state": state,
                "members": members,
                "timeout_ms": timeout_ms,
            },
        )

    async def move_coordinator(
        self,
        group: str,
        *,
        broker: int,
    ) -> GroupState:
        """Make a broker the coordinator of a group, and of all groups of its partition."""
        return await self.remote.call(
            VERBS["move_coordinator"],
            GroupState,
            {
                "group": group,
            },
            {
                "broker": broker,
            },
        )

    async def rebalance_group(
        self,
        group: str,
    ) -> GroupState:
        """Begin a rebalance of a group; its members join again at their next heartbeat."""
        return await self.remote.call(
            VERBS["rebalance_group"],
            GroupState,
            {
                "group": group,
            },
            {},
        )

    async def remove_member(
        self,
        group: str,
        member: str,
    ) -> GroupState:
        """Remove a member from a group, as if it had left; the others rebalance."""
        return await self.remote.call(
            VERBS["remove_member"],
            GroupState,
            {
                "group": group,
                "member": member,
            },
            {},
        )

    async def set_offsets(
        self,
        group: str,
        *,
        offsets: Sequence[str | Mapping[str, object]],
    ) -> GroupState:
        """Commit offsets for a group, whatever its state; a new group is created."""
        return await self.remote.call(
            VERBS["set_offsets"],
            GroupState,
            {
                "group": group,
            },
            {
                "offsets": offsets,
            },
        )

    async def delete_offsets(
        self,
        group: str,
        *,
        topics: Sequence[str],
    ) -> GroupState:
        """Delete the committed offsets of topics from a group, whatever its state."""
        return await self.remote.call(
            VERBS["delete_offsets"],
            GroupState,
            {
                "group": group,
            },
            {
                "topics": topics,
            },
        )

    async def transactions(
        self,
    ) -> TransactionsState:
        """List all transactional ids, by name."""
        return await self.remote.call(VERBS["transactions"], TransactionsState, {}, {})

    async def transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Show a transactional id: its producer, and what its transaction has."""
        return await self.remote.call(
            VERBS["transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    async def abort_transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Abort an open transaction and fence its producer, as its coordinator may."""
        return await self.remote.call(
            VERBS["abort_transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    async def abort_hanging_transaction(
        self,
        topic: str,
        partition: int,
        producer_id: int,
    ) -> PartitionState:
        """Abort a producer's open transaction in a partition that no coordinator knows."""
        return await self.remote.call(
            VERBS["abort_hanging_transaction"],
            PartitionState,
            {},
            {
                "topic": topic,
                "partition": partition,
                "producer_id": producer_id,
            },
        )

    async def expire_transaction(
        self,
        transactional_id: str,
    ) -> TransactionState:
        """Move the manual clock until a transaction times out, or an idle id is forgotten."""
        return await self.remote.call(
            VERBS["expire_transaction"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {},
        )

    async def hold_marker(
        self,
        transactional_id: str,
        topic: str,
        partition: int,
    ) -> TransactionState:
        """Hold the markers of a transactional id on their way to a partition."""
        return await self.remote.call(
            VERBS["hold_marker"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {
                "topic": topic,
                "partition": partition,
            },
        )

    async def release_marker(
        self,
        transactional_id: str,
        topic: str,
        partition: int,
    ) -> TransactionState:
        """Let the markers of a transactional id go to a partition again."""
        return await self.remote.call(
            VERBS["release_marker"],
            TransactionState,
            {
                "transactional_id": transactional_id,
            },
            {
                "topic": topic,
                "partition": partition,
            },
        )

    async def add_fault(
        self,
        api: str | int | Sequence[str | int],
        *,
        versions: str | int | None = None,
        broker: int | None = None,
        client_id: str | None = None,
        source: Literal["clients", "brokers"] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        record: Mapping[str, object] | None = None,
        count: int | None = 1,
        after: int = 0,
        probability: float = 1,
        action: str | Mapping[str, object] | None = None,
        sequence: Sequence[str | Mapping[str, object]] | None = None,
    ) -> FaultState:
        """Add a fault for matching requests; of several faults the first that matches hits."""
        return await self.remote.call(
            VERBS["add_fault"],
            FaultState,
            {},
            {
                "api": api,
                "versions": versions,
                "broker": broker,
                "client_id": client_id,
                "source": source,
                "topic": topic,
                "partition": partition,
                "group": group,
                "transactional_id": transactional_id,
                "record": record,
                "count": count,
                "after": after,
                "probability": probability,
                "action": action,
                "sequence": sequence,
            },
        )

    async def faults(
        self,
    ) -> list[FaultState]:
        """List all faults and their hits, in the order in which they are tried."""
        return await self.remote.call_list(VERBS["faults"], FaultState, {}, {})

    async def fault(
        self,
        id: int,
    ) -> FaultState:
        """Show a fault and its hits."""
        return await self.remote.call(
            VERBS["fault"],
            FaultState,
            {
                "id": id,
            },
            {},
        )

    async def wait_for_fault(
        self,
        id: int,
        *,
        hits: int = 1,
        timeout_ms: int = 10000,
    ) -> FaultState:
        """Wait until a fault has this number of hits."""
        return await self.remote.call(
            VERBS["wait_for_fault"],
            FaultState,
            {
                "id": id,
            },
            {
                "hits": hits,
                "timeout_ms": timeout_ms,
            },
        )

    async def remove_fault(
        self,
        id: int,
    ) -> FaultState:
        """Remove a fault; answers its hits."""
        return await self.remote.call(
            VERBS["remove_fault"],
            FaultState,
            {
                "id": id,
            },
            {},
        )

    async def remove_faults(
        self,
    ) -> Done:
        """Remove all faults."""
        return await self.remote.call(VERBS["remove_faults"], Done, {}, {})

    async def add_tier_fault(
        self,
        operation: Literal["upload", "fetch", "delete", "list"],
        *,
        error: str | Literal[True] | None = None,
        delay_ms: int | None = None,
        count: int | None = 1,
    ) -> TierFaultState:
        """Add a fault for operations on the remote tier; the first that matches hits."""
        return await self.remote.call(
            VERBS["add_tier_fault"],
            TierFaultState,
            {},
            {
                "operation": operation,
                "error": error,
                "delay_ms": delay_ms,
                "count": count,
            },
        )

    async def tier_faults(
        self,
    ) -> list[TierFaultState]:
        """List all tier faults and their hits, in the order in which they are tried."""
        return await self.remote.call_list(VERBS["tier_faults"], TierFaultState, {}, {})

    async def remove_tier_fault(
        self,
        id: int,
    ) -> TierFaultState:
        """Remove a tier fault; answers its hits."""
        return await self.remote.call(
            VERBS["remove_tier_fault"],
            TierFaultState,
            {
                "id": id,
            },
            {},
        )

    async def remove_tier_faults(
        self,
    ) -> Done:
        """Remove all tier faults."""
        return await self.remote.call(VERBS["remove_tier_faults"], Done, {}, {})

    def events(
        self,
        *,
        since: int | None = None,
        follow: bool = True,
    ) -> AsyncIterator[EventState]:
        """Stream verbs and changes of state as server-sent events, from now or from a number on."""
        return self.remote.call_stream(
            VERBS["events"],
            EventState,
            {},
            {
                "since": since,
                "follow": follow,
            },
        )

    async def timeline(
        self,
        *,
        since: int = 0,
        requests_since: int = 0,
        limit: int = 500,
    ) -> TimelineState:
        """Show verbs, events and requests in one order of time, and the state at the end."""
        return await self.remote.call(
            VERBS["timeline"],
            TimelineState,
            {},
            {
                "since": since,
                "requests_since": requests_since,
                "limit": limit,
            },
        )

    async def trace(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        broker: int | None = None,
        source: Literal["clients", "brokers", "all"] | None = None,
        error: str | None = None,
        since: int = 0,
        limit: int = 100,
    ) -> list[ExchangeState]:
        """Show the last requests and answers, decoded, the oldest first."""
        return await self.remote.call_list(
            VERBS["trace"],
            ExchangeState,
            {},
            {
                "api": api,
                "client_id": client_id,
                "topic": topic,
                "broker": broker,
                "source": source,
                "error": error,
                "since": since,
                "limit": limit,
            },
        )

    async def wait_for_trace(
        self,
        *,
        api: str | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        broker: int | None = None,
        source: Literal["clients", "brokers", "all"] | None = None,
        error: str | None = None,
        since: int = 0,
        timeout_ms: int = 10000,
    ) -> ExchangeState:
        """Wait for a matching request and its answer."""
        return await self.remote.call(
            VERBS["wait_for_trace"],
            ExchangeState,
            {},
            {
                "api": api,
                "client_id": client_id,
                "topic": topic,
                "broker": broker,
                "source": source,
                "error": error,
                "since": since,
                "timeout_ms": timeout_ms,
            },
        )

    async def verify(
        self,
        api: str | int | Sequence[str | int],
        *,
        count: int | Mapping[str, object],
        since: int = 0,
        versions: str | int | None = None,
        broker: int | None = None,
        client_id: str | None = None,
        source: Literal["clients", "brokers"] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        record: Mapping[str, object] | None = None,
    ) -> Verified:
        """Verify how many matching requests came; refused with the nearest ones."""
        return await self.remote.call(
            VERBS["verify"],
            Verified,
            {},
            {
                "count": count,
                "since": since,
                "api": api,
                "versions": versions,
                "broker": broker,
                "client_id": client_id,
                "source": source,
                "topic": topic,
                "partition": partition,
                "group": group,
                "transactional_id": transactional_id,
                "record": record,
            },
        )
