"""The answers of fencepost and of a real Kafka, each asked for once in a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.kafka import Kafka
from tests.harness.served_cluster import serve
from tests.oracle.asking import Row
from tests.oracle.comparing import RECORDINGS, SINGLE, Recording
from tests.oracle.random_requests.__main__ import SEED, compare
from tests.oracle.random_requests.comparison import Result
from tests.oracle.steering import ControlSteering, KafkaSteering


@pytest.fixture(scope="session", params=RECORDINGS, ids=lambda each: each.name)
def recording(request: pytest.FixtureRequest) -> Recording:
    found: Recording = request.param
    return found


@pytest.fixture(scope="session")
def fencepost_answers() -> dict[str, list[Row]]:
    """Those that were asked for, by the name of the recording: of all files of this folder."""
    return {}


@pytest.fixture(scope="session")
def fencepost_says(
    recording: Recording,
    fencepost_answers: dict[str, list[Row]],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Row]:
    """The answers of a fencepost of its own."""
    if recording.name not in fencepost_answers:
        log = tmp_path_factory.mktemp("oracle") / "fencepost.log"
        cluster = serve(log, *recording.options, brokers=recording.brokers)
        try:
            fencepost_answers[recording.name] = recording.ask(cluster, ControlSteering(cluster))
        finally:
            cluster.stop()
    return fencepost_answers[recording.name]


@pytest.fixture
def kafka_says(recording: Recording, asked_kafkas: AskedKafkas) -> list[Row]:
    """The answers of a Kafka that answers all recordings that are made like this one."""
    return asked_kafkas.answers(recording)


@pytest.fixture(scope="session")
def asked_kafkas(tmp_path_factory: pytest.TempPathFactory) -> AskedKafkas:
    return AskedKafkas(lambda: tmp_path_factory.mktemp("kafka"))


class AskedKafkas:
    """What Kafkas answered, each asked all that it can be: they take long to start."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._answers: dict[str, list[Row]] = {}
        self._random: Result | AssertionError | None = None

    def answers(self, recording: Recording) -> list[Row]:
        if recording.name not in self._answers:
            self._ask([each for each in RECORDINGS if _is_made_like(each, recording)])
        return self._answers[recording.name]

    def random_requests(self) -> Result | AssertionError:
        """What random requests to the Kafka of one broker and to a fencepost showed."""
        self.answers(SINGLE)
        assert self._random is not None
        return self._random

    def _ask(self, recordings: list[Recording]) -> None:
        kafka = recordings[0].start_kafka(self._new_folder())
        steering = KafkaSteering(kafka)
        try:
            for each in recordings:
                self._answers[each.name] = each.ask(kafka.cluster, steering)
            if SINGLE in recordings:
                self._random = self._compare(kafka)
        finally:
            kafka.stop()

    def _compare(self, kafka: Kafka) -> Result | AssertionError:
        """An error is for the test of random requests alone."""
        try:
            return compare(kafka.cluster, self._new_folder(), SEED)
        except AssertionError as error:
            return error


def _is_made_like(one: Recording, other: Recording) -> bool:
    return (one.brokers, one.kafka_configs) == (other.brokers, other.kafka_configs)
