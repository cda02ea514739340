"""Log directories that a real Kafka wrote, with its own answers about them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from fencepost.protocol.records import iter_headers
from tests.harness.kafka import Kafka, start_kafka
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until

STEP_MS: Final = 1000
"""How much later each record is than the one before."""
GROUP: Final = "readers"
COMMITTED: Final = 12
"""What the group has committed of ``plain-0``."""
DELETED_BEFORE: Final = 7
"""Where ``shortened-0`` starts."""
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

_WAIT_S: Final = 30.0
_NODE: Final = 1
_BROKER: Final = {
    "log.index.size.max.bytes": "65536",
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": "100",
}
_SEGMENTS: Final = {"segment.ms": str(10 * STEP_MS), "index.interval.bytes": "300"}
_TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": _SEGMENTS,
    "codecs": {},
    "compacted": {
        **_SEGMENTS,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
    },
    "transactions": {},
    "shortened": _SEGMENTS,
    "empty": {},
    "deleted": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One partition, as Kafka told of it before it ended.

    :ivar batches: All of them from the log start on, as a fetch brings them.
    """

    log_start_offset: int
    log_end_offset: int
    batches: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaWrote:
    """A log directory of a Kafka that has ended. It is shared: `copy` it, to open it.

    :ivar folder: What ``log.dirs`` named.
    :ivar topics: The ids of the topics that are there.
    :ivar began_ms: The timestamp of the first record of each partition.
    """

    folder: Path
    began_ms: int
    topics: Mapping[str, UUID]
    partitions: Mapping[tuple[str, int], Written]

    def copy(self, to: Path) -> Path:
        """A copy of the directory, to be written to; ``to`` may not be there."""
        shutil.copytree(self.folder, to)
        return to


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaWrites:
    """What one Kafka wrote: when it was killed, and after it went on and was shut down.

    Of its topics ``plain`` has two partitions of several segments, ``codecs`` a batch of each
    codec, ``compacted`` gaps where it was compacted, ``transactions`` one committed, one aborted
    and one open (all by idempotent producers), ``shortened`` a log start within its records,
    ``empty`` none; ``deleted`` was deleted. A group has committed an offset. After it went on,
    leader epoch 1 or later has records of ``plain`` too.

    :ivar kafka: The one who wrote it. It does not run; its own directory is as `stopped`. One
        test may change it and start it.
    """

    killed: KafkaWrote
    stopped: KafkaWrote
    kafka: Kafka


@contextmanager
def kafka_writes(folder: Path) -> Iterator[KafkaWrites]:
    """Let a Kafka write in ``folder``; about 20 s."""
    kafka = start_kafka(folder / "kafka", configs=_BROKER)
    try:
        writer = _Writer(kafka.cluster)
        writer.write()
        killed = _wrote(kafka, writer, folder / "killed", clean=False)
        kafka.start(_NODE)
        kafka.wait()
        writer.go_on()
        stopped = _wrote(kafka, writer, folder / "stopped", clean=True)
        yield KafkaWrites(killed=killed, stopped=stopped, kafka=kafka)
    finally:
        kafka.stop()


def _wrote(kafka: Kafka, writer: _Writer, folder: Path, *, clean: bool) -> KafkaWrote:
    keys = [(topic, 0) for topic in writer.topics] + [("plain", 1)]
    partitions = {key: _written(kafka.cluster, *key) for key in keys}
    if clean:
        kafka.shut_down(_NODE)
    else:
        kafka.kill(_NODE)
    shutil.copytree(kafka.folders[_NODE] / "logs", folder)
    return KafkaWrote(
        folder=folder,
        began_ms=writer.began_ms,
        topics=dict(writer.topics),
        partitions=partitions,
    )


def _written(cluster: Cluster, topic: str, partition: int) -> Written:
    wait_until(f"{topic} is led", lambda: cluster.end_offset(topic, partition) >= 0)
    start = cluster.end_offset(topic, partition, timestamp=-2)
    end = cluster.end_offset(topic, partition)
    batches = stored(cluster, topic, partition, start, end)
    return Written(log_start_offset=start, log_end_offset=end, batches=batches)


