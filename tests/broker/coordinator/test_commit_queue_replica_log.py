"""A coordinator on real replicas: it writes to its leader, and the next leader has its state."""

from __future__ import annotations

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.coordinator.commit_queue import ReplicaLog
from fencepost.broker.coordinator.shard import CoordinatorRuntime
from fencepost.broker.core.waits import Wait
from fencepost.protocol.errors import ErrorCode
from tests.broker.coordinator.counters import Counters, CounterShard, runtime
from tests.harness.driver import Driver

TOPIC = "counters"


class CounterCluster:
    """Three brokers, and the counter coordinator of the one that leads the topic."""

    def __init__(self) -> None:
        self.driver = Driver(3)
        topic = NewTopic(name=TOPIC, partitions=1, replication_factor=3, configs={})
        self.driver.cluster.controller.create_topic(topic)
        self.runtime: CoordinatorRuntime[CounterShard]
        self.load()

    @property
    def leader(self) -> int:
        return self.driver.partition(TOPIC).leader

    @property
    def followers(self) -> list[int]:
        return sorted({1, 2, 3} - {self.leader})

    @property
    def shard(self) -> CounterShard:
        shard = self.runtime.shard_for("a")
        assert isinstance(shard, CounterShard)
        return shard

    def load(self) -> None:
        """Start the coordinator at the present leader."""
        scheduler = self.driver.cluster.scheduler
        self.runtime = runtime(scheduler, partitions=1)
        self.runtime.on_elected(0, ReplicaLog(self.driver.leader(TOPIC), scheduler))
        self.driver.advance(0)


def test_a_response_waits_for_the_followers() -> None:
    cluster = CounterCluster()
    cluster.driver.hold(*cluster.followers)
    answer = cluster.shard.increment("a")
    assert isinstance(answer, Wait)
    assert not answer.done
    assert cluster.shard.committed == Counters()
    cluster.driver.release(*cluster.followers)
    assert answer.result == 1
    assert cluster.shard.committed == Counters({"a": 1})


def test_the_next_leader_replays_the_same_state() -> None:
    cluster = CounterCluster()
    for name in "abac":
        cluster.shard.increment(name)
    cluster.shard.delete("c")
    cluster.driver.advance(0)
    before = cluster.shard
    cluster.driver.elect(TOPIC, 0, cluster.followers[0])
    assert before.increment("a") is ErrorCode.NOT_COORDINATOR
    cluster.load()
    assert cluster.shard.latest == cluster.shard.committed == Counters({"a": 2, "b": 1})
    answer = cluster.shard.increment("b")
    cluster.driver.advance(0)
    assert isinstance(answer, Wait)
    assert answer.result == 2


def test_without_enough_replicas_nothing_is_written() -> None:
    cluster = CounterCluster()
    replica = cluster.driver.leader(TOPIC)
    replica.isr, replica.min_insync_replicas = (cluster.leader,), 2
    assert cluster.shard.increment("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.shard.latest == Counters()
    assert replica.log.log_end_offset == 0


def test_the_log_of_an_earlier_epoch_writes_and_commits_nothing() -> None:
    cluster = CounterCluster()
    leader, followers, before = cluster.leader, cluster.followers, cluster.shard
    cluster.driver.hold(*followers)
    answer = before.increment("a")
    cluster.driver.elect(TOPIC, 0, followers[0])
    cluster.driver.elect(TOPIC, 0, leader)
    cluster.driver.release(*followers)
    assert before.increment("a") is ErrorCode.NOT_COORDINATOR
    cluster.load()
    cluster.shard.increment("b")
    cluster.driver.advance(0)
    assert cluster.shard.committed == Counters({"b": 1})
    assert isinstance(answer, Wait)
    assert not answer.done
    before.close()
    assert answer.result is ErrorCode.NOT_COORDINATOR
