"""What consumers of a group tell each other through it, which brokers do not read.

Version 0 of both: a subscription is a list of topics, an assignment is a list of partitions.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fencepost.client.errors import MalformedAnswer

PROTOCOL_TYPE: Final = "consumer"
RANGE: Final = "range"
_VERSION: Final = struct.pack(">h", 0)
_NO_USER_DATA: Final = struct.pack(">i", -1)

TopicPartition = tuple[str, int]


def encode_subscription(topics: Sequence[str]) -> bytes:
    """What a member wants, for JoinGroup."""
    return _VERSION + struct.pack(">i", len(topics)) + b"".join(map(_text, topics)) + _NO_USER_DATA


def decode_subscription(data: bytes) -> list[str]:
    """The topics that a member wants.

    :raises MalformedAnswer: When it says nothing of the kind.
    """
    reader = _Reader(data)
    reader.int16()
    return [reader.text() for _ in range(reader.int32())]


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """What a member gets, for SyncGroup."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    out = bytearray(_VERSION + struct.pack(">i", len(by_topic)))
    for topic, indices in by_topic.items():
        out += _text(topic) + struct.pack(f">i{len(indices)}i", len(indices), *indices)
    return bytes(out) + _NO_USER_DATA


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """What a member got; nothing where the leader said nothing.

    :raises MalformedAnswer: When it is no assignment.
    """
    if not data:
        return []
    reader = _Reader(data)
    reader.int16()
    found: list[TopicPartition] = []
    for _ in range(reader.int32()):
        topic = reader.text()
        found += ((topic, reader.int32()) for _ in range(reader.int32()))
    return found


def assign_by_range(
    members: Mapping[str, Sequence[str]], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Kafka's range assignor: of each topic, members in order of their ids get even runs.

    :param members: The topics that each member wants, by member id.
    :param partitions: How many partitions each topic has.
    """
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic, count in sorted(partitions.items()):
        takers = sorted(member for member, topics in members.items() if topic in topics)
        if not takers:
            continue
        share, rest = divmod(count, len(takers))
        start = 0
        for at, member in enumerate(takers):
            end = start + share + (at < rest)
            assigned[member] += ((topic, index) for index in range(start, end))
            start = end
    return assigned


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def text(self) -> str:
        size = self.int16()
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MalformedAnswer("what a member said is cut short")
        raw, self._at = self._data[self._at : end], end
        return raw.decode("utf-8", "replace")

    def _unpack(self, layout: str) -> int:
        try:
            (value,) = struct.unpack_from(layout, self._data, self._at)
        except struct.error as error:
            raise MalformedAnswer("what a member said is cut short") from error
        self._at += struct.calcsize(layout)
        return int(value)
