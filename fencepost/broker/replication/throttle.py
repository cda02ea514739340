"""Replication that is throttled, as ``kafka-reassign-partitions --throttle`` asks for it (KIP-73).

A topic names its throttled replicas, by ``leader.replication.throttled.replicas`` and by
``follower.replication.throttled.replicas``; a broker has a rate for what it sends as their leader,
and one for what it fetches as their follower. Beyond the rate a follower that is out of sync is
sent nothing, or does not fetch, until the rate has come down. It looks again each
``replica.fetch.backoff.ms``, as a fetcher of Kafka's does, so that a changed rate acts at once. One
that is in sync is never held back: producers wait for it.
"""

from collections.abc import Callable
from typing import Final, Protocol

from fencepost.broker.configs.effective_configs import BrokerConfigs, TopicSettings
from fencepost.broker.core.sampled_rate import SampledRate
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.network.links import BrokerId

UNLIMITED: Final = 2**63 - 1
_ALL: Final = "*"
_SECOND_MS: Final = 1000


class _Node(Protocol):
    broker_id: BrokerId
    configs: BrokerConfigs
    scheduler: Scheduler


class ReplicationThrottle:
    """One broker's throttle, of what it sends or of what it fetches.

    :param rate: The bytes a second that its configs allow.
    :param replicas: The throttled replicas of a topic, as ``partition:broker`` or ``*``.
    """

    def __init__(
        self,
        node: _Node,
        rate: Callable[[BrokerConfigs], int],
        replicas: Callable[[TopicSettings], frozenset[str]],
    ) -> None:
        self._node = node
        self._rate = rate
        self._replicas = replicas
        configs = node.configs
        self._measured = SampledRate(
            configs.replication_quota_window_num,
            configs.replication_quota_window_size_seconds * _SECOND_MS,
        )
        self._waiting: set[object] = set()

    def applies_to(self, topic: str, index: int) -> bool:
        """Whether this broker's replica of a partition is throttled, and there is a rate."""
        configs = self._node.configs
        if self._rate(configs) == UNLIMITED:
            return False
        replicas = self._replicas(configs.topic(topic))
        return _ALL in replicas or f"{index}:{self._node.broker_id}" in replicas

    def record(self, size: int) -> None:
        """Count bytes of throttled replicas."""
        self._measured.record(size, self._node.scheduler.now_ms())

    def delay_ms(self) -> int:
        """How long until it looks again whether more may go; 0 while the rate allows it."""
        configs = self._node.configs
        delay_ms = self._measured.delay_ms(self._rate(configs), self._node.scheduler.now_ms())
        return min(delay_ms, max(1, configs.replica_fetch_backoff_ms))

    def call_later(self, delay_ms: int, key: object, callback: Callable[[], None]) -> None:
        """Call back when more may go, once for each ``key`` that waits."""
        if key in self._waiting:
            return
        self._waiting.add(key)

        def run() -> None:
            self._waiting.discard(key)
            callback()

        scheduler = self._node.scheduler
        scheduler.at(scheduler.now_ms() + delay_ms, run)


def leader_throttle(node: _Node) -> ReplicationThrottle:
    """Of what a broker sends to followers."""
    return ReplicationThrottle(
        node,
        lambda configs: configs.leader_replication_throttled_rate,
        lambda topic: topic.leader_replication_throttled_replicas,
    )


def follower_throttle(node: _Node) -> ReplicationThrottle:
    """Of what a broker fetches from leaders."""
    return ReplicationThrottle(
        node,
        lambda configs: configs.follower_replication_throttled_rate,
        lambda topic: topic.follower_replication_throttled_replicas,
    )
