"""The answers of fencepost and of a real Kafka, each asked for once in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.cluster import serve
from tests.harness.kafka import start_kafka
from tests.oracle.asking import Row
from tests.oracle.comparing import RECORDINGS, Recording
from tests.oracle.steering import ControlSteering, KafkaSteering


@pytest.fixture(scope="session", params=RECORDINGS, ids=lambda each: each.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    found: Recording = request.param
    return found


@pytest.fixture(scope="session")
def fencepost_says(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The answers of a fencepost of its own."""
    log = tmp_path_factory.mktemp("oracle") / "fencepost.log"
    cluster = serve(log, *recording.options, brokers=recording.brokers)
    assert cluster.process is not None
    try:
        return recording.ask(cluster, ControlSteering(cluster))
    finally:
        cluster.process.stop()


@pytest.fixture
def kafka_says(recording: Recording, request: pytest.FixtureRequest) -> list[Row]:
    """The answers of a Kafka that answers all recordings of as many brokers."""
    name = {1: "kafka_of_one", 3: "kafka_of_three"}[recording.brokers]
    answers: dict[str, list[Row]] = request.getfixturevalue(name)
    return answers[recording.name]


@pytest.fixture(scope="session")
def kafka_of_one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    return _ask_kafka(tmp_path_factory.mktemp("kafka"), 1)


@pytest.fixture(scope="session")
def kafka_of_three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    return _ask_kafka(tmp_path_factory.mktemp("kafka"), 3)


def _ask_kafka(folder: Path, brokers: int) -> dict[str, list[Row]]:
    """All that is asked of so many brokers, of one Kafka: it takes long to start."""
    kafka = start_kafka(folder, nodes=brokers)
    steering = KafkaSteering(kafka)
    try:
        asked = [each for each in RECORDINGS if each.brokers == brokers]
        return {each.name: each.ask(kafka.cluster, steering) for each in asked}
    finally:
        kafka.stop()
