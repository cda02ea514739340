"""Where replicas are placed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.image import BrokerImage
from fencepost.broker.placement import PlacementError, place


def brokers(count: int, racks: int = 0) -> dict[int, BrokerImage]:
    return {
        n: BrokerImage(broker_id=n, host="h", port=n, rack=f"r{n % racks}" if racks else None)
        for n in range(1, count + 1)
    }


def placed(
    among: dict[int, BrokerImage], partitions: int, factor: int, first: int = 0, seed: int = 0
) -> list[tuple[int, ...]]:
    return place(
        among,
        partitions=partitions,
        replication_factor=factor,
        first_partition=first,
        rng=random.Random(seed),
    )


@settings(deadline=None, database=None)
@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 3), st.integers(0, 99), st.data())
def test_replicas_are_distinct_and_leaders_go_round(
    count: int, partitions: int, racks: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, count))
    found = placed(brokers(count, racks), partitions, factor, seed=seed)
    assert len(found) == partitions
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in found)
    assert all(set(replicas) <= set(range(1, count + 1)) for replicas in found)
    leaders = Counter(replicas[0] for replicas in found)
    most = max(leaders.values())
    least = min(leaders.get(n, 0) for n in range(1, count + 1))
    assert most - least <= 1


def test_followers_are_spread_as_well() -> None:
    found = placed(brokers(5), 20, 3)
    held = Counter(broker for replicas in found for broker in replicas)
    assert set(held.values()) == {12}
    pairs = {(replicas[0], replicas[1]) for replicas in found}
    assert len(pairs) == 20


@pytest.mark.parametrize("seed", range(5))
def test_a_partitions_replicas_lie_on_different_racks(seed: int) -> None:
    among = brokers(6, racks=3)
    for replicas in placed(among, 12, 3, seed=seed):
        assert len({among[broker].rack for broker in replicas}) == 3


def test_the_first_leader_depends_on_the_seed_and_on_nothing_else() -> None:
    assert placed(brokers(5), 7, 3, seed=3) == placed(brokers(5), 7, 3, seed=3)
    assert len({placed(brokers(5), 1, 1, seed=seed)[0] for seed in range(30)}) == 5


def test_added_partitions_go_on_with_the_round() -> None:
    leaders = [replicas[0] for n in range(1, 6) for replicas in placed(brokers(5), 1, 2, first=n)]
    assert sorted(leaders) == [1, 2, 3, 4, 5]


def test_fenced_brokers_get_nothing() -> None:
    among = brokers(3)
    among[2] = replace(among[2], fenced=True)
    assert {broker for replicas in placed(among, 6, 2) for broker in replicas} == {1, 3}
    with pytest.raises(PlacementError):
        placed(among, 1, 3)


def test_more_replicas_than_brokers_cannot_be() -> None:
    with pytest.raises(PlacementError, match=r"^Unable to replicate the partition 4 time\(s\): "):
        placed(brokers(3), 1, 4)
