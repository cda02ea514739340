"""What a trace tells first: all that a change is one from, and no secret."""

from __future__ import annotations

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server.trace_file import initial_events, with_details


@pytest.fixture
def cluster() -> Cluster:
    options = ClusterOptions(
        addresses=tuple(
            Address(host="127.0.0.1", port=9091 + n, advertised_host="") for n in (1, 2)
        ),
        topics=(NewTopic(name="t", assignments=((2, 1), (1, 2)), configs={"retention.ms": "7"}),),
        configs={"log.retention.ms": "5", "ssl.keystore.password": "hush"},
    )
    return Cluster(options, ManualClock())


def test_configs_and_topics(cluster: Cluster) -> None:
    started, known = initial_events(cluster)
    assert started.kind is Kind.TRACE_STARTED
    assert started.details["configs"] == {"log.retention.ms": "5"}
    assert started.details["brokers"] == [1, 2]
    assert (known.kind, known.topic) == (Kind.TOPIC_KNOWN, "t")
    topic_id = cluster.controller.image.topics["t"].topic_id
    assert known.details == {
        "topic_id": str(topic_id),
        "partitions": 2,
        "replication_factor": 2,
        "configs": {"retention.ms": "7"},
        "leaders": [[2, 0], [1, 0]],
        "isrs": [[2, 1], [1, 2]],
    }


def test_a_new_topic_is_told_in_full_and_nothing_else_is_changed(cluster: Cluster) -> None:
    _, known = initial_events(cluster)
    created = Event(kind=Kind.TOPIC_CREATED, time_ms=1, topic="t")
    assert with_details(cluster, created).details == known.details
    deleted = Event(kind=Kind.TOPIC_DELETED, time_ms=1, topic="t")
    assert with_details(cluster, deleted) is deleted
    gone = Event(kind=Kind.TOPIC_CREATED, time_ms=1, topic="gone")
    assert with_details(cluster, gone) is gone
