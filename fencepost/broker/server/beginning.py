"""What a trace tells besides requests and changes: how the cluster was when it began.

Without that nobody could tell what a change is one from.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fencepost.broker.cluster import Cluster
from fencepost.broker.configs.broker import broker_configs
from fencepost.broker.events import Event, Kind, topic_details
from fencepost.broker.image import ClusterImage, TopicImage


def found(cluster: Cluster) -> Iterator[Event]:
    """The configs, and every topic."""
    image, now_ms = cluster.controller.image, cluster.scheduler.now_ms()
    details = {
        "brokers": list(image.brokers),
        "conformance": cluster.options.conformance.value,
        "configs": _shown(cluster.options.configs),
        "dynamic_configs": {
            "" if broker is None else str(broker): _shown(configs)
            for broker, configs in image.broker_configs.items()
        },
        "features": dict(image.features),
    }
    yield Event(kind=Kind.TRACE_STARTED, time_ms=now_ms, details=details)
    for topic in image.topics.values():
        yield Event(
            kind=Kind.TOPIC_KNOWN,
            time_ms=now_ms,
            topic=topic.name,
            details=_all_details(image, topic),
        )


def in_full(cluster: Cluster, event: Event) -> Event:
    """An event with all that there is to say: of a new topic its configs, and who leads."""
    image = cluster.controller.image
    topic = image.topics.get(event.topic or "")
    if event.kind is not Kind.TOPIC_CREATED or topic is None:
        return event
    return replace(event, details=_all_details(image, topic))


def _all_details(image: ClusterImage, topic: TopicImage) -> Mapping[str, object]:
    return {
        **topic_details(topic),
        "configs": dict(image.configs_of(topic.name)),
        "leaders": [[each.leader, each.leader_epoch] for each in topic.partitions],
        "isrs": [list(each.isr) for each in topic.partitions],
    }


def _shown(configs: Mapping[str, str]) -> dict[str, str]:
    """What is no secret."""
    known = broker_configs()
    return {
        name: text
        for name, text in configs.items()
        if (config := known.get(name)) is not None and not config.sensitive
    }
