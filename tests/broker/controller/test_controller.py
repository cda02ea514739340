"""The registry, and who is told of a change to it."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.topic_changes import NewTopic, topic_name_problem
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.metadata.image import BrokerImage, ClusterImage
from fencepost.protocol.errors import ErrorCode

Told = list[tuple[ClusterImage, frozenset[str]]]


def start(count: int = 3) -> tuple[Controller, Told]:
    told: Told = []
    controller = Controller(
        brokers=[BrokerImage(broker_id=n, host="h", port=n) for n in range(1, count + 1)],
        cluster_id="c",
        rng=random.Random(0),
        settings=BrokerConfigs(0).topic,
        publish=lambda image, changed: told.append((image, changed)),
    )
    return controller, told


def topic(name: str, *replicas: tuple[int, ...]) -> NewTopic:
    return NewTopic(name=name, assignments=replicas or ((1, 2, 3),), configs={})


def test_every_change_is_one_image_with_the_next_number_and_what_changed_in_it() -> None:
    controller, told = start()
    assert controller.image.version == 1
    plans = [
        (controller.topic_planner.plan_topic(topic(name)), {"segment.ms": "1"})
        for name in ("a", "b")
    ]
    assert told == []
    controller.create_topics(plans)
    controller.set_topic_configs("a", {"segment.ms": "2"})
    controller.elect("b", 0, 2)
    controller.update_topics([controller.topic_planner.plan_partitions("a", 2, None)])
    controller.delete_topics(["a"])
    controller.set_broker_configs(None, {"num.partitions": "2"})
    controller.register(BrokerImage(broker_id=4, host="h", port=4))
    controller.reset()
    assert [image.version for image, _ in told] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert [set(changed) for _, changed in told] == [
        {"a", "b"},
        {"a"},
        {"b"},
        {"a"},
        {"a"},
        {"b"},
        set(),
        {"b"},
    ]
    assert told[-1][0] is controller.image


def test_an_image_that_was_told_never_changes() -> None:
    controller, told = start()
    controller.create_topic(topic("t"))
    before = told[-1][0]
    partition = before.topics["t"].partitions[0]
    controller.elect("t", 0, 3)
    controller.set_topic_configs("t", {"segment.ms": "5"})
    controller.delete_topics(["t"])
    assert before.topics["t"].partitions[0] is partition
    assert (partition.leader, partition.leader_epoch) == (1, 0)
    assert before.configs_of("t") == {}
    assert list(before.names.values()) == ["t"]


def test_an_election_raises_both_epochs_also_when_the_leader_stays() -> None:
    controller, _ = start()
    controller.create_topic(topic("t", (1, 2), (2, 3)))
    for leader, epoch in ((2, 1), (2, 2), (1, 3)):
        controller.elect("t", 0, leader)
        partition = controller.image.topics["t"].partitions[0]
        assert (partition.leader, partition.leader_epoch) == (leader, epoch)
        assert partition.partition_epoch == epoch
        assert (partition.isr, partition.replicas) == ((1, 2), (1, 2))
    assert controller.image.topics["t"].partitions[1].leader_epoch == 0


def test_only_a_replica_in_sync_is_elected() -> None:
    controller, _ = start()
    planned = controller.create_topic(topic("t"))
    shrunk = replace(planned.partitions[0], isr=(1, 2))
    controller.update_topics([replace(planned, partitions=(shrunk,))])
    for leader in (3, 9):
        with pytest.raises(ControllerError) as refused:
            controller.elect("t", 0, leader)
        assert refused.value.code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    for name, index in (("t", 1), ("u", 0)):
        with pytest.raises(ControllerError) as unknown:
            controller.elect(name, index, 1)
        assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_topic_takes_its_id_and_configs_along() -> None:
    controller, _ = start()
    first = controller.create_topic(NewTopic(name="t", configs={"segment.ms": "1"}))
    controller.delete_topics(["t"])
    assert controller.image.topic_by_id(first.topic_id) is None
    assert not controller.image.topic_configs
    second = controller.create_topic(NewTopic(name="t", configs={}))
    assert second.topic_id != first.topic_id


def test_producer_ids_rise_and_outlive_a_reset() -> None:
    controller, _ = start()
    before = controller.next_producer_ids(3)
    controller.reset()
    assert [*before, *controller.next_producer_ids(2)] == [0, 1, 2, 3, 4]


def test_a_reset_leaves_brokers_and_the_cluster_id() -> None:
    controller, _ = start()
    controller.create_topic(topic("t"))
    controller.set_broker_configs(1, {"num.partitions": "2"})
    controller.reset()
    image = controller.image
    assert (image.topics, image.names, image.topic_configs, image.broker_configs) == (
        {},
        {},
        {},
        {},
    )
    assert (set(image.brokers), image.cluster_id) == ({1, 2, 3}, "c")


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 249, "..."])
def test_legal_names(name: str) -> None:
    assert topic_name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ü", "a\n", "a/b"])
def test_illegal_names(name: str) -> None:
    assert topic_name_problem(name) is not None


def test_only_names_with_dots_and_underscores_collide() -> None:
    controller, _ = start()
    for name in ("a.b_c", "plain"):
        controller.create_topic(NewTopic(name=name, configs={}))
    for name in ("a_b_c", "a.b.c", "a_b.c"):
        with pytest.raises(ControllerError, match=r"collides with existing topic: a\.b_c"):
            controller.topic_planner.check_new_name(name)
    controller.topic_planner.check_new_name("a-b-c")


def test_a_topic_has_a_partition() -> None:
    controller, _ = start()
    with pytest.raises(ControllerError) as refused:
        controller.create_topic(NewTopic(name="t", assignments=(), configs={}))
    assert refused.value.code is ErrorCode.INVALID_PARTITIONS
    assert "t" not in controller.image.topics
