"""Where replicas are placed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.controller.topic_changes import PlacementError, place_replicas
from fencepost.broker.metadata.image import BrokerImage


def brokers(count: int, racks: int = 0) -> dict[int, BrokerImage]:
    return {
        n: BrokerImage(broker_id=n, host="h", port=n, rack=f"r{n % racks}" if racks else None)
        for n in range(1, count + 1)
    }


def placed(
    among: dict[int, BrokerImage], partitions: int, factor: int, first: int = 0, seed: int = 0
) -> list[tuple[int, ...]]:
    return place_replicas(
        among,
        partitions=partitions,
        replication_factor=factor,
        first_partition=first,
        rng=random.Random(seed),
    )


@settings(database=None)
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


def fenced(among: dict[int, BrokerImage], *broker_ids: int) -> dict[int, BrokerImage]:
    return {n: replace(b, fenced=n in broker_ids) for n, b in among.items()}


def test_fenced_brokers_get_nothing_while_there_are_others() -> None:
    found = placed(fenced(brokers(3), 2), 6, 2)
    assert {broker for replicas in found for broker in replicas} == {1, 3}


def test_fenced_brokers_follow_where_there_are_not_enough_others() -> None:
    found = placed(fenced(brokers(4), 2, 4), 8, 3)
    assert Counter(replicas[0] for replicas in found) == {1: 4, 3: 4}
    assert all(set(replicas[:2]) == {1, 3} for replicas in found)
    assert Counter(replicas[2] for replicas in found) == {2: 4, 4: 4}


def test_a_fenced_broker_goes_before_a_second_one_of_the_same_rack() -> None:
    among = {
        n: BrokerImage(broker_id=n, host="h", port=n, rack=rack, fenced=n in (2, 4))
        for n, rack in enumerate(["a", "a", "a", "b"], start=1)
    }
    for replicas in placed(among, 4, 2):
        assert replicas[0] in (1, 3)
        assert replicas[1] == 4
    for replicas in placed(among, 4, 3):
        assert set(replicas) == {1, 3, 4}, "2 comes last on its rack"


def test_somebody_has_to_lead() -> None:
    with pytest.raises(PlacementError) as refused:
        placed(fenced(brokers(2), 1, 2), 1, 3)
    assert str(refused.value) == (
        "Unable to replicate the partition 3 time(s): All brokers are currently fenced, or have "
        "all their log directories cordoned."
    )


def test_more_replicas_than_brokers_cannot_be() -> None:
    with pytest.raises(PlacementError) as refused:
        placed(fenced(brokers(3), 3), 1, 4)
    assert str(refused.value) == (
        "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be "
        "reached because only 3 broker(s) are registered or some brokers have all their log "
        "directories cordoned."
    )
