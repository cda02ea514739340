"""The events of a change: exactly what is different."""

from __future__ import annotations

import gc
from typing import Final
from uuid import UUID

import pytest
from msgspec.structs import replace

from fencepost.broker.core.events import Kind
from fencepost.broker.core.image_changes import image_changes
from fencepost.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage

ID: Final = UUID(int=7)
NOW: Final = 5
PARTITION: Final = PartitionImage(replicas=(1, 2), isr=(1, 2), leader=1)
TOPIC: Final = TopicImage(name="t", topic_id=ID, partitions=(PARTITION, PARTITION))
EMPTY: Final = ClusterImage(
    version=1,
    cluster_id="c",
    controller_id=1,
    brokers={i: BrokerImage(broker_id=i, host="h", port=i) for i in (1, 2)},
)
IMAGE: Final = replace(EMPTY, topics={"t": TOPIC}, names={ID: "t"})


def told(
    before: ClusterImage, after: ClusterImage, *changed: str
) -> list[tuple[Kind, int | None, int | None, object]]:
    """Kind, partition, broker and details of each event."""
    found = list(image_changes(before, after, frozenset(changed), time_ms=NOW))
    assert all(event.time_ms == NOW for event in found)
    assert {event.topic for event in found} <= {None, *changed}
    return [(event.kind, event.partition, event.broker, event.details) for event in found]


def _election(leader: int, *, unclean: bool = False) -> dict[str, object]:
    return {"leader": leader, "previous_leader": 1, "leader_epoch": 1, "unclean": unclean}


def with_partition(index: int, **changed: object) -> ClusterImage:
    partitions = list(TOPIC.partitions)
    partitions[index] = replace(PARTITION, **changed)
    return replace(IMAGE, topics={"t": replace(TOPIC, partitions=tuple(partitions))})


def test_topics_come_and_go() -> None:
    created = (
        Kind.TOPIC_CREATED,
        None,
        None,
        {"topic_id": str(ID), "partitions": 2, "replication_factor": 2},
    )
    deleted = (Kind.TOPIC_DELETED, None, None, {"topic_id": str(ID)})
    assert told(EMPTY, IMAGE, "t") == [created]
    assert told(IMAGE, EMPTY, "t") == [deleted]
    again = replace(IMAGE, topics={"t": replace(TOPIC, topic_id=UUID(int=8))})
    assert [kind for kind, *_ in told(IMAGE, again, "t")] == [
        Kind.TOPIC_DELETED,
        Kind.TOPIC_CREATED,
    ]


def test_nothing_is_told_of_what_stays_as_it_is() -> None:
    assert told(IMAGE, IMAGE, "t") == []
    assert told(IMAGE, with_partition(0, partition_epoch=9), "t") == []
    assert told(IMAGE, with_partition(0, isr=(2, 1)), "t") == [], "the order says nothing"


@pytest.mark.parametrize(
    ("changed", "event"),
    [
        (
            {"leader": 2, "leader_epoch": 1},
            (Kind.LEADER_CHANGED, 1, 2, _election(2)),
        ),
        (
            {"leader_epoch": 1},
            (Kind.LEADER_CHANGED, 1, 1, _election(1)),
        ),
        (
            {"leader": -1, "leader_epoch": 1},
            (
                Kind.LEADER_CHANGED,
                1,
                None,
                _election(-1),
            ),
        ),
        (
            {"leader": 3, "leader_epoch": 1},
            (Kind.LEADER_CHANGED, 1, 3, _election(3, unclean=True)),
        ),
        (
            {"isr": (1,), "elr": (2,)},
            (Kind.ISR_CHANGED, 1, None, {"isr": (1,), "previous_isr": (1, 2), "elr": (2,)}),
        ),
        (
            {"replicas": (1, 2, 3), "adding": (3,), "removing": (2,)},
            (
                Kind.REPLICAS_CHANGED,
                1,
                None,
                {"replicas": (1, 2, 3), "adding": (3,), "removing": (2,)},
            ),
        ),
    ],
    ids=["leader", "the same leader again", "no leader", "unclean", "ISR", "reassignment"],
)
def test_a_partition_changes(
    changed: dict[str, object], event: tuple[Kind, int, int | None, object]
) -> None:
    assert told(IMAGE, with_partition(1, **changed), "t") == [event]


