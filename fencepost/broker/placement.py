"""Which brokers hold which partition of a new topic.

Round robin over the brokers with racks taken in turn, as Kafka spreads replicas: the leaders of a
topic's partitions go round, and a partition's replicas lie on different racks while there are any.
Brokers that are offline (fenced) come last on their rack, and never lead.
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
    :raises PlacementError: When there are fewer brokers than replicas asked for, or all are fenced.
    """
    problem = _problem(brokers, replication_factor)
    if problem is not None:
        raise PlacementError(
            f"Unable to replicate the partition {replication_factor} time(s): {problem}"
        )
    order = _by_racks([broker for broker in brokers.values() if not broker.fenced])
    fenced = _by_racks([broker for broker in brokers.values() if broker.fenced])
    start = rng.randrange(len(order)) if first_partition == 0 else 0
    racks = {broker.broker_id: broker.rack or broker.broker_id for broker in brokers.values()}
    slots = range(start + first_partition, start + first_partition + partitions)
    return [
        _across_racks([*_walk(order, slot), *_rotated(fenced, slot)], racks)[:replication_factor]
        for slot in slots
    ]


def _problem(brokers: Mapping[int, BrokerImage], replication_factor: int) -> str | None:
    if all(broker.fenced for broker in brokers.values()):
        return "All brokers are currently fenced, or have all their log directories cordoned."
    if replication_factor > len(brokers):
        return (
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(brokers)} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    return None


def _by_racks(brokers: Sequence[BrokerImage]) -> list[int]:
    """Broker ids with racks taken in turn; by id where no racks are set."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda b: b.broker_id):
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    lanes = [racks[rack] for rack in sorted(racks)]
    longest = max(map(len, lanes), default=0)
    return [lane[i] for i in range(longest) for lane in lanes if i < len(lane)]


def _rotated(order: Sequence[int], slot: int) -> list[int]:
    first = slot % len(order) if order else 0
    return [*order[first:], *order[:first]]


def _walk(order: Sequence[int], slot: int) -> list[int]:
    """The leader, then its followers; each full round shifts the followers by one more."""
    leader, *others = _rotated(order, slot)
    return [leader, *_rotated(others, slot // len(order))]


def _across_racks(walk: Sequence[int], racks: Mapping[int, str | int]) -> tuple[int, ...]:
    """The same brokers, one of each rack before the second of any.

    :param racks: By broker id; a broker without a rack is one by itself.
    """
    before: Counter[str | int] = Counter()
    laps = {}
    for broker_id in walk:
        laps[broker_id] = before[racks[broker_id]]
        before[racks[broker_id]] += 1
    return tuple(sorted(walk, key=laps.__getitem__))
