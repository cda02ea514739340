"""The differences between two images of the cluster, as events.

So no code that changes an image has to tell of it: elections, ISRs, reassignments, topics, configs
and the registration of brokers are told where the image is published.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from fencepost.broker.core.events import CLIENT_METRICS, GROUP, Event, Kind
from fencepost.broker.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)

T = TypeVar("T")


def image_changes(
    before: ClusterImage, after: ClusterImage, changed: frozenset[str], *, time_ms: int
) -> Iterator[Event]:
    """What is different in ``after``: brokers first, then topics by name.

    :param changed: Names of topics that are new, gone or different; no others are looked at.
    :param time_ms: When it changed.
    """
    yield from _brokers(before, after, time_ms)
    for name in sorted(changed):
        old, new = before.topics.get(name), after.topics.get(name)
        if old is not None and new is not None and old.topic_id == new.topic_id:
            yield from _topic(old, new, time_ms)
            configs = _changed_configs(before.configs_of(name), after.configs_of(name))
            if configs:
                yield Event(
                    kind=Kind.CONFIGS_CHANGED,
                    time_ms=time_ms,
                    topic=name,
                    details={"configs": configs},
                )
            continue
        if old is not None:
            yield Event(
                kind=Kind.TOPIC_DELETED,
                time_ms=time_ms,
                topic=name,
                details={"topic_id": str(old.topic_id)},
            )
        if new is not None:
            yield _created(new, time_ms)


def _brokers(before: ClusterImage, after: ClusterImage, time_ms: int) -> Iterator[Event]:
    if after.brokers is not before.brokers:
        for broker_id, new in after.brokers.items():
            old = before.brokers.get(broker_id)
            if old is None or (old.fenced, old.epoch) != (new.fenced, new.epoch):
                yield _registered(new, time_ms)
        for broker_id in before.brokers.keys() - after.brokers.keys():
            yield _broker_changed(before.brokers[broker_id], "unregistered", time_ms)
    for broker, configs in _changed_resources(before.broker_configs, after.broker_configs):
        yield Event(
            kind=Kind.CONFIGS_CHANGED,
            time_ms=time_ms,
            broker=broker,
            details={"configs": configs},
        )
    for resource, was, now in (
        (GROUP, before.group_configs, after.group_configs),
        (CLIENT_METRICS, before.client_metrics_configs, after.client_metrics_configs),
    ):
        for name, configs in _changed_resources(was, now):
            details = {resource: name, "configs": configs}
            yield Event(kind=Kind.CONFIGS_CHANGED, time_ms=time_ms, details=details)


def _changed_resources(
    before: Mapping[T, Mapping[str, str]], after: Mapping[T, Mapping[str, str]]
) -> Iterator[tuple[T, Mapping[str, str | None]]]:
    """The resources whose configs changed, with those that did."""
    if after is not before:
        for name in {**before, **after}:
            configs = _changed_configs(before.get(name, {}), after.get(name, {}))
            if configs:
                yield name, configs


def _registered(broker: BrokerImage, time_ms: int) -> Event:
    """A broker that registered, or whose registration is fenced now, or is not any more."""
    return _broker_changed(broker, "fenced" if broker.fenced else "unfenced", time_ms)


def _broker_changed(broker: BrokerImage, state: str, time_ms: int) -> Event:
    return Event(
        kind=Kind.BROKER_CHANGED,
        time_ms=time_ms,
        broker=broker.broker_id,
        details={"state": state, "epoch": broker.epoch},
    )


def _created(topic: TopicImage, time_ms: int) -> Event:
    return Event(
        kind=Kind.TOPIC_CREATED, time_ms=time_ms, topic=topic.name, details=topic_details(topic)
    )


def topic_details(topic: TopicImage) -> Mapping[str, object]:
    """The details of the event of a new topic."""
    return {
        "topic_id": str(topic.topic_id),
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas),
    }


def _topic(old: TopicImage, new: TopicImage, time_ms: int) -> Iterator[Event]:
    if len(new.partitions) > len(old.partitions):
        yield Event(
            kind=Kind.PARTITIONS_ADDED,
            time_ms=time_ms,
            topic=new.name,
            details={"partitions": len(new.partitions)},
        )
    pairs = enumerate(zip(old.partitions, new.partitions, strict=False))
    for index, was, now in [(i, a, b) for i, (a, b) in pairs if a is not b]:
        for kind, leader, details in _partition(was, now):
            yield Event(
                kind=kind,
                time_ms=time_ms,
                topic=new.name,
                partition=index,
                broker=leader,
                details=details,
            )


def _partition(
    was: PartitionImage, now: PartitionImage
) -> Iterable[tuple[Kind, int | None, Mapping[str, object]]]:
    if now.leader_epoch != was.leader_epoch or now.leader != was.leader:
        yield (
            Kind.LEADER_CHANGED,
            None if now.leader == NO_LEADER else now.leader,
            {
                "leader": now.leader,
                "previous_leader": was.leader,
                "leader_epoch": now.leader_epoch,
                "unclean": now.is_led_uncleanly_after(was),
            },
        )
    if set(now.isr) != set(was.isr):
        yield (
            Kind.ISR_CHANGED,
            None,
            {"isr": now.isr, "previous_isr": was.isr, "elr": now.elr},
        )
    assigned = (now.replicas, now.adding, now.removing)
    if assigned != (was.replicas, was.adding, was.removing):
        yield (
            Kind.REPLICAS_CHANGED,
            None,
            {"replicas": now.replicas, "adding": now.adding, "removing": now.removing},
        )


def _changed_configs(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """Configs that have another value now; None for one that is gone."""
    return {name: new.get(name) for name in {**old, **new} if new.get(name) != old.get(name)}