def stored(cluster: Cluster, topic: str, partition: int, offset: int, end: int) -> bytes:
    """The batches of a partition from ``offset`` on, of all its segments."""
    batches = b""
    while offset < end:
        batches += cluster.stored(topic, partition, offset)
        offset = max(header.next_offset for _, header in iter_headers(batches))
    return batches


class _Writer:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._open_transaction: Producer | None = None
        self.began_ms = int(time.time() * 1000) - 3600 * 1000
        self.topics: dict[str, UUID] = {}

    def write(self) -> None:
        for name, configs in _TOPICS.items():
            self._create(name, configs)
        for partition in (0, 1):
            self._send("plain", range(45), partition=partition)
        for number, codec in enumerate(CODECS):
            self._send("codecs", range(20 * number, 20 * (number + 1)), codec=codec)
        self._send("compacted", range(45), keys=4)
        self._send("shortened", range(15))
        _done(self._admin.delete_records([TopicPartition("shortened", 0, DELETED_BEFORE)]).values())
        self._send("deleted", range(3))
        _done(self._admin.delete_topics(["deleted"]).values())
        del self.topics["deleted"]
        self._transact()
        self._commit()
        wait_until("it is compacted", self._is_compacted)

    def go_on(self) -> None:
        for partition in (0, 1):
            self._send("plain", range(45, 60), partition=partition)

    def _create(self, name: str, configs: Mapping[str, str]) -> None:
        topic = {
            "Name": name,
            "NumPartitions": 2 if name == "plain" else 1,
            "ReplicationFactor": 1,
            "Configs": [{"Name": key, "Value": value} for key, value in configs.items()],
        }
        with self._cluster.connect() as connection:
            answer = connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 20_000})
        (created,) = answer["Topics"]
        assert created["ErrorCode"] == 0, created
        self.topics[name] = UUID(str(created["TopicId"]))

    def _send(
        self,
        topic: str,
        numbers: range,
        *,
        partition: int = 0,
        keys: int = 1000,
        codec: str = "none",
    ) -> None:
        """A record for each number, three to a batch, by an idempotent producer of its own."""
        producer = self._producer({"enable.idempotence": True, "compression.type": codec})
        self._produce(producer, topic, numbers, partition=partition, keys=keys)

    def _producer(self, options: Mapping[str, str | int | bool]) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "batch.num.messages": 3,
                "linger.ms": 500,
                "log_level": 0,
                **options,
            }
        )

    def _produce(
        self,
        producer: Producer,
        topic: str,
        numbers: range,
        *,
        partition: int = 0,
        keys: int = 1000,
    ) -> None:
        errors: list[KafkaError] = []

        def answered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)

        for number in numbers:
            producer.produce(
                topic,
                b"value %d " % number * 5,
                b"key %d" % (number % keys),
                partition,
                on_delivery=answered,
                timestamp=self.began_ms + number * STEP_MS,
            )
        assert producer.flush(_WAIT_S) == 0
        assert not errors

    def _transact(self) -> None:
        """One committed, one aborted, one left open."""
        producer = self._producer({"transactional.id": "writer", "transaction.timeout.ms": 600_000})
        producer.init_transactions(_WAIT_S)
        for number in (0, 3, 6):
            producer.begin_transaction()
            self._produce(producer, "transactions", range(number, number + 3))
            if number == 0:
                producer.commit_transaction(_WAIT_S)
            elif number == 3:
                producer.abort_transaction(_WAIT_S)
        self._open_transaction = producer

    def _commit(self) -> None:
        """Read in a group, and commit."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe(["plain"])
            wait_until("it reads", lambda: consumer.poll(1.0))
            consumer.commit(offsets=[TopicPartition("plain", 0, COMMITTED)], asynchronous=False)
        finally:
            consumer.close()

    def _is_compacted(self) -> bool:
        return next(iter_headers(self._cluster.stored("compacted")))[1].record_count < 3


def _done(futures: Iterable[Future[object]]) -> None:
    for future in futures:
        future.result(_WAIT_S)
