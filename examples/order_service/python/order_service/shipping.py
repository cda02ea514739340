"""Shipping: a consumer that retries, writes dead letters, and ships each order once."""

import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from order_service.order import Order
from order_service.relay import TOPIC

GROUP: Final = "shipping"
DEAD_LETTERS: Final = "orders.dead-letters"
_CONSUMER: Final[Mapping[str, str | int | bool]] = {
    "client.id": GROUP,
    "group.id": GROUP,
    # Committed after the order is handled, so that none is passed over.
    "enable.auto.commit": False,
    # Lost records are an error, instead of a silent jump to either end of the log.
    "auto.offset.reset": "error",
    # librdkafka compares no checksums unless it is told to; then it fetches a corrupt batch again.
    "check.crcs": True,
}
_PRODUCER: Final[Mapping[str, str | int | bool]] = {
    "client.id": "shipping-dead-letters",
    "enable.idempotence": True,
}
_LOST: Final = frozenset({KafkaError._LOG_TRUNCATION, KafkaError._AUTO_OFFSET_RESET})
"""The log ends before the consumer's position, or begins after it."""


class CannotShip(Exception):
    """An order cannot be shipped, now or ever."""


def ship_nothing(order: Order) -> None:
    """In this example the row in the database is the shipment."""


class Shipping:
    """A member of the group that handles orders.

    :param path: The database of shipments; it is created if there is none.
    :param on_lost: Called with the partition when the log has lost records that were read.
    :param ship: Does the work; `CannotShip` is retried.
    :param retries: How often an order is tried again before it becomes a dead letter.
    :param retry_pause_s: Before each retry.
    :param settings: Of the consumer, besides those that the service depends on.
    """

    def __init__(
        self,
        path: Path,
        bootstrap: str,
        *,
        on_lost: Callable[[int], object],
        ship: Callable[[Order], None] = ship_nothing,
        retries: int = 3,
        retry_pause_s: float = 0.1,
        settings: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        self._path = path
        self._ship = ship
        self._on_lost = on_lost
        self._retries = retries
        self._retry_pause_s = retry_pause_s
        self._stopping = threading.Event()
        with closing(sqlite3.connect(path)) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS shipments (order_id TEXT PRIMARY KEY, article TEXT)"
            )
        address = {"bootstrap.servers": bootstrap}
        self._dead_letters = Producer({**address, **_PRODUCER})
        self._consumer = Consumer({**address, **(settings or {}), **_CONSUMER})
        self._consumer.subscribe([TOPIC], on_assign=_start_at_committed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def run(self) -> None:
        """Handle orders until `stop` is called.

        :raises KafkaException: When a dead letter is not stored, or the consumer's error is fatal.
        """
        while not self._stopping.is_set():
            self.run_once(timeout_s=0.1)

    def stop(self) -> None:
        """Let `run` end after the order that it handles."""
        self._stopping.set()

    def run_once(self, timeout_s: float) -> None:
        """Handle the next order, if one comes in time.

        :raises KafkaException: See `run`.
        """
        message = self._consumer.poll(timeout_s)
        if message is None:
            return
        error = message.error()
        if error is not None:
            self._recover(message, error)
            return
        self._handle(message)
        self._commit(message)

    def shipped(self) -> list[str]:
        """The ids of all orders that were shipped, in that order."""
        with closing(sqlite3.connect(self._path)) as database:
            rows = database.execute("SELECT order_id FROM shipments ORDER BY rowid").fetchall()
        return [row[0] for row in rows]

    def _handle(self, message: Message) -> None:
        for attempt in range(1 + self._retries):
            if attempt:
                self._stopping.wait(self._retry_pause_s)
            try:
                self._ship_once(message)
            except (CannotShip, ValueError) as error:
                reason = str(error)
            else:
                return
        self._set_aside(message, reason)

    def _ship_once(self, message: Message) -> None:
        """Ship an order that was not shipped before; the database notes it, unless that fails."""
        order = Order.parse(message.key(), message.value())
        insert = "INSERT OR IGNORE INTO shipments VALUES (?, ?)"
        with closing(sqlite3.connect(self._path)) as database, database:
            if database.execute(insert, (order.order_id, order.article)).rowcount:
                self._ship(order)

    def _set_aside(self, message: Message, reason: str) -> None:
        """Write a dead letter, and wait until it is stored: the offset is committed next."""
        origin = f"{message.topic()}-{message.partition()}@{message.offset()}"
        failures: list[KafkaError] = []
        self._dead_letters.produce(
            DEAD_LETTERS,
            key=message.key(),
            value=message.value(),
            headers={"error": reason, "origin": origin},
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        self._dead_letters.flush()
        if failures:
            raise KafkaException(failures[0])

    def _commit(self, message: Message) -> None:
        try:
            self._consumer.commit(message=message, asynchronous=False)
        except KafkaException:
            # The next commit covers it, or else the order is read again, and skipped.
            return

    def _recover(self, message: Message, error: KafkaError) -> None:
        partition = message.partition()
        if error.code() in _LOST and partition is not None:
            self._on_lost(partition)
            self._read_again(partition)
        elif error.fatal():
            raise KafkaException(error)

    def _read_again(self, partition: int) -> None:
        """Read a partition from its beginning: the orders that were shipped are skipped.

        librdkafka does not say from which offset on the log is another one, and it refuses to seek
        after this error.
        """
        partitions = _committed_or_beginning(self._consumer, self._consumer.assignment())
        for each in partitions:
            if each.partition == partition:
                each.offset = OFFSET_BEGINNING
        self._consumer.assign(partitions)


def _start_at_committed(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    consumer.assign(_committed_or_beginning(consumer, partitions))


def _committed_or_beginning(
    consumer: Consumer, partitions: list[TopicPartition]
) -> list[TopicPartition]:
    """Where to read on: a partition of which nothing is committed is read from its beginning."""
    committed: list[TopicPartition] = consumer.committed(partitions, timeout=30)
    for each in committed:
        if each.offset < 0:
            each.offset = OFFSET_BEGINNING
    return committed
