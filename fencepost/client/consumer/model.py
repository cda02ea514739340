"""What a consumer hands out and takes: records, positions, offsets by time."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from fencepost.client.model import Partition


class OffsetAndMetadata(Struct, frozen=True, kw_only=True):
    """A position of a consumer, to be committed or sought (KIP-320, API Changes)."""

    offset: int
    """Of the next record."""
    leader_epoch: int | None = None
    """Of the record before it; None where it is not known. The log was truncated where a larger
    epoch begins before the offset."""
    metadata: str = ""
    """Any text of the application's."""
    timestamp: int | None = None
    """Of the record before it, in ms; in KIP-320's earlier draft alone."""


class OffsetAndTimestamp(Struct, frozen=True, kw_only=True):
    """The first record at or after a timestamp."""

    offset: int
    timestamp: int
    """Its own, in ms."""
    leader_epoch: int | None
    """Its own; None where the broker does not say. `Consumer.seek` takes it, to see a truncation
    that came after the lookup."""


class ConsumerRecord(Struct, frozen=True, kw_only=True):
    """A record that was consumed."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    """None where the topic's message format has none."""
    timestamp: int
    """Milliseconds since 1970-01-01 UTC."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ConsumerRecords(Struct, frozen=True, kw_only=True):
    """The records of a poll, those of each partition in their order."""

    by_partition: Mapping[Partition, Sequence[ConsumerRecord]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    next_offsets: Mapping[Partition, OffsetAndMetadata] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Where the consumer goes on in each of these partitions, to be committed (KIP-320)."""

    def __iter__(self) -> Iterator[ConsumerRecord]:
        for records in self.by_partition.values():
            yield from records

    def __len__(self) -> int:
        return sum(map(len, self.by_partition.values()))


class Truncation(Struct, frozen=True, kw_only=True):
    """A truncation that a consumer has detected: records that it had passed are gone."""

    partition: Partition
    position: OffsetAndMetadata
    """Where the consumer was."""
    divergent_offset: OffsetAndMetadata | None
    """The first offset that is known to differ from what it consumed, with the epoch of the record
    before that; None where it could not be found."""
