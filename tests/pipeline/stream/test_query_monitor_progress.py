"""What is made of Spark's own words; without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fencepost.pipeline.stream.query_monitor import (
    OffsetRange,
    explain_failure,
    new_batches,
    read_batch,
)

Offsets = dict[str, dict[str, int]] | None


def progress(number: int, records: int, start: Offsets, end: Offsets) -> dict[str, Any]:
    """As a query tells it, as far as it matters."""
    source = {"startOffset": json.dumps(start), "endOffset": json.dumps(end)}
    return {"batchId": number, "numInputRows": records, "sources": [source]}


def test_a_batch_tells_what_it_went_over() -> None:
    start = {"orders": {"0": 10, "2": 5, "10": 0}}
    end = {"orders": {"0": 20, "2": 5, "10": 1}, "new": {"0": 3, "1": 0}}
    batch = read_batch(progress(7, 14, start, end))
    assert str(batch) == "batch 7: 14 records, new-0 to 3, orders-0 10..20, orders-10 0..1"
    assert batch.offsets == 11
    assert batch.gone_back == ()
    assert batch.to_dict() == {
        "batch": 7,
        "records": 14,
        "partitions": [
            {"topic": "new", "partition": 0, "from": None, "to": 3},
            {"topic": "orders", "partition": 0, "from": 10, "to": 20},
            {"topic": "orders", "partition": 10, "from": 0, "to": 1},
        ],
    }


def test_offsets_that_go_back_come_first() -> None:
    start = {"orders": {str(n): 20 for n in range(20)}}
    end = {"orders": {**{str(n): 21 for n in range(20)}, "19": 10}}
    batch = read_batch(progress(2, 19, start, end))
    back = OffsetRange(topic="orders", partition=19, start=20, end=10)
    assert batch.gone_back == (back,)
    assert str(batch).startswith("batch 2: 19 records, orders-19 went back from 20 to 10, orders-0")
    assert str(batch).endswith(" and 12 more")


def test_offsets_without_a_record_are_told() -> None:
    batch = read_batch(progress(1, 1, {"orders": {"0": 10}}, {"orders": {"0": 20}}))
    assert str(batch) == "batch 1: 1 record at 10 offsets, orders-0 10..20"


def test_batches_are_told_once_and_idle_ones_never() -> None:
    seen = [
        progress(0, 10, None, {"orders": {"0": 10}}),
        progress(1, 10, {"orders": {"0": 10}}, {"orders": {"0": 20}}),
        progress(2, 0, {"orders": {"0": 20}}, {"orders": {"0": 20}}),
        progress(2, 1, {"orders": {"0": 20}}, {"orders": {"0": 21}}),
    ]
    assert [batch.number for batch in new_batches(seen, -1)] == [0, 1, 2]
    assert [batch.number for batch in new_batches(seen, 1)] == [2]
    assert (
        new_batches([{**seen[0], "sources": [{"startOffset": None, "endOffset": None}]}], -1) == []
    )


PLAN = "=== Streaming Query ===\nIdentifier: [id = 1]\nReason: none of this\n"
WENT_BACK = """\
Some data may have been lost because they are not available in Kafka any more;
If you don't want your streaming query to fail on such cases, set an option.
Reason: Partition orders-0 offset was changed from 20 to 10.
This could be either 1) a user error or 2) the kafka topic-partition is deleted and re-created.
"""
DELETED = """\
Some data may have been lost because they are not available in Kafka any more;
Reason: Could not read records in offset [10, 20) for topic partition orders-0
with consumer group spark-kafka-source-1-executor.
"""
THROWN = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
org.apache.kafka.common.errors.TimeoutException: Timed out.
"""


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (WENT_BACK, "data loss: Partition orders-0 offset was changed from 20 to 10"),
        (
            DELETED,
            "data loss: Could not read records in offset [10, 20) for topic partition orders-0",
        ),
        (THROWN, "TimeoutException: Timed out."),
        ("An error occurred while calling o9.start.\n: a.b.C: no more\n\tat x", "C: no more"),
        ("[PATH_NOT_FOUND] no such path.\nmore", "[PATH_NOT_FOUND] no such path."),
        ("", "Spark does not say why"),
    ],
)
def test_a_failure_in_one_line(message: str, told: str) -> None:
    assert explain_failure(message + PLAN) == told
