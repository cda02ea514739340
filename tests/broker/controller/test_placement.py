"""Where replicas are placed: where Kafka's own placer places them, and what follows from that."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.controller.placement import PlacementError, place_replicas
from fencepost.broker.metadata.image import BrokerImage
from tests.broker.controller.record_placements import PLACEMENTS


def brokers(count: int, racks: int = 0) -> dict[int, BrokerImage]:
    return {
        n: BrokerImage(broker_id=n, host="h", port=n, rack=f"r{n % racks}" if racks else None)
        for n in range(1, count + 1)
    }


def placed(
    among: dict[int, BrokerImage], partitions: int, factor: int, seed: int = 0
) -> list[tuple[int, ...]]:
    return place_replicas(
        among,
        partitions=partitions,
        replication_factor=factor,
        draw=random.Random(seed).randrange,
    )


def fenced(among: dict[int, BrokerImage], *broker_ids: int) -> dict[int, BrokerImage]:
    return {n: replace(b, fenced=n in broker_ids) for n, b in among.items()}


def as_kafkas_placer(shape: str) -> str:
    """The answer to a recorded question."""
    drawn, partitions, factor, described = shape.split(" ")
    among = {}
    for broker in described.split(","):
        broker_id, rack, state = broker.split(":")
        among[int(broker_id)] = BrokerImage(
            broker_id=int(broker_id),
            host="h",
            port=1,
            rack=None if rack == "-" else rack,
            fenced=state == "fenced",
        )
    try:
        found = place_replicas(
            among,
            partitions=int(partitions),
            replication_factor=int(factor),
            draw=lambda bound: int(drawn) % bound,
        )
    except PlacementError as error:
        return str(error)
    return " ".join(",".join(map(str, replicas)) for replicas in found)


def test_replicas_are_where_kafkas_own_placer_places_them() -> None:
    recorded = PLACEMENTS.read_text(encoding="utf-8").splitlines()
    shapes, answers = recorded[::2], recorded[1::2]
    assert len(shapes) >= 400
    assert dict(zip(shapes, map(as_kafkas_placer, shapes), strict=True)) == dict(
        zip(shapes, answers, strict=True)
    )


@settings(database=None)
@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 3), st.integers(0, 99), st.data())
def test_replicas_are_distinct_and_all_are_there(
    count: int, partitions: int, racks: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, count))
    among = brokers(count, racks)
    off = data.draw(st.sets(st.sampled_from(sorted(among)), max_size=count - 1))
    found = placed(fenced(among, *off), partitions, factor, seed=seed)
    assert len(found) == partitions
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in found)
    assert all(set(replicas) <= set(among) for replicas in found)
    assert not off & {replicas[0] for replicas in found}


@pytest.mark.parametrize("racks", [0, 2, 3])
def test_leaders_and_followers_go_round(racks: int) -> None:
    found = placed(brokers(6, racks), 6, 3)
    assert Counter(replicas[0] for replicas in found) == dict.fromkeys(range(1, 7), 1)
    held = Counter(broker for replicas in found for broker in replicas)
    assert set(held.values()) == {3}


def test_later_partitions_get_other_sets_of_replicas() -> None:
    assert len({frozenset(replicas) for replicas in placed(brokers(6), 30, 3)}) > 6


@pytest.mark.parametrize("seed", range(5))
def test_a_partitions_replicas_lie_on_different_racks(seed: int) -> None:
    among = brokers(6, racks=3)
    for replicas in placed(among, 12, 3, seed=seed):
        assert len({among[broker].rack for broker in replicas}) == 3


def test_the_first_leader_depends_on_the_seed_and_on_nothing_else() -> None:
    assert placed(brokers(5), 7, 3, seed=3) == placed(brokers(5), 7, 3, seed=3)
    assert len({placed(brokers(5), 1, 1, seed=seed)[0] for seed in range(30)}) == 5


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
        "All brokers are currently fenced, or have all their log directories cordoned."
    )


def test_more_replicas_than_brokers_cannot_be() -> None:
    with pytest.raises(PlacementError) as refused:
        placed(fenced(brokers(3), 3), 1, 4)
    assert str(refused.value) == (
        "The target replication factor of 4 cannot be reached because only 3 broker(s) are "
        "registered or some brokers have all their log directories cordoned."
    )
