"""Two answers side by side: what differs, when what each cluster names for itself is taken out.

An id cannot be predicted, but the two clusters must use theirs alike: where one answers an id
that it answered before, the other has to answer its own of that time. `Twins` keeps the pairs.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import Struct, structs

from fencepost.protocol.compression import decompress
from tests.harness.wire import Value
from tests.oracle.random_requests.messages import Ref

PAIRED: Final[Mapping[str, str]] = {
    "topic_id": "topic",
    "member_id": "member",
    "leader": "member",
    "session_id": "session",
    "producer_id": "producer",
    "cluster_id": "cluster",
    "host": "host",
    "port": "port",
    "log_dir": "folder",
    "replica_directory_id": "folder id",
    "client_instance_id": "client",
    "subscription_id": "subscription",
}
"""Fields of answers whose values each cluster makes for itself, and what kind they are."""

ORDER: Final = "[order]"
"""Behind the path of an array whose elements are the same in another order."""
_SETS: Final = frozenset({"transaction_states.topics.partitions"})
"""Arrays of numbers in no order; in all others, such as replicas, the order is told."""
_RECOGNIZED: Final = frozenset(
    {
        *("name", "topic", "topic_name", "key", "group_id", "partition_index", "partition"),
        *("index", "resource_type", "resource_name", "node_id", "broker_id", "api_key"),
        *("group_instance_id", "protocol_type", "feature", "source"),
        *("user", "entity_type", "entity_name", "transactional_id"),
    }
)
UNKNOWN_ID: Final = UUID(int=7)
"""One that no cluster has given out."""
_NOTHING: Final = (None, "", -1, 0)
"""The same in all clusters: not an id."""
_BATCH_HEADER: Final = 61
_LOG_APPEND_TIME: Final = 8
_CODEC: Final = 7
_CONTROL: Final = 0x20
_NEAR_MS: Final = 7_200_000
_TIME: Final = re.compile(r"\b1[5-9]\d{11}\b")
_LONG_AGO: Final = re.compile(r"-92233\d{14}\b")
"""A bound that is a time of day minus the largest int64."""


class Difference(NamedTuple):
    """Where two answers differ: a path without indexes, such as ``topics.error_code``."""

    path: str
    kafka: object
    fencepost: object


class Twins:
    """The pairs of what means the same: Kafka's value first."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[tuple[object, object]]] = {}
        self._left: dict[tuple[str, object], object] = {}
        self._right: dict[tuple[str, object], object] = {}
        for value in (UNKNOWN_ID, _UNKNOWN["topic"]):  # both clusters are told the same
            self.pair("topic", value, value)

    def pair(self, kind: str, left: object, right: object) -> bool:
        """Whether two values may stand for the same; from then on they do."""
        if left in _NOTHING or right in _NOTHING:
            return left == right
        key, twin = (kind, left), (kind, right)
        if key in self._left or twin in self._right:
            return self._left.get(key) == right and self._right.get(twin) == left
        self._left[key] = right
        self._right[twin] = left
        self._pairs.setdefault(kind, []).append((left, right))
        return True

    def name(self, kind: str, name: str, left: object, right: object) -> None:
        """Give a pair a name that requests may use: the latest counts."""
        self._pairs[f"{kind}:{name}"] = [(left, right)]

    def value(self, ref: Ref, side: int) -> object:
        """What a request says to one side; where there is no such pair, what no cluster knows."""
        if isinstance(ref.name, str):
            found = self._pairs.get(f"{ref.kind}:{ref.name}")
            return found[0][side] if found else _UNKNOWN[ref.kind]
        found = self._pairs.get(ref.kind)
        if not found:
            return _UNKNOWN[ref.kind]
        return found[-min(ref.name, len(found))][side]

    def differences(self, left: Value, right: Value) -> list[Difference]:
        """All differences of two answers, the order of arrays included."""
        return list(self._compare("", left, right))

    def _compare(self, path: str, left: Value, right: Value) -> Iterator[Difference]:
        if type(left) is not type(right):
            yield Difference(path, left, right)
        elif isinstance(left, Struct):
            for name in left.__struct_fields__:
                yield from self._field(path, name, left, right)
        elif isinstance(left, tuple):
            if len(left) != len(right):
                yield Difference(path, *self._lacking(left, right))
                return
            ours, theirs = self._sorted(path, left, 0), self._sorted(path, right, 1)
            if [at for _, at in ours] != [at for _, at in theirs]:
                yield Difference(f"{path}{ORDER}", left, right)
            for (one, _), (other, _) in zip(ours, theirs, strict=True):
                yield from self._compare(path, one, other)
        elif not self._same(left, right):
            yield Difference(path, left, right)

    def _lacking(
        self, left: tuple[Value, ...], right: tuple[Value, ...]
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Of arrays of different lengths what the other one has nothing like."""
        if not isinstance((left or right)[0], Struct):
            return left, right
        lefts = [self._key(each, 0) for each in left]
        rights = [self._key(each, 1) for each in right]
        return (
            tuple(each for each, key in zip(left, lefts, strict=True) if key not in rights),
            tuple(each for each, key in zip(right, rights, strict=True) if key not in lefts),
        )

    def _sorted(self, path: str, array: tuple[Value, ...], side: int) -> list[tuple[Value, int]]:
        """The elements of an array in an order that both sides share, and where each stood."""
        places = list(range(len(array)))
        if array and isinstance(array[0], Struct):
            places.sort(key=lambda at: self._key(array[at], side))
        elif path in _SETS:
            places.sort(key=lambda at: str(array[at]))
        return [(array[at], at) for at in places]

    def _key(self, struct: Value, side: int) -> list[str]:
        """What an element is recognized by: its names and numbers, ids by their pair."""
        key = []
        for name, value in structs.asdict(struct).items():
            kind = PAIRED.get(name)
            if kind is not None:
                pairs = [pair[side] for pair in self._pairs.get(kind, ())]
                key.append(f"{pairs.index(value):9}" if value in pairs else "")
            elif name == "entity":
                key += [str(each) for each in sorted(self._key(each, side) for each in value)]
            elif name in _RECOGNIZED:
                key.append(f"{value:20}" if isinstance(value, int) else str(value))
        return key

    def _field(self, path: str, name: str, left: Value, right: Value) -> Iterator[Difference]:
        one, other = getattr(left, name), getattr(right, name)
        kind = PAIRED.get(name)
        inner = f"{path}.{name}" if path else name
        if kind is None or isinstance(one, tuple):
            yield from self._compare(inner, one, other)
        elif not ((one == other and name == "leader") or self.pair(kind, one, other)):
            yield Difference(inner, one, other)
        elif kind == "topic" and one is not None and isinstance(topic := _name_of(left), str):
            self.name("topic", topic, one, other)

    def _same(self, left: object, right: object) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return left == right or self._text(left, 0) == self._text(right, 1)
        if isinstance(left, (bytes, memoryview)) and isinstance(right, (bytes, memoryview)):
            return self._same_records(left, right)
        if _is_now(left) and _is_now(right):
            return True
        return left == right

    def _same_records(self, left: bytes | memoryview, right: bytes | memoryview) -> bool:
        """Whether batches are the same, each of the same producer."""
        (ours, our_ids), (theirs, their_ids) = _record_content(left), _record_content(right)
        producers = zip(our_ids, their_ids, strict=False)
        return ours == theirs and all(self.pair("producer", *each) for each in producers)

    def _text(self, text: str, side: int) -> str:
        """A text without times and without what its cluster named for itself."""
        for kind, pairs in self._pairs.items():
            if ":" in kind or kind in ("session", "producer"):
                continue
            for number, pair in enumerate(pairs):
                for spelling in _spellings(pair[side]):
                    if len(spelling) > 3:
                        text = text.replace(spelling, f"<{kind} {number}>")
        text = _LONG_AGO.sub("LONG AGO", text)
        return _TIME.sub(lambda found: "NOW" if _is_now(int(found[0])) else found[0], text)


_UNKNOWN: Final[Mapping[str, object]] = {
    "topic": UUID(int=11),
    "member": "unknown-member",
    "session": 77,
    "producer": 12_345,
}


def _name_of(struct: Value) -> object:
    for name in ("name", "topic_name", "topic"):
        found = getattr(struct, name, None)
        if found:
            return found
    return None


def _spellings(value: object) -> tuple[str, ...]:
    if isinstance(value, UUID):
        return str(value), base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return (str(value),)


def _record_content(data: bytes | memoryview) -> tuple[list[bytes], list[int]]:
    """Batches without what each broker makes for itself, and unpacked; the ids of their producers.

    That is the time of the append, and of a marker, how the broker itself compresses, and the
    checksum over all of it.
    """
    found, content, producers = bytes(data), [], []
    while len(found) >= _BATCH_HEADER:
        batch = bytearray(found[: 12 + int.from_bytes(found[8:12], "big")])
        found = found[len(batch) :]
        attributes = int.from_bytes(batch[21:23], "big")
        batch[17:21] = bytes(4)
        producers.append(int.from_bytes(batch[43:51], "big", signed=True))
        batch[43:51] = bytes(8)
        if attributes & _LOG_APPEND_TIME:
            batch[35:43] = bytes(8)
        if attributes & _CONTROL:  # of the broker itself, at its time
            batch[27:43] = bytes(16)
        if attributes & _CODEC:
            batch[8:12] = bytes(4)
            batch[_BATCH_HEADER:] = decompress(attributes & _CODEC, batch[_BATCH_HEADER:])
        content.append(bytes(batch))
    return [*content, found], producers


def _is_now(value: object) -> bool:
    return isinstance(value, int) and abs(value - time.time() * 1000) < _NEAR_MS
