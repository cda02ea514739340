"""Who asks: a connection to every broker of a cluster, and one broker that is faced."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Connection, Value
from tests.oracle.asking import Row, fetch, list_offsets, named, send_records
from tests.oracle.steering import Steering

RETAINED: Final = {"retention.ms": "-1"}
"""The records are of 2023; by default they would be deleted."""
_MOST_REPLICAS: Final = 3
_ATTEMPTS: Final = 3
_NOT_LEADER: Final = 6


class Asker:
    """Asks a cluster of one broker or more, and collects the rows.

    Every question goes to the broker that is faced: the leader of the topic that was created last,
    unless it says otherwise.
    """

    def __init__(self, cluster: Cluster, steering: Steering) -> None:
        self.prefix = f"o{random.SystemRandom().randrange(100_000):05d}"
        self.rows: list[Row] = []
        self._steering = steering
        self._connections: dict[int, Connection] = {}
        with cluster.connect() as connection:
            brokers = connection.call("Metadata", 12, {"Topics": []})["Brokers"]
        self.addresses = {each["NodeId"]: (each["Host"], each["Port"]) for each in brokers}
        self.alive = set(self.addresses)
        """The brokers that run."""
        self.facing = min(self.alive)

    def row(self, section: str, request: str, answer: Value) -> None:
        self.rows.append((section, request, answer))

    def in_time(self, ask: Callable[[int], bool]) -> None:
        """Ask what can be asked for a moment only, if need be again.

        :param ask: Gets the number of the attempt; False when it took too long.
        :raises AssertionError: When every attempt did.
        """
        for attempt in range(_ATTEMPTS):
            before = len(self.rows)
            if ask(attempt):
                return
            del self.rows[before:]
        raise AssertionError("the machine is too slow to ask in time")

    # -- connections ------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The usual one to the broker that is faced."""
        return self.to(self.facing)

    @property
    def address(self) -> tuple[str, int]:
        return self.addresses[self.facing]

    @property
    def others(self) -> list[int]:
        """The brokers that run and are not faced, by id."""
        return sorted(self.alive - {self.facing})

    def to(self, broker: int) -> Connection:
        """The usual connection to a broker."""
        if broker not in self._connections:
            self._connections[broker] = Connection(self.addresses[broker], client_id="oracle")
        return self._connections[broker]

    def fresh(self) -> Connection:
        """A connection beside the usual one."""
        return Connection(self.address, client_id="oracle")

    def reconnect(self) -> None:
        self._connections.pop(self.facing).close()

    def close(self) -> None:
        for each in self._connections.values():
            each.close()

    # -- topics -----------------------------------------------------------------------------

    def metadata(self, version: int, *topics: Body, **others: Value) -> Body:
        return self.connection.call("Metadata", version, {"Topics": list(topics), **others})

    def create(
        self,
        suffix: str,
        configs: Mapping[str, str] | None = None,
        replicas: Sequence[int] | None = None,
    ) -> tuple[str, str]:
        """A topic of one partition, served; its leader is faced. Returns its name and id.

        :param replicas: Where it lives, the preferred leader first; None lets the cluster choose.
        """
        name = f"{self.prefix}-{suffix}"
        topic: Body = {"Name": name, "NumPartitions": -1, "ReplicationFactor": -1}
        if replicas is None:
            topic["NumPartitions"] = 1
            topic["ReplicationFactor"] = min(_MOST_REPLICAS, len(self.alive))
        else:
            topic["Assignments"] = [{"PartitionIndex": 0, "BrokerIds": list(replicas)}]
        topic["Configs"] = [{"Name": key, "Value": value} for key, value in (configs or {}).items()]
        answer = self.connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 20_000})
        created = answer["Topics"][0]
        assert created["ErrorCode"] == 0, created
        self.facing = self.wait_until_served(name)
        return name, created["TopicId"]

    def partition(self, topic: str, broker: int | None = None) -> Body | None:
        """What a broker (the one that is faced) says of a topic's only partition, if it knows."""
        asked = {"Topics": [named(topic)], "AllowAutoTopicCreation": False}
        answer = self.to(broker or self.facing).call("Metadata", 12, asked)
        entry = answer["Topics"][0]
        found: Body | None = entry["Partitions"][0] if entry["ErrorCode"] == 0 else None
        return found

    def leader_epoch(self, topic: str) -> int:
        found = self.partition(topic)
        assert found is not None
        epoch: int = found["LeaderEpoch"]
        return epoch

    def move_leader(self, topic: str, broker: int) -> None:
        """Let a replica lead, by an election that raises the leader epoch by one, and face it."""
        before = self.leader_epoch(topic)
        self._steering.lead(topic, broker)
        self.facing = self.wait_until_served(topic, broker, before + 1)

    def wait_until_served(
        self, topic: str, leader: int | None = None, epoch: int | None = None
    ) -> int:
        """Wait until all brokers agree on a leader who serves; the leader."""

        def agreed() -> int | None:
            found = [self.partition(topic, broker) for broker in self.alive]
            seen = {(each["LeaderId"], each["LeaderEpoch"]) if each else None for each in found}
            if len(seen) > 1 or None in seen:
                return None
            chosen, current = seen.pop() or (-1, -1)
            if leader not in (None, chosen) or epoch not in (None, current) or chosen < 0:
                return None
            served = list_offsets(self.to(chosen), topic, -1)["ErrorCode"] == 0
            return chosen if served else None

        return wait_until(f"{topic} is served", agreed)

    def wait_until_followed(
        self, topic: str, high_watermark: int, followers: Sequence[int] | None = None
    ) -> None:
        """Wait until followers (None: all other brokers) know the high watermark."""
        asked = self.others if followers is None else followers

        def known() -> bool:
            answers = [fetch(self.to(each), topic, 0, max_wait_ms=0) for each in asked]
            found = {each["Responses"][0]["Partitions"][0]["HighWatermark"] for each in answers}
            return found <= {high_watermark}

        wait_until(f"all follow {topic}", known)

    def produce(self, topic: str, data: bytes) -> None:
        """Append with acks=all. :raises AssertionError: When it is refused."""
        answer = send_records(self.connection, topic, data)
        assert answer is not None
        entry = answer["Responses"][0]["PartitionResponses"][0]
        assert entry["ErrorCode"] == 0, entry

    # -- brokers ----------------------------------------------------------------------------

    def prefer(self, topic: str, broker: int) -> None:
        """Prepare for a replica to lead, so that the election is quick."""
        self._steering.prefer(topic, broker)

    def elect(self, topic: str, broker: int) -> None:
        """Let a replica lead and face it, whether or not it answers everything yet."""
        self._steering.lead(topic, broker)
        self.facing = broker
        wait_until(
            f"{broker} leads {topic}",
            lambda: list_offsets(self.connection, topic, -2)["ErrorCode"] != _NOT_LEADER,
        )

    def freezable(self) -> Collection[int]:
        """The brokers that can be frozen, and elections go on."""
        return self._steering.freezable()

    def freeze(self, broker: int) -> None:
        """Let a broker do nothing for a while. The cluster finds out by itself."""
        self._steering.freeze(broker)
        self.alive.discard(broker)

    def thaw(self, broker: int) -> None:
        """Let it go on where it was."""
        self._steering.thaw(broker)
        self.alive.add(broker)

    def kill(self, broker: int) -> None:
        """End a broker at once. The cluster finds out by itself."""
        if broker in self._connections:
            self._connections.pop(broker).close()
        self._steering.kill(broker)
        self.alive.discard(broker)

    def start(self, broker: int) -> None:
        """Start a broker that was killed, its logs as they were."""
        self._steering.start(broker)
        self.alive.add(broker)
