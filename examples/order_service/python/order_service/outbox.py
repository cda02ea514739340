"""The transactional outbox: an order and the message about it are committed together, or not."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from order_service.order import Order

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, article TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY,  -- the order in which the messages are sent
    order_id TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    sent_partition INTEGER,      -- null until Kafka has acknowledged the message
    sent_offset INTEGER
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that Kafka has not acknowledged yet."""

    number: int
    order_id: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """Where Kafka has stored a message."""

    number: int
    partition: int
    offset: int


class Outbox:
    """Orders and their messages, in one database.

    Messages stay after they were sent, because Kafka may lose what it has acknowledged.

    :param path: The database; it is created if there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(self._connect()) as database:
            database.executescript(_SCHEMA)

    def place(self, order: Order) -> None:
        """Take an order. No broker is needed for it.

        :raises sqlite3.IntegrityError: When there is an order with this id.
        """
        add_order = "INSERT INTO orders VALUES (?, ?)"
        add_message = "INSERT INTO outbox (order_id, payload) VALUES (?, ?)"
        with closing(self._connect()) as database, database:
            database.execute(add_order, (order.order_id, order.article))
            database.execute(add_message, (order.order_id, order.value()))

    def unsent(self, limit: int = 100) -> list[Message]:
        """The first messages that are to be sent, in their order."""
        query = (
            "SELECT number, order_id, payload FROM outbox"
            " WHERE sent_offset IS NULL ORDER BY number LIMIT ?"
        )
        with closing(self._connect()) as database:
            rows = database.execute(query, (limit,)).fetchall()
        return [Message(number=row[0], order_id=row[1], payload=row[2]) for row in rows]

    def mark_sent(self, acknowledged: Iterable[Acknowledged]) -> None:
        """Note where Kafka has stored messages."""
        update = "UPDATE outbox SET sent_partition = ?, sent_offset = ? WHERE number = ?"
        rows = [(each.partition, each.offset, each.number) for each in acknowledged]
        with closing(self._connect()) as database, database:
            database.executemany(update, rows)

    def send_again(self, partition: int, from_offset: int = 0) -> int:
        """Make messages unsent that Kafka had stored at this offset or a later one.

        :returns: How many there are.
        """
        update = (
            "UPDATE outbox SET sent_partition = NULL, sent_offset = NULL"
            " WHERE sent_partition = ? AND sent_offset >= ?"
        )
        with closing(self._connect()) as database, database:
            return database.execute(update, (partition, from_offset)).rowcount

    def _connect(self) -> sqlite3.Connection:
        # One for each use: threads can't share a connection.
        return sqlite3.connect(self._path)
