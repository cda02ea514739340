"""What a consumer raises besides `KafkaClientError`."""

from collections.abc import Mapping
from typing import Final

from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.model import Partition
from fencepost.protocol.errors import error_name


class ConsumerError(Exception):
    """A consumer cannot go on by itself."""


class RequestRefused(ConsumerError):
    """A broker answered with an error after which no consumer asks again.

    :ivar code: Kafka's code of the error.
    """

    def __init__(self, subject: str, code: int) -> None:
        super().__init__(f"{subject}: {error_name(code)}")
        self.code = code


class CorruptRecords(ConsumerError):
    """The next batch of a partition is broken; the consumer stays before it.

    :ivar partition: The partition.
    :ivar offset: The consumer's position.
    """

    def __init__(self, partition: Partition, offset: int, reason: str) -> None:
        super().__init__(f"{_name(partition)} at offset {offset}: {reason}")
        self.partition = partition
        self.offset = offset


class NoOffsetForPartitionError(ConsumerError):
    """Partitions have no committed offset, and ``auto_offset_reset`` is none.

    :ivar partitions: The partitions.
    """

    def __init__(self, partitions: frozenset[Partition]) -> None:
        names = ", ".join(sorted(map(_name, partitions)))
        super().__init__(f"no offset is committed, and auto_offset_reset is none: {names}")
        self.partitions = partitions


class OffsetOutOfRangeError(ConsumerError):
    """Positions are not in their logs, and ``auto_offset_reset`` is none.

    The positions stay: to go on, seek. Raised by `Consumer.poll`.

    :ivar offsets: The position of each partition.
    """

    def __init__(
        self,
        offsets: Mapping[Partition, int],
        reason: str = "out of range",
        details: Mapping[Partition, str] | None = None,
    ) -> None:
        shown = (
            f"{_name(each)} at {offset}{(details or {}).get(each, '')}"
            for each, offset in offsets.items()
        )
        super().__init__(f"{reason}: {', '.join(shown)}")
        self.offsets = offsets


class LogTruncationError(OffsetOutOfRangeError):
    """Logs were truncated below the positions, and ``auto_offset_reset`` is none (KIP-320).

    The positions stay: it is raised again until `Consumer.seek`, usually to the divergent offset.

    :ivar divergent_offsets: The first offset of each partition that is known to differ from what
        was consumed; partitions for which it could not be found are missing.
    """

    def __init__(
        self,
        offsets: Mapping[Partition, int],
        divergent_offsets: Mapping[Partition, OffsetAndMetadata],
    ) -> None:
        found = {each: at.offset for each, at in divergent_offsets.items()}
        super().__init__(offsets, _TRUNCATED, _details(offsets, found))
        self.divergent_offsets = divergent_offsets


class TruncatedPartitionError(OffsetOutOfRangeError):
    """The same in KIP-320's earlier draft.

    It is raised once: without `Consumer.seek` the consumer goes on at its position.

    :ivar truncated_offsets: For each partition the first offset that differs from what was
        consumed, or None where it could not be determined.
    """

    def __init__(
        self, offsets: Mapping[Partition, int], truncated_offsets: Mapping[Partition, int | None]
    ) -> None:
        super().__init__(offsets, _TRUNCATED, _details(offsets, truncated_offsets))
        self.truncated_offsets = truncated_offsets


class CommitFailedError(ConsumerError):
    """The group has rebalanced, or does not know this member any more: nothing was committed."""


_TRUNCATED: Final = "the log was truncated"


def _details(
    offsets: Mapping[Partition, int], found: Mapping[Partition, int | None]
) -> dict[Partition, str]:
    """The divergent offset of each partition, to be shown after its position."""
    known = {each: found.get(each) for each in offsets}
    return {
        each: ", divergent offset unknown" if at is None else f", divergent offset {at}"
        for each, at in known.items()
    }


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"
