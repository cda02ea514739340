"""What stands in the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from fencepost.pipeline.stream.job import COLUMNS, start_parquet_query
from fencepost.pipeline.stream.options import SourceOptions, Trigger, TriggerOptions
from tests.pipeline.stream.ground import TOPIC, WAIT_S, Ground, batches

if TYPE_CHECKING:
    from tests.harness.confluent import Options

OTHER = "payments"
BEGIN = 1_700_000_000_000


def test_a_row_is_all_that_a_record_has(field: Ground) -> None:
    field.verbs.create_topic(OTHER, assignments=[[2], [3]])
    options: Options = {"bootstrap.servers": field.cluster.bootstrap}
    producer = Producer(options)
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("trace", None)]
    producer.produce(TOPIC, b"paid", b"k", timestamp=BEGIN + 1, headers=headers)
    producer.produce(OTHER, None, None, partition=1, timestamp=BEGIN + 2)
    for n in range(20):
        producer.produce(TOPIC, b"%d" % n, timestamp=BEGIN + 2)
    assert producer.flush(30) == 0
    source = SourceOptions(bootstrap=field.cluster.bootstrap, topics=(TOPIC, OTHER), max_offsets=7)
    pace = TriggerOptions(checkpoint=str(field.checkpoint), trigger=Trigger.AVAILABLE_NOW)
    query = start_parquet_query(field.spark, source, pace, str(field.files))
    assert query.awaitTermination(WAIT_S)
    sizes = [records for records, _ in batches(query)]
    assert max(sizes) <= 8, "seven, rounded up for a partition with less than its share"
    table = field.spark.read.parquet(str(field.files))
    assert tuple(table.columns) == COLUMNS
    millis = "cast(timestamp as double) * 1000 as timestamp"
    rows = table.selectExpr(*(millis if name == "timestamp" else name for name in COLUMNS))
    found = {(row.topic, row.partition, row.offset): row for row in rows.collect()}
    assert len(found) == rows.count() == 22
    paid, empty = found[TOPIC, 0, 0], found[OTHER, 1, 0]
    assert (bytes(paid.key), bytes(paid.value), paid.timestamp) == (b"k", b"paid", BEGIN + 1)
    told = [(header.key, header.value and bytes(header.value)) for header in paid.headers]
    assert told == headers
    assert (empty.key, empty.value, empty.headers, empty.timestamp) == (None, None, None, BEGIN + 2)
