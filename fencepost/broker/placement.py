"""Which brokers hold which partition of a new topic.

Round robin over the brokers with racks taken in turn, as Kafka spreads replicas: the leaders of a
topic's partitions go round, and a partition's replicas lie on different racks while there are any.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from fencepost.broker.image import BrokerImage


class PlacementError(ValueError):
    """There is no such assignment; the message says why, in Kafka's words."""


def place(
    brokers: Mapping[int, BrokerImage],
    *,
    partitions: int,
    replication_factor: int,
    first_partition: int,
    rng: random.Random,
) -> list[tuple[int, ...]]:
    """Replicas of ``partitions`` new partitions, the preferred leader first in each.

    :param first_partition: Index of the first one, so that added partitions go on with the round.
    :raises PlacementError: When there are fewer usable brokers than replicas asked for.
    """
    usable = [broker for broker in brokers.values() if not broker.fenced]
    if replication_factor > len(usable):
        raise PlacementError(
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    order = _by_racks(usable)
    start = rng.randrange(len(order)) if first_partition == 0 else 0
    racks = {broker.broker_id: broker.rack or broker.broker_id for broker in usable}
    return [
        _replicas(order, racks, start + first_partition + i, replication_factor)
        for i in range(partitions)
    ]


def _by_racks(brokers: Sequence[BrokerImage]) -> list[int]:
    """Broker ids with racks taken in turn; by id where no racks are set."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda b: b.broker_id):
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    lanes = [racks[rack] for rack in sorted(racks)]
    longest = max(map(len, lanes))
    return [lane[i] for i in range(longest) for lane in lanes if i < len(lane)]


def _replicas(
    order: Sequence[int], racks: Mapping[int, str | int], leader_slot: int, count: int
) -> tuple[int, ...]:
    """The leader, then its followers; each full round shifts the followers by one more.

    :param racks: By broker id; a broker without a rack is one by itself.
    """
    size = len(order)
    first = leader_slot % size
    shift = leader_slot // size % max(size - 1, 1)
    walk = [order[first]]
    walk += [order[(first + 1 + (shift + i) % (size - 1)) % size] for i in range(size - 1)]
    before: Counter[str | int] = Counter()
    laps = []
    for broker_id in walk:
        laps.append(before[racks[broker_id]])
        before[racks[broker_id]] += 1
    by_lap = sorted(range(size), key=laps.__getitem__)
    return tuple(walk[place] for place in by_lap[:count])
