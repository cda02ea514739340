"""A blocking Kafka client of a few requests, written on sockets and ``struct`` alone.

It measures servers, so it shares no code with any of them: a mistake in fencepost's codec must
not cancel itself out here, and a slow codec must not count as a slow server.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

T = TypeVar("T")

LIST_OFFSETS = 2
METADATA = 3
API_VERSIONS = 18
CREATE_TOPICS = 19

LATEST_TIMESTAMP = -1


class BadAnswer(Exception):
    """The server closed the connection, or answered with something else than asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a Metadata answer; ``leader`` is a broker id, -1 when there is none."""

    index: int
    leader: int
    in_sync: int
    """How many replicas are in the ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A decoded Metadata answer: addresses by broker id, partitions by topic name."""

    controller: int
    brokers: dict[int, tuple[str, int]]
    topics: dict[str, tuple[Partition, ...]]

    def partition_count(self) -> int:
        return sum(len(partitions) for partitions in self.topics.values())


class Reader:
    """Reads Kafka's primitive types one after the other from an answer."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._position = position

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes.

        :raises BadAnswer: When fewer are left.
        """
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise BadAnswer(f"{size} bytes wanted at {self._position} of {len(self._data)}")
        piece = self._data[self._position : end]
        self._position = end
        return piece

    def boolean(self) -> bool:
        return self.take(1) != b"\0"

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str | None:
        length = self.uvarint()
        return None if length == 0 else self.take(length - 1).decode()

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self.take(length).decode()

    def compact_array(self, element: Callable[[], T]) -> tuple[T, ...]:
        return tuple(element() for _ in range(self.uvarint() - 1))

    def tags(self) -> None:
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def compact_string(text: str) -> bytes:
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def frame(api: int, version: int, body: bytes, *, flexible: bool) -> bytes:
    """A whole request with its size in front: correlation id 1, client id ``bench``."""
    tags = b"\0" if flexible else b""
    head = struct.pack(">hhi", api, version, 1) + string("bench") + tags
    return struct.pack(">i", len(head) + len(body)) + head + body


def api_versions_request() -> bytes:
    body = compact_string("bench") + compact_string("1") + b"\0"
    return frame(API_VERSIONS, 3, body, flexible=True)


def metadata_request(topics: tuple[str, ...] | None = None) -> bytes:
    """Metadata v12 of the named topics, or of all of them (None); it never creates any."""
    body = bytearray(uvarint(0 if topics is None else len(topics) + 1))
    for name in topics or ():
        body += bytes(16) + compact_string(name) + b"\0"
    body += b"\0\0\0"  # allow_auto_topic_creation, include_topic_authorized_operations, tags
    return frame(METADATA, 12, bytes(body), flexible=True)


def decode_metadata(answer: bytes) -> Metadata:
    """Decodes a whole v12 answer, its header included.

    :raises BadAnswer: When it is cut short.
    """
    reader = Reader(answer, 4)
    reader.tags()
    reader.int32()  # throttle_time_ms

    def broker() -> tuple[int, tuple[str, int]]:
        found = reader.int32(), (reader.compact_string() or "", reader.int32())
        reader.compact_string()  # rack
        reader.tags()
        return found

    def partition() -> Partition:
        reader.int16()  # error_code
        index, leader = reader.int32(), reader.int32()
        reader.int32()  # leader_epoch
        _, isr, _ = (
            reader.compact_array(reader.int32)
            for _ in ("replica_nodes", "isr_nodes", "offline_replicas")
        )
        reader.tags()
        return Partition(index=index, leader=leader, in_sync=len(isr))

    def topic() -> tuple[str, tuple[Partition, ...]]:
        reader.int16()  # error_code
        name = reader.compact_string() or ""
        reader.take(16)  # topic_id
        reader.boolean()  # is_internal
        partitions = reader.compact_array(partition)
        reader.int32()  # topic_authorized_operations
        reader.tags()
        return name, partitions

    brokers = dict(reader.compact_array(broker))
    reader.compact_string()  # cluster_id
    controller = reader.int32()
    topics = dict(reader.compact_array(topic))
    return Metadata(controller=controller, brokers=brokers, topics=topics)


def list_offsets_request(topic: str, partition: int, timestamp: int = LATEST_TIMESTAMP) -> bytes:
    """ListOffsets v7 of one partition, as librdkafka sends it."""
    body = struct.pack(">ib", -1, 0) + uvarint(2) + compact_string(topic) + uvarint(2)
    body += struct.pack(">iiq", partition, -1, timestamp) + b"\0\0\0"
    return frame(LIST_OFFSETS, 7, body, flexible=True)


def decode_list_offsets(answer: bytes) -> int:
    """The offset of the only partition in a ListOffsets v7 answer.

    :raises BadAnswer: When the partition carries an error.
    """
    reader = Reader(answer, 4)
    reader.tags()
    reader.int32()  # throttle_time_ms
    reader.uvarint()
    reader.compact_string()
    reader.uvarint()
    reader.int32()  # partition_index
    error = reader.int16()
    if error:
        raise BadAnswer(f"ListOffsets answered error {error}")
    reader.int64()  # timestamp
    return reader.int64()


def create_topics_request(names: tuple[str, ...], partitions: int, replication: int) -> bytes:
    """CreateTopics v4 with a minute to do it in."""
    body = bytearray(struct.pack(">i", len(names)))
    for name in names:
        body += string(name) + struct.pack(">ihii", partitions, replication, 0, 0)
    body += struct.pack(">ib", 60_000, 0)
    return frame(CREATE_TOPICS, 4, bytes(body), flexible=False)


def check_create_topics(answer: bytes) -> None:
    """:raises BadAnswer: When any topic was not created."""
    reader = Reader(answer, 8)
    for _ in range(reader.int32()):
        name, error, message = reader.string(), reader.int16(), reader.string()
        if error:
            raise BadAnswer(f"CreateTopics {name}: error {error} {message or ''}")


class Connection:
    """One blocking connection; one request at a time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def open(cls, host: str, port: int, timeout_s: float = 30.0) -> Self:
        """:raises OSError: When no process listens there."""
        connected = socket.create_connection((host, port), timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(connected)

    def ask(self, request: bytes | bytearray) -> bytes:
        """Sends a whole frame and returns the answer without its size.

        :raises BadAnswer: When the server closes the connection instead.
        """
        self.send(request)
        return self.receive()

    def send(self, request: bytes | bytearray) -> None:
        """Sends a whole frame; its answer is to be received."""
        self._socket.sendall(request)

    def receive(self) -> bytes:
        """The answer of the only request that waits for one, without its size.

        :raises BadAnswer: When the server closes the connection instead.
        """
        data = self._more(65536)
        while len(data) < 4:
            data += self._more(65536)
        size = int.from_bytes(data[:4], "big")
        if len(data) == size + 4:
            return data[4:]
        pieces = [data[4:]]
        left = size + 4 - len(data)
        while left > 0:
            pieces.append(self._more(min(left, 1 << 20)))
            left -= len(pieces[-1])
        return b"".join(pieces)

    def metadata(self, topics: tuple[str, ...] | None = None) -> Metadata:
        return decode_metadata(self.ask(metadata_request(topics)))

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _more(self, limit: int) -> bytes:
        data = self._socket.recv(limit)
        if not data:
            raise BadAnswer("the server closed the connection")
        return data
