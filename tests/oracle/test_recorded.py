"""What a real Apache Kafka 4.3.1 answered, one broker, row by row; no Java needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.harness.cluster import serve
from tests.oracle.asking import Row
from tests.oracle.comparing import ADVERTISED_OTHERWISE, APACHE, EXCEPTED, differences, recorded
from tests.oracle.questions import everything


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Row]]:
    log = tmp_path_factory.mktemp("oracle") / "fencepost.log"
    started = serve(log, *APACHE, brokers=1)
    yield everything.ask(started.addresses[0])
    assert started.process is not None
    started.process.stop()


def test_every_recorded_row_is_answered_as_kafka_did(answers: list[Row]) -> None:
    different = differences(recorded(), answers)
    assert not different, f"{len(different)} rows differ\n" + "\n".join(different)


def test_every_question_has_a_recorded_answer(answers: list[Row]) -> None:
    def keys(rows: list[Row]) -> Counter[tuple[str, str]]:
        return Counter((section, request) for section, request, _ in rows)

    assert keys(answers) == keys(recorded())


def test_kafka_advertises_the_same_versions(answers: list[Row]) -> None:
    """The list of keys may be shorter, and is nothing else."""

    def versions(rows: list[Row]) -> dict[int, tuple[int, int]]:
        (found,) = [answer for _, request, answer in rows if request == "full v4 key list"]
        return {key: (low, high) for key, low, high in found}

    want, got = versions(recorded()), versions(answers)
    different = {key for key in got if got[key] != want.get(key)}
    assert different <= ADVERTISED_OTHERWISE.keys()


def test_every_exception_names_a_recorded_row() -> None:
    assert {(section, request) for section, request, _ in recorded()} >= EXCEPTED.keys()


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (("Fetch", "r", "err=0 hw=6"), ("Fetch", "r", "err=0 hw=7")),
        (("ApiVersions", "v0", "keys=75"), ("ApiVersions", "v0", "keys=0")),
        (("Fetch", "r", 0.7), ("Fetch", "r", 0.0)),
        (("Fetch", "r", "err=0"), ("Fetch", "another", "err=0")),
    ],
)
def test_a_different_answer_is_seen(want: Row, got: Row) -> None:
    assert differences([want], [got])


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("{'Name': 'o42952-data'}", "{'Name': 'o00001-data'}"),
        ("Timestamp 1795250155303 of", "Timestamp 1700000000123 of"),
        ("p0={'LeaderId': 1}", "p0={'LeaderId': 3}"),
    ],
)
def test_what_differs_between_real_clusters_is_masked(want: str, got: str) -> None:
    assert not differences([("Metadata", "r", want)], [("Metadata", "r", got)])
