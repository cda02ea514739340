"""A few of Kafka's own tests of the admin, the producer, the consumer and the tools."""

from __future__ import annotations

from typing import Final

import pytest

from tests.kafka import expected
from tests.kafka.__main__ import works
from tests.kafka.suite import Result, run

SAMPLE: Final = (
    "DeleteRecordsCommandTest#testCommand",
    "GetOffsetShellTest#testGetOffsetsByTimestamp",
    "ListOffsetsIntegrationTest#testThreeCompressedRecordsInOneBatch",
    "PlaintextConsumerAssignTest#testClassicAssignAndConsume",
    "PlaintextConsumerFetchTest#testClassicConsumerFetchInvalidOffset",
    "PlaintextConsumerTest#testClassicConsumerHeaders",
    "ProducerCompressionTest#testCompression",
)


@pytest.mark.timeout(400)
def test_kafkas_own_tests_have_the_outcomes_that_are_listed() -> None:
    results = list[Result]()
    run(works(SAMPLE), 2, results.append)
    assert {result.test.partition("[")[0] for result in results} == set(SAMPLE)
    listed = expected.read(expected.LIST.read_text())
    assert list(expected.problems(results, listed)) == []