def test_the_garbage_collector_need_not_look_at_the_frequent_ones() -> None:
    first, second = (tuple(range(1, end)) for end in (3, 2))  # no constants, which may be frozen
    before, after = (with_partition(0, isr=first), with_partition(0, isr=second, leader=2))
    found = list(image_changes(before, after, frozenset({"t"}), time_ms=NOW))
    gc.collect()
    assert {event.kind for event in found} == {Kind.LEADER_CHANGED, Kind.ISR_CHANGED}
    assert not any(gc.is_tracked(event) or gc.is_tracked(event.details) for event in found)


def test_partitions_are_added() -> None:
    grown = replace(TOPIC, partitions=(*TOPIC.partitions, PARTITION))
    assert told(IMAGE, replace(IMAGE, topics={"t": grown}), "t") == [
        (Kind.PARTITIONS_ADDED, None, None, {"partitions": 3})
    ]


def test_a_broker_registers_and_is_fenced() -> None:
    def of(**changed: object) -> ClusterImage:
        broker = replace(IMAGE.brokers[2], **changed)
        return replace(IMAGE, brokers={**IMAGE.brokers, 2: broker})

    fenced = (Kind.BROKER_CHANGED, None, 2, {"state": "fenced", "epoch": 1})
    unfenced = (Kind.BROKER_CHANGED, None, 2, {"state": "unfenced", "epoch": 3})
    assert told(IMAGE, of(fenced=True)) == [fenced]
    assert told(IMAGE, of(epoch=3)) == [unfenced]
    assert told(IMAGE, of(rack="r")) == []
    assert told(replace(IMAGE, brokers={1: IMAGE.brokers[1]}), of(epoch=3)) == [unfenced]


def test_configs_change() -> None:
    before = replace(
        IMAGE,
        topic_configs={"t": {"a": "1", "b": "2", "c": "3"}},
        broker_configs={1: {"x": "1"}, None: {"y": "1"}},
    )
    after = replace(
        before,
        topic_configs={"t": {"a": "1", "b": "0", "d": "4"}},
        broker_configs={1: {"x": "1"}, None: {"y": "2"}},
    )
    assert told(before, after, "t") == [
        (Kind.CONFIGS_CHANGED, None, None, {"configs": {"y": "2"}}),
        (Kind.CONFIGS_CHANGED, None, None, {"configs": {"b": "0", "c": None, "d": "4"}}),
    ]
    assert told(before, replace(before, broker_configs={None: {"y": "1"}})) == [
        (Kind.CONFIGS_CHANGED, None, 1, {"configs": {"x": None}})
    ]


def test_configs_of_groups_and_subscriptions_change() -> None:
    before = replace(IMAGE, group_configs={"g": {"a": "1"}})
    after = replace(
        IMAGE, group_configs={"g": {"a": "2"}}, client_metrics_configs={"s": {"b": "1"}}
    )
    assert told(before, after) == [
        (Kind.CONFIGS_CHANGED, None, None, {"group": "g", "configs": {"a": "2"}}),
        (Kind.CONFIGS_CHANGED, None, None, {"client_metrics": "s", "configs": {"b": "1"}}),
    ]


def test_topics_are_told_of_by_name() -> None:
    two = {name: replace(TOPIC, name=name, topic_id=UUID(int=i)) for i, name in enumerate("ba")}
    found = image_changes(EMPTY, replace(EMPTY, topics=two), frozenset("ab"), time_ms=NOW)
    assert [event.topic for event in found] == ["a", "b"]
