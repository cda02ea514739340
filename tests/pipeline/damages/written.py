"""Partitions to be damaged: each is written in the same way, by fencepost or by a real Kafka."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from fencepost.storage.formats.checkpoints import decode_offsets
from tests.harness.durable_cluster import DurableCluster
from tests.harness.kafka import start_kafka
from tests.harness.wait import wait_until

BROKERS: Final = (1, 2, 3)
RECORDS_PER_BATCH: Final = 3
BATCHES: Final = 14
"""Of each partition, in segments of four: the last one has two."""
END: Final = RECORDS_PER_BATCH * BATCHES
_STEP_MS: Final = 1000
_TOPIC: Final = {
    "segment.ms": str(4 * RECORDS_PER_BATCH * _STEP_MS - 1),
    "index.interval.bytes": "100",
    "retention.ms": "-1",
}
_COMPACTED: Final = {
    **_TOPIC,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
}
_KEYS: Final = 15
"""So many that some are not written again in the active segment."""
_CHECKPOINTS: Final = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.index.size.max.bytes": "65536",
}
_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The log directories of a cluster of three brokers that was stopped in order."""

    folder: Path

    def copy(self, to: Path) -> Written:
        """A copy, to be damaged; ``to`` may not be there."""
        shutil.copytree(self.folder, to)
        return Written(folder=to)

    def log_dir(self, broker: int) -> Path:
        """The log directory of a broker."""
        return self.folder / f"broker-{broker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic of one partition."""

    name: str
    replicas: int
    """1: on broker 1 alone; 3: on all, led by broker 1."""
    transactional: bool = False
    """Whether its batches are of transactions, of which every other one is aborted."""
    compacted: bool = False
    """Whether its closed segments were compacted, by the keys of `_KEYS`."""


@contextmanager
def fencepost_writes(folder: Path, topics: Sequence[Topic]) -> Iterator[Written]:
    """Let a fencepost write the topics."""
    options = [part for pair in _CHECKPOINTS.items() for part in ("--config", "=".join(pair))]
    served = DurableCluster(folder / "data", folder / "log", options=options)
    try:
        served.start()
        _write(served.bootstrap, topics)
        written = Written(folder=folder / "data")
        _wait_for_cleaners({each: written.log_dir(each) for each in BROKERS}, topics)
        served.stop()
        yield written
    finally:
        served.close()


@contextmanager
def kafka_writes(folder: Path, topics: Sequence[Topic]) -> Iterator[Written]:
    """Let a real Kafka of three nodes write the topics."""
    kafka = start_kafka(folder / "kafka", nodes=len(BROKERS), configs=_CHECKPOINTS)
    try:
        _write(kafka.cluster.bootstrap, topics)
        _wait_for_cleaners({each: kafka.folders[each] / "logs" for each in BROKERS}, topics)
        *others, last = BROKERS
        for node in others:
            kafka.shut_down(node)
        kafka.kill(last)  # alone it has no controller that lets it go
        written = Written(folder=folder / "data")
        for node in BROKERS:
            shutil.copytree(kafka.folders[node] / "logs", written.log_dir(node))
        yield written
    finally:
        kafka.stop()


def _write(bootstrap: str, topics: Sequence[Topic]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    created = admin.create_topics(
        [
            NewTopic(
                each.name,
                1,
                replica_assignment=[list(BROKERS[: each.replicas])],
                config=_COMPACTED if each.compacted else _TOPIC,
            )
            for each in topics
        ]
    )
    for future in created.values():
        future.result(_WAIT_S)
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "batch.num.messages": RECORDS_PER_BATCH,
        "linger.ms": 100,
        "enable.idempotence": True,
        "log_level": 0,
    }
    began_ms = time.time_ns() // 1_000_000 - 3_600_000
    plain = [each for each in topics if not each.transactional]
    producer = Producer(options)
    for number in range(BATCHES):
        _send(producer, plain, number, began_ms)
    in_transactions = [each for each in topics if each.transactional]
    if not in_transactions:
        return
    producer = Producer({**options, "transactional.id": "writer"})
    producer.init_transactions(_WAIT_S)
    for number in range(BATCHES):
        producer.begin_transaction()
        _send(producer, in_transactions, number, began_ms)
        if number % 2:
            producer.abort_transaction(_WAIT_S)
        else:
            producer.commit_transaction(_WAIT_S)


def _wait_for_cleaners(log_dirs: Mapping[int, Path], topics: Sequence[Topic]) -> None:
    """Until what may be compacted is, on each broker."""
    closed = END - END % (4 * RECORDS_PER_BATCH)

    def are_done() -> bool:
        return all(
            _cleaned_offset(log_dirs[broker], topic.name) >= closed
            for topic in topics
            if topic.compacted
            for broker in BROKERS[: topic.replicas]
        )

    wait_until("all compacted topics are cleaned", are_done, _WAIT_S)


def _cleaned_offset(log_dir: Path, topic: str) -> int:
    path = log_dir / "cleaner-offset-checkpoint"
    return decode_offsets(path.read_bytes()).get((topic, 0), 0) if path.exists() else 0


def _send(producer: Producer, topics: Sequence[Topic], number: int, began_ms: int) -> None:
    """One batch to each topic, and wait until all are acknowledged."""
    errors: list[KafkaError] = []

    def answered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    first = number * RECORDS_PER_BATCH
    for topic in topics:
        for record in range(first, first + RECORDS_PER_BATCH):
            producer.produce(
                topic.name,
                f"value {record} of {topic.name} ".encode() * 5,
                b"key %d" % (record % _KEYS if topic.compacted else record),
                0,
                on_delivery=answered,
                timestamp=began_ms + record * _STEP_MS,
            )
    assert producer.flush(_WAIT_S) == 0
    assert not errors, errors
