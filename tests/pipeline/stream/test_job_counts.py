"""Counts of records by their keys, written to another topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from fencepost.pipeline.stream.job import start_count_query
from fencepost.pipeline.stream.options import CountOptions, SourceOptions, Trigger, TriggerOptions
from tests.harness.confluent import read_partition
from tests.pipeline.stream.ground import TOPIC, WAIT_S, Ground

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGET = "counts"
Sent = tuple[bytes | None, bytes | None, int]
"""Key, value and timestamp."""
BEGIN = 1_700_000_000_000
"""Milliseconds since the epoch; windows of ten seconds begin there."""


def send(ground: Ground, records: Sequence[Sent]) -> None:
    producer = Producer({"bootstrap.servers": ground.cluster.bootstrap})
    for key, value, timestamp in records:
        producer.produce(TOPIC, value, key, timestamp=BEGIN + timestamp)
    assert producer.flush(30) == 0


def count(ground: Ground, counting: CountOptions) -> None:
    """Start or go on, and count all records."""
    source = SourceOptions(bootstrap=ground.cluster.bootstrap, topics=(TOPIC,))
    pace = TriggerOptions(checkpoint=str(ground.checkpoint), trigger=Trigger.AVAILABLE_NOW)
    query = start_count_query(ground.spark, source, pace, TARGET, counting)
    ground.queries.append(query)
    assert query.awaitTermination(WAIT_S)


def counts(ground: Ground) -> list[tuple[bytes | None, dict[str, int]]]:
    """All that was written, in order."""
    end = ground.cluster.end_offset(TARGET)
    found = read_partition(ground.cluster, TARGET, end)
    return [(each.key(), json.loads(each.value() or b"")) for each in found]


def test_counts_that_grow_are_told_again(field: Ground) -> None:
    field.verbs.create_topic(TARGET, assignments=[[1]])
    send(field, [(b"a", b"one", 0), (b"b", b"", 0), (b"a", b"three", 0), (None, None, 0)])
    count(field, CountOptions())
    first = {key: (told["count"], told["bytes"]) for key, told in counts(field)}
    assert first == {b"a": (2, 8), b"b": (1, 0), None: (1, 0)}
    send(field, [(b"a", b"four", 0)])
    count(field, CountOptions())
    assert counts(field)[3:] == [(b"a", {"count": 3, "bytes": 12})]


def test_a_window_is_told_once_when_it_is_over(field: Ground) -> None:
    field.verbs.create_topic(TARGET, assignments=[[1]])
    counting = CountOptions(window_s=10, late_s=5)
    send(field, [(b"a", b"x", 1_000), (b"a", b"x", 9_999), (b"a", b"x", 10_000)])
    count(field, counting)
    assert field.cluster.end_offset(TARGET) == 0, "a record may be five seconds late"
    send(field, [(b"a", b"late", 4_000), (b"b", b"x", 15_000)])
    count(field, counting)
    window = {"start": BEGIN, "end": BEGIN + 10_000}
    assert counts(field) == [(b"a", {**window, "count": 3, "bytes": 6})]
    send(field, [(b"a", b"too late", 5_000), (b"b", b"x", 40_000)])
    count(field, counting)
    told = sorted((key, told["start"] - BEGIN, told["count"]) for key, told in counts(field)[1:])
    assert told == [(b"a", 10_000, 1), (b"b", 10_000, 1)]
