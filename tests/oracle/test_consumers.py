"""The consumers of Kafka and of fencepost, at a running Kafka and at fencepost: one story."""

from __future__ import annotations

import pytest

from tests.harness.kafka import start_kafka
from tests.harness.served_cluster import serve
from tests.oracle.comparing import APACHE_THREE
from tests.oracle.consumer_stories import CONSUMERS, STORY, Line, tell
from tests.oracle.steering import ControlSteering, KafkaSteering

CLUSTERS = ("kafka", "fencepost")


@pytest.fixture(scope="module", params=CLUSTERS)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Line]]:
    """What each consumer answered at a cluster."""
    folder = tmp_path_factory.mktemp("consumers")
    if request.param == "kafka":
        kafka = start_kafka(folder / "kafka", nodes=3)
        try:
            return tell(kafka.cluster, KafkaSteering(kafka), folder)
        finally:
            kafka.stop()
    cluster = serve(folder / "fencepost.log", *APACHE_THREE, brokers=3)
    try:
        return tell(cluster, ControlSteering(cluster), folder)
    finally:
        cluster.stop()


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_truncation_ends_for_each_consumer_as_it_ends_for_all(
    told: dict[str, list[Line]], consumer: str
) -> None:
    assert told[consumer] == list(STORY)
