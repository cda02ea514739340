"""The same questions to a real Apache Kafka and to fencepost, now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.cluster import Cluster, serve
from tests.harness.kafka import start_kafka
from tests.oracle.asking import Row
from tests.oracle.comparing import APACHE, differences, recorded
from tests.oracle.questions import everything


def _answers(cluster: Cluster, code: int) -> list[Row]:
    try:
        return everything.ask(cluster.addresses[0])
    finally:
        assert cluster.process is not None
        cluster.process.stop(expect=code)


@pytest.fixture(scope="module")
def kafka_says(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    kafka = start_kafka(tmp_path_factory.mktemp("kafka") / "node")
    return _answers(kafka, 143)  # a JVM that was told to end


def test_fencepost_answers_as_a_running_kafka_does(kafka_says: list[Row], tmp_path: Path) -> None:
    fencepost = serve(tmp_path / "fencepost.log", *APACHE, brokers=1)
    different = differences(kafka_says, _answers(fencepost, 0))
    assert not different, f"{len(different)} rows differ\n" + "\n".join(different)


def test_a_running_kafka_still_answers_as_it_was_recorded(kafka_says: list[Row]) -> None:
    different = differences(recorded(), kafka_says)
    assert not different, f"{len(different)} rows differ\n" + "\n".join(different)
