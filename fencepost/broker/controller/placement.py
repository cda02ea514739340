"""Placement of a new topic's replicas on brokers, as by Kafka's ``StripedReplicaPlacer``.

Racks are taken in turn, and on each rack its brokers: the leaders of a topic's partitions go round
the racks, and a partition's replicas lie on different racks while there are any. Brokers without a
rack are together on one. Brokers that are offline (fenced) come last on their rack, and never lead.
Where the first rack and the first broker of each rack are is drawn for each request, also for
partitions that are added. After as many partitions as brokers are online the orders are drawn
again, so that the same sets of replicas do not come again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from fencepost.broker.metadata.image import BrokerImage

T = TypeVar("T")
Draw: TypeAlias = Callable[[int], int]
"""A random number below a bound, from 0 on."""


class PlacementError(ValueError):
    """There is no such assignment; the message says why, in Kafka's words."""


def place_replicas(
    brokers: Mapping[int, BrokerImage], *, partitions: int, replication_factor: int, draw: Draw
) -> list[tuple[int, ...]]:
    """Replicas of ``partitions`` new partitions, the preferred leader first in each.

    :param replication_factor: From 1 on.
    :raises PlacementError: When there are fewer brokers than replicas asked for, or all are fenced.
    """
    problem = _problem(brokers, replication_factor)
    if problem is not None:
        raise PlacementError(problem)
    placer = _StripedPlacer(brokers.values(), draw)
    return [placer.place(replication_factor) for _ in range(partitions)]


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


class _Brokers:
    """Brokers of a rack that are taken in turn, each once in a round of placements.

    A round that begins where the last one did goes on with it: Kafka's list does so where it was
    not asked meanwhile, and then counts its brokers as taken.
    """

    __slots__ = ("_first", "_order", "_round", "_taken")

    def __init__(self, broker_ids: Iterable[int], draw: Draw) -> None:
        self._order = sorted(broker_ids)
        self._first = draw(len(self._order)) if self._order else 0
        self._taken = 0
        self._round = 0

    def shuffle(self, draw: Draw) -> None:
        """Draw another order."""
        _shuffle(self._order, draw)

    def take(self, placement: int) -> int | None:
        """The next broker in a placement; None where all are taken."""
        count = len(self._order)
        if placement != self._round and count:
            self._round, self._taken = placement, 0
            self._first = (self._first + 1) % count
        if self._taken >= count:
            return None
        self._taken += 1
        return self._order[(self._first + self._taken - 1) % count]

    def take_several(self, placement: int, most: int) -> list[int]:
        """The next brokers in a placement, as many as there are.

        :param most: From 1 on.
        """
        first = self.take(placement)
        if first is None:
            return []
        begin, count = self._first + self._taken, len(self._order)
        more = range(begin, begin + min(most - 1, count - self._taken))
        self._taken += len(more)
        return [first, *(self._order[index % count] for index in more)]


class _Rack:
    """The brokers of a rack: those online, and after them those that are fenced."""

    __slots__ = ("_fenced", "_online")

    def __init__(self, brokers: Sequence[BrokerImage], draw: Draw) -> None:
        self._online = _Brokers((b.broker_id for b in brokers if not b.fenced), draw)
        self._fenced = _Brokers((b.broker_id for b in brokers if b.fenced), draw)

    def shuffle(self, draw: Draw) -> None:
        """Draw other orders."""
        self._online.shuffle(draw)
        self._fenced.shuffle(draw)

    def take_leader(self, placement: int) -> int | None:
        """The next broker that is online; None where all are taken."""
        return self._online.take(placement)

    def take(self, placement: int) -> int | None:
        """The next broker; None where all are taken."""
        online = self._online.take(placement)
        return self._fenced.take(placement) if online is None else online

    def take_several(self, placement: int, most: int) -> list[int]:
        """The next brokers, as many as there are."""
        taken = self._online.take_several(placement, most)
        if len(taken) < most:
            taken += self._fenced.take_several(placement, most - len(taken))
        return taken


class _StripedPlacer:
    """Places the replicas of one partition after the other.

    :param brokers: One of them at least is online.
    """

    def __init__(self, brokers: Iterable[BrokerImage], draw: Draw) -> None:
        by_rack: dict[str | None, list[BrokerImage]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        self._draw = draw
        self._racks = [_Rack(by_rack[name], draw) for name in sorted(by_rack, key=_rack_order)]
        self._online = sum(not b.fenced for group in by_rack.values() for b in group)
        self._placement = 0
        self._first_rack = draw(len(self._racks))

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition.

        :param replication_factor: From 1 to the number of brokers.
        """
        racks = self._racks
        if self._placement == self._online and self._online > 1:
            _shuffle(racks, self._draw)
            for rack in racks:
                rack.shuffle(self._draw)
            self._placement = 0
        if len(racks) == 1:  # all of it in one step: there may be thousands of partitions
            self._placement += 1
            return tuple(racks[0].take_several(self._placement - 1, replication_factor))
        first = self._first_rack % len(racks)
        leaders = ((i, racks[i].take_leader(self._placement)) for i in _round(first, len(racks)))
        leading, leader = next((i, b) for i, b in leaders if b is not None)
        replicas = [leader]
        passed = False
        for index in _round(first, len(racks)):
            if len(replicas) == replication_factor:
                break
            if index == leading and not passed:
                passed = True  # its turn was the leader's
                continue
            broker_id = racks[index].take(self._placement)
            if broker_id is not None:
                replicas.append(broker_id)
        self._placement += 1
        self._first_rack = first + 1
        return tuple(replicas)


_NO_RACK: Final = b""


def _rack_order(name: str | None) -> tuple[bool, bytes]:
    """Brokers without a rack, then racks by name, as Java compares text."""
    return (False, _NO_RACK) if name is None else (True, name.encode("utf-16-be", "surrogatepass"))


def _round(first: int, count: int) -> Iterable[int]:
    """All indexes from one on, over and over."""
    while True:
        yield from range(first, count)
        yield from range(first)


def _shuffle(items: list[T], draw: Draw) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = draw(last + 1)
        items[last], items[other] = items[other], items[last]
