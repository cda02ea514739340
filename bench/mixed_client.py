"""Everything that clients do, at a moderate rate, by confluent-kafka: ``BOOTSTRAP SECONDS``.

Each role has a thread and clients of its own: a producer, a group whose third member comes and
goes, transactions (every tenth aborted) with their reader, and ListOffsets. A client that fails is
replaced by a new one, and where a role has done nothing when the time is over, all go on for a
while. In the end a line of JSON says how much each role did, and counts the errors by name. The
topics :data:`TOPIC` and :data:`TRANSACTIONS` must exist.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TOPIC: Final = "mixed"
TRANSACTIONS: Final = "mixed-transactions"
PARTITIONS: Final = 3
RECORD_BYTES: Final = 1024
AT_ONCE: Final = 20
"""Records that are produced between two pauses."""
PAUSE_S: Final = 0.01
IN_TRANSACTION: Final = 10
STAY_S: Final = 2.0
"""How long the third member stays in the group, and away."""
CALL_S: Final = 10.0
RETRY_S: Final = 0.1
PATIENCE_S: Final = 60.0
"""How much longer they go on while one has done nothing."""
ROLES: Final = (
    "produced",
    "consumed",
    "assigned",
    "committed",
    "aborted",
    "read_committed",
    "offsets_listed",
)
"""What they count."""
STOP_S: Final = 30.0
"""How long after its time a role may take to end."""

Step: TypeAlias = Callable[[], None]


class Mixed:
    """The roles, what they have done, and until when they go on."""

    def __init__(self, bootstrap: str, seconds: float) -> None:
        self._common = {"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 10_000}
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._value = random.Random(1).randbytes(RECORD_BYTES)
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        """:raises SystemExit: When a role ends by a mistake of its own, or not at all."""
        roles = (self._produces, self._member, self._member, self._visits, self._transacts)
        threads = [
            threading.Thread(target=self._play, args=(role,), daemon=True)
            for role in (*roles, self._reads_committed, self._lists_offsets)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(self._end - time.monotonic(), 0) + PATIENCE_S + STOP_S)
            if thread.is_alive():
                sys.exit("a role did not end")

    def _play(self, role: Callable[[], Iterator[None]]) -> None:
        while self._goes_on():
            try:
                for _ in role():
                    if not self._goes_on():
                        break
            except KafkaException as error:
                self._count_error(error.args[0])
                time.sleep(RETRY_S)

    def _goes_on(self) -> bool:
        now = time.monotonic()
        if now < self._end:
            return True
        return now < self._end + PATIENCE_S and not all(self.done[role] for role in ROLES)

    def _count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.done[what] += number

    def _count_error(self, error: KafkaError) -> None:
        with self._lock:
            self.errors[error.name()] += 1

    # -- roles: each yields where it may be ended -------------------------------------------------

    def _produces(self) -> Iterator[None]:
        producer = Producer({**self._common, "acks": "all", "linger.ms": 2})
        while True:
            for index in range(AT_ONCE):
                partition = index % PARTITIONS
                producer.produce(
                    TOPIC, self._value, partition=partition, on_delivery=self._delivered
                )
            producer.poll(0)
            if len(producer) > 100 * AT_ONCE:
                producer.flush(CALL_S)
            time.sleep(PAUSE_S)
            yield

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._count("produced")
        else:
            self._count_error(error)

    def _member(self) -> Iterator[None]:
        with self._consumer("mixed", "earliest") as consumer:
            consumer.subscribe([TOPIC], on_assign=self._assigned)
            while True:
                self._consume(consumer, "consumed")
                yield

    def _visits(self) -> Iterator[None]:
        """A member that does not stay."""
        time.sleep(STAY_S / 2)
        with self._consumer("mixed", "earliest") as consumer:
            consumer.subscribe([TOPIC], on_assign=self._assigned)
            leaves = time.monotonic() + STAY_S
            while time.monotonic() < leaves:
                self._consume(consumer, "consumed")
                yield

    def _assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._count("assigned")

    def _transacts(self) -> Iterator[None]:
        producer = Producer({**self._common, "transactional.id": "mixed", "linger.ms": 0})
        producer.init_transactions(CALL_S)
        for number in range(1, sys.maxsize):
            producer.begin_transaction()
            for index in range(IN_TRANSACTION):
                producer.produce(TRANSACTIONS, self._value, partition=index % PARTITIONS)
            if number % 10:
                producer.commit_transaction(CALL_S)
                self._count("committed")
            else:
                producer.abort_transaction(CALL_S)
                self._count("aborted")
            time.sleep(PAUSE_S)
            yield

    def _reads_committed(self) -> Iterator[None]:
        with self._consumer("mixed-reader", "earliest") as consumer:
            consumer.assign([TopicPartition(TRANSACTIONS, p) for p in range(PARTITIONS)])
            while True:
                self._consume(consumer, "read_committed")
                yield

    def _lists_offsets(self) -> Iterator[None]:
        with self._consumer("mixed-offsets", "earliest") as consumer:
            while True:
                for partition in range(PARTITIONS):
                    asked = TopicPartition(TOPIC, partition)
                    consumer.get_watermark_offsets(asked, timeout=CALL_S)
                    self._count("offsets_listed")
                time.sleep(PAUSE_S)
                yield

    # -- consumers --------------------------------------------------------------------------------

    @contextmanager
    def _consumer(self, group: str, reset: str) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                **self._common,
                "group.id": group,
                "auto.offset.reset": reset,
                "auto.commit.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )
        with closing(consumer):
            yield consumer

    def _consume(self, consumer: Consumer, what: str) -> None:
        for message in consumer.consume(1000, 0.1):
            error = message.error()
            if error is None:
                self._count(what)
            else:
                self._count_error(error)


def main(bootstrap: str, seconds: str) -> None:
    mixed = Mixed(bootstrap, float(seconds))
    mixed.run()
    print(json.dumps({"done": mixed.done, "errors": mixed.errors}))


if __name__ == "__main__":
    main(*sys.argv[1:])
