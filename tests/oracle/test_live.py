"""The same questions to a real Apache Kafka and to fencepost, now."""

from __future__ import annotations

from tests.oracle.asking import Row
from tests.oracle.comparing import Recording, differences, told_in_order
from tests.oracle.conftest import AskedKafkas
from tests.oracle.random_requests.__main__ import count


def test_fencepost_answers_as_a_running_kafka_does(
    recording: Recording, kafka_says: list[Row], fencepost_says: list[Row]
) -> None:
    _agree(recording, kafka_says, fencepost_says)


def test_a_running_kafka_still_answers_as_it_was_recorded(
    recording: Recording, kafka_says: list[Row]
) -> None:
    _agree(recording, recording.rows, kafka_says)


def test_random_requests_are_answered_as_a_running_kafka_does(asked_kafkas: AskedKafkas) -> None:
    found = asked_kafkas.random_requests()
    assert not isinstance(found, AssertionError), found
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.requests.total() >= count()


def _agree(recording: Recording, want: list[Row], got: list[Row]) -> None:
    different = differences(want, got, recording.excepted)
    assert not different, f"{len(different)} rows differ\n" + "\n".join(different)
    assert told_in_order(want, got)
