"""The records that a test expects of a topic, and those that are nearest where they do not come.

A search reads each partition once, and then what is new. Where the leader has changed, or the topic
is another one, it begins again: what was read may have been truncated.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Struct, field

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import record_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.record_actions import StoredRecord
from fencepost.control.record_reading import batches_between
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record
from fencepost.verbs.record_bodies import ExpectBody, encoded_headers
from fencepost.verbs.record_encoding import (
    canonical_json,
    encode_text,
    encode_value,
    parse_json,
)

MAX_NEAREST: Final = 5
"""Records that are answered where those that were expected do not come."""
_CANDIDATES: Final = 50
"""The newest records that are compared more closely, for each number of fields that differ."""
_COMPARED: Final = 200
"""Bytes of a field that are compared so."""

FieldName: TypeAlias = Literal["key", "value", "headers"]


class ExpectedRecord:
    """What a record has to be like.

    :param body: Checked.
    """

    def __init__(self, body: ExpectBody) -> None:
        self._given = body.model_fields_set
        self._key = encode_text(body.key, body.encoding)
        self._value = encode_value(body.value, body.encoding)
        self._json = canonical_json(body.value) if body.encoding == "json" else None
        self._headers = encoded_headers(body.headers, body.encoding)
        self._body = body

    def differing(self, record: Record) -> tuple[FieldName, ...]:
        """What of a record does not match."""
        return tuple(self._differing(record))

    def _differing(self, record: Record) -> Iterator[FieldName]:
        if "key" in self._given and record.key != self._key:
            yield "key"
        if "value" in self._given and not self._is_value(record.value):
            yield "value"
        if not all(each in record.headers for each in self._headers):
            yield "headers"

    def _is_value(self, value: bytes | None) -> bool:
        if self._value is None or value is None or self._json is None:
            return value == self._value
        try:
            return canonical_json(parse_json(value)) == self._json
        except ValueError:
            return False

    def likeness(self, record: Record, differing: Iterable[FieldName]) -> float:
        """How much alike the fields are that differ: for each from 0, not at all, up to 1."""
        pairs = {"key": (self._key, record.key), "value": (self._value, record.value)}
        return sum(
            SequenceMatcher(None, (a or b"")[:_COMPARED], (b or b"")[:_COMPARED]).ratio()
            for a, b in (pairs[name] for name in differing if name in pairs)
        )

    def __str__(self) -> str:
        """Such as ``record with key "17" and value "two"``."""
        body = self._body
        said = [
            f"{name} {json.dumps(getattr(body, name), ensure_ascii=False)}"
            for name in ("key", "value")
            if name in self._given
        ]
        if self._headers:
            said.append(f"headers {json.dumps(body.headers, ensure_ascii=False)}")
        return f"record with {' and '.join(said)}" if said else "record"


class FoundRecord(NamedTuple):
    """A record that a search has read."""

    partition: int
    stored: StoredRecord
    differs: tuple[FieldName, ...]
    """Empty where it matches."""


class _PartitionSearch(Struct, kw_only=True):
    """What was read of one partition, in one epoch of its leader."""

    topic_id: UUID
    leader_epoch: int
    next_offset: int = 0
    matching: list[StoredRecord] = field(default_factory=list)


class RecordSearch:
    """Searches a topic for records, again and again.

    :param body: What is expected.
    """

    def __init__(self, cluster: Cluster, topic: str, body: ExpectBody) -> None:
        self.expected = ExpectedRecord(body)
        self._cluster = cluster
        self._topic = topic
        self._body = body
        self._partitions: dict[int, _PartitionSearch] = {}
        self._near: defaultdict[int, deque[FoundRecord]]
        self._near = defaultdict(lambda: deque(maxlen=_CANDIDATES))
        """The newest records that do not match, by how many of their fields differ."""

    def matching(self) -> list[FoundRecord]:
        """The records that match, in order of partition and offset, as many as are expected."""
        found = [
            FoundRecord(index, stored, ())
            for index, partition in sorted(self._partitions.items())
            for stored in partition.matching
        ]
        return found[: self._body.count]

    @property
    def is_met(self) -> bool:
        """Whether there are as many as are expected."""
        return len(self.matching()) == self._body.count

    async def read_on(self) -> None:
        """Read what is new in each partition that has a leader."""
        image = self._cluster.controller.image.topics.get(self._topic)
        count = 0 if image is None else len(image.partitions)
        wanted = self._body.partition
        for index in range(count) if wanted is None else [wanted]:
            while index < count and not self.is_met and not await self._read_partition(index):
                self._forget(index)

    async def _read_partition(self, index: int) -> bool:
        """Read a partition up to its present end; false where its log was cut meanwhile."""
        committed = self._body.isolation == "read_committed"
        try:
            readable = record_actions.readable_range(
                self._cluster, self._topic, index, committed=committed
            )
            search = self._search_of(index, readable)
            start = max(search.next_offset, readable.start)
            async for batch in batches_between(self._cluster, readable, start, readable.end):
                search.next_offset = batch.next_offset
                for each in batch.records:
                    self._sort_in(index, search, each)
                if len(search.matching) >= self._body.count:
                    break
        except ControllerError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                return False
            if error.code not in _WAITED_FOR:
                raise
        return True

    def _forget(self, index: int) -> None:
        """Forget a partition: what was read of it may not be there any more."""
        self._partitions.pop(index, None)
        for count, near in self._near.items():
            others = (each for each in near if each.partition != index)
            self._near[count] = deque(others, maxlen=_CANDIDATES)

    def _search_of(self, index: int, readable: record_actions.ReadableRange) -> _PartitionSearch:
        replica = readable.replica
        search = self._partitions.get(index)
        if (
            search is None
            or (search.topic_id, search.leader_epoch) != (replica.topic_id, replica.leader_epoch)
            or search.next_offset > readable.end
        ):
            self._forget(index)
            search = _PartitionSearch(topic_id=replica.topic_id, leader_epoch=replica.leader_epoch)
            self._partitions[index] = search
        return search

    def _sort_in(self, index: int, search: _PartitionSearch, stored: StoredRecord) -> None:
        differs = self.expected.differing(stored.record)
        if differs:
            self._near[len(differs)].append(FoundRecord(index, stored, differs))
        else:
            search.matching.append(stored)

    def nearest(self) -> list[FoundRecord]:
        """Of the records that do not match those that are most alike, the nearest first."""
        candidates = [each for near in self._near.values() for each in near]
        return sorted(candidates, key=self._distance)[:MAX_NEAREST]

    def _distance(self, found: FoundRecord) -> tuple[int, float, int]:
        likeness = self.expected.likeness(found.stored.record, found.differs)
        return len(found.differs), -likeness, -found.stored.record.offset


_WAITED_FOR: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""What may be otherwise later: an election, the creation of the topic."""
