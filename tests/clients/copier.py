"""A confluent-kafka (librdkafka) application that copies a topic in transactions, line by line.

    python copier.py BOOTSTRAP SOURCE TARGET TOTAL NAME

``copy N`` lets it commit N transactions, or as many as bring it to the end of the source, which
has TOTAL records; its answer is ``copied``, or ``fenced`` once another has its NAME, which is the
transactional id, the group and the group instance id. A transaction that fails is aborted, by a new
producer where the old one cannot, and its records are copied again from the committed offsets on.
java/CopierStory.java is the same with the Java clients.
"""

from __future__ import annotations

import sys
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

WAIT_S: Final = 120.0
TRANSACTION_TIMEOUT_MS: Final = 5_000
"""A coordinator that was replaced, and does not know it, waits so long for followers that copy its
log no more. Meanwhile it answers CONCURRENT_TRANSACTIONS."""
EACH: Final = 10
"""At most so many records are copied in a transaction."""

FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.FENCED_INSTANCE_ID,
}


class FencedError(Exception):
    """Another copier has the name."""


class Copier:
    """Reads the source in a group, and writes each record to the same partition of the target."""

    def __init__(self, bootstrap: str, source: str, target: str, total: int, name: str) -> None:
        self._common = {
            "bootstrap.servers": bootstrap,
            "socket.timeout.ms": 2000,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.fast.interval.ms": 20,
            # A leader that is cut off from the controller goes on answering: only metadata name
            # its successor.
            "topic.metadata.refresh.interval.ms": 2000,
            # A broker that leaves the metadata stays in the cache as the group's coordinator, and
            # TxnOffsetCommit waits for it, until another connection changes (librdkafka #5511).
            "connections.max.idle.ms": 1000,
            "log_level": 2,
        }
        self._target, self._total, self._name = target, total, name
        self._consumer = Consumer(
            {
                **self._common,
                "group.id": name,
                "group.instance.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.subscribe([source])
        self._producer = self._started()

    def copy(self, transactions: int) -> None:
        """:raises FencedError: When another has the name."""
        while transactions > 0:
            messages = [each for each in self._consumer.consume(EACH, 0.1) if _is_record(each)]
            if not messages:
                if self._is_at_end():
                    return
                continue
            try:
                self._copy(messages)
                transactions -= 1
            except KafkaException as error:
                _check(error)
                self._give_up()

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        for message in messages:
            partition = message.partition()
            assert partition is not None
            self._producer.produce(self._target, message.value(), partition=partition)
        self._producer.send_offsets_to_transaction(
            self._positions(), self._consumer.consumer_group_metadata(), WAIT_S
        )
        self._producer.commit_transaction(WAIT_S)

    def _positions(self) -> list[TopicPartition]:
        """Those that are known."""
        positions = self._consumer.position(self._consumer.assignment())
        return [each for each in positions if each.offset >= 0]

    def _is_at_end(self) -> bool:
        offsets = {each.partition: each.offset for each in self._positions()}
        others = [each for each in self._consumer.assignment() if each.partition not in offsets]
        if others:  # nothing was read there since this process began
            try:
                found = self._consumer.committed(others, WAIT_S)
            except KafkaException as error:
                _check(error)
                return False
            offsets.update({each.partition: max(each.offset, 0) for each in found})
        return sum(offsets.values()) == self._total

    def _give_up(self) -> None:
        """Abort the transaction, and go back to what is committed."""
        self._producer.poll(0)
        is_delivered = len(self._producer) == 0
        try:
            self._producer.abort_transaction(WAIT_S)
        except KafkaException as error:
            _check(error)
            is_delivered = False
        # librdkafka drops what was not acknowledged, and gives its sequence numbers to the next
        # records. Where a leader has appended it all the same, Kafka takes these for duplicates:
        # they are acknowledged, and not appended. A new producer has another epoch.
        if not is_delivered:
            self._producer = self._started()
        while True:
            try:
                committed = self._consumer.committed(self._consumer.assignment(), WAIT_S)
                break
            except KafkaException as error:
                _check(error)
        for each in committed:
            offset = max(each.offset, 0)
            self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

    def _started(self) -> Producer:
        while True:
            producer = Producer(
                {
                    **self._common,
                    "transactional.id": self._name,
                    "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                    "linger.ms": 0,
                }
            )
            try:
                producer.init_transactions(WAIT_S)
            except KafkaException as error:
                _check(error)
            else:
                return producer


def _is_record(message: Message) -> bool:
    """:raises FencedError: When another has the group instance id."""
    error = message.error()
    # A static member that was fenced says so, or only that its error is fatal: none else is.
    if error is not None and error.code() in FENCED | {KafkaError._FATAL}:
        raise FencedError
    return error is None


def _check(error: KafkaException) -> None:
    """:raises FencedError: When the error says so."""
    sys.stderr.write(f"{error}\n")
    if error.args[0].code() in FENCED:
        raise FencedError from error


def main(bootstrap: str, source: str, target: str, total: str, name: str) -> None:
    copier = Copier(bootstrap, source, target, int(total), name)
    for line in sys.stdin:
        try:
            copier.copy(int(line.split()[1]))
        except FencedError:
            answer = "fenced"
        else:
            answer = "copied"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
