"""Transactional ids with a long past: the epochs of their producer ids are nearly used up.

A seed does not take the 32,767 steps of each epoch, and yet comes to where producer ids change.
"""

import random
from collections.abc import Callable
from typing import Final

from fencepost.broker.coordinator import partition_for
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.transactions.transaction_metadata import (
    LAST_CLIENT_EPOCH,
    NO_PRODUCER_EPOCH,
    TransactionMetadata,
    new_metadata,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.simulation.transactions.messages import TRANSACTION_TIMEOUT_MS
from fencepost.simulation.transactions.workload import PRODUCERS, STATE_PARTITIONS

_MOST_LEFT: Final = 8


def use_up_epochs(cluster: Cluster, seed: int, deliver: Callable[[], None]) -> None:
    """Have the coordinators of a new cluster write what they would know after a long time.

    :param deliver: Lets messages arrive until none is left.
    """
    rng = random.Random(f"epochs {seed}")
    for transactional_id in sorted(set(PRODUCERS.values())):
        index = partition_for(transactional_id, STATE_PARTITIONS)
        leader = cluster.controller.partition(TRANSACTION_TOPIC, index).leader
        coordinator = cluster.brokers[leader].transactions
        producer_id = coordinator.generate_producer_id()
        if producer_id is None:  # the broker has asked for a block of them
            deliver()
            producer_id = coordinator.generate_producer_id()
        assert producer_id is not None
        metadata = _used_up(producer_id, rng.randrange(_MOST_LEFT), cluster.scheduler.wall_ms())
        coordinator.runtime.shards[index].change(transactional_id, metadata, _require_committed)
        deliver()


def _used_up(producer_id: int, left: int, now_ms: int) -> TransactionMetadata:
    """:param left: How many epochs are left."""
    metadata = new_metadata(producer_id, TRANSACTION_TIMEOUT_MS, now_ms)
    epoch = LAST_CLIENT_EPOCH - left
    return metadata.with_epoch(epoch, NO_PRODUCER_EPOCH, TRANSACTION_TIMEOUT_MS, now_ms)


def _require_committed(error: ErrorCode) -> None:
    assert error is ErrorCode.NONE
