"""The load client in Python: confluent-kafka doing what ``bench/c/load.c`` does, same arguments.

Runs as a program of its own, so that neither its memory nor its threads are the harness's.
"""

from __future__ import annotations

import json
import random
import sys
import time

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

POOL = 1024
BATCH = 10_000
PRODUCE_DEADLINE_S = 120.0


class Deliveries:
    """Counts what was acknowledged; keeps the first error's name."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.failed = 0
        self.error = ""

    def count(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failed += 1
            self.error = self.error or error.name()


def produce(bootstrap: str, topic: str, partitions: int, count: int, size: int, acks: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "linger.ms": 5,
            "compression.type": "none",
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1_048_576,
            "message.timeout.ms": 60_000,
        }
    )
    source = random.Random(1)
    values = [source.randbytes(size) for _ in range(POOL)]
    first, rest = Deliveries(), Deliveries()
    for partition in range(partitions):
        producer.produce(topic, values[0], partition=partition, on_delivery=first.count)
    producer.flush(PRODUCE_DEADLINE_S)
    if first.acknowledged != partitions:
        sys.exit(f"first records: {first.error or 'no answer in time'}")

    start = time.perf_counter()
    for i in range(count):
        value, partition = values[i % POOL], i % partitions
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=rest.count)
                break
            except BufferError:  # the queue is full
                producer.poll(0.01)
        if i % 1000 == 0:
            producer.poll(0)
    producer.flush(PRODUCE_DEADLINE_S)
    seconds = time.perf_counter() - start
    report(rest.acknowledged, rest.acknowledged * size, seconds, rest.failed, rest.error)


def consume(bootstrap: str, topic: str, partitions: int, count: int, deadline_s: float) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "fencepost-bench",  # required by the consumer; never joined
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_048_576,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    records = total = failed = 0
    error = ""
    started = time.perf_counter()
    start = 0.0
    while records < count and time.perf_counter() - started < deadline_s:
        for message in consumer.consume(BATCH, 0.1):
            start = start or time.perf_counter()
            problem = message.error()
            if problem is None:
                records += 1
                total += len(message.value() or b"")
            else:
                failed, error = failed + 1, problem.name()
    seconds = time.perf_counter() - start if start else 0.0
    report(records, total, seconds, failed, error)
    consumer.close()


def report(records: int, total: int, seconds: float, failed: int, error: str) -> None:
    moved = {"records": records, "bytes": total, "seconds": seconds}
    print(json.dumps({**moved, "failed": failed, "error": error}))


def main(arguments: list[str]) -> None:
    what, bootstrap, topic, partitions, count, size, last = arguments
    if what == "produce":
        produce(bootstrap, topic, int(partitions), int(count), int(size), last)
    else:
        consume(bootstrap, topic, int(partitions), int(count), float(last))


if __name__ == "__main__":
    main(sys.argv[1:])
