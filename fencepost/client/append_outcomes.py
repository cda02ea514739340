"""How a conditional append ends: appended, refused for good, or unknown.

A lost answer is settled by reading the log back: `match_records` compares it with the records that
were to be appended, record by record. The end of the log alone does not show who wrote it, because
another producer may have written as many records.
"""

from enum import Enum, auto
from typing import ClassVar

from msgspec import Struct

from fencepost.client.batches import (
    EncodedRecords,
    FetchedRecord,
    FetchedRecords,
    NewRecord,
    Sequenced,
)
from fencepost.client.errors import Failure, KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.errors import error_name
from fencepost.protocol.records import NO_SEQUENCE, BatchHeader, increment_sequence


class Appended(Struct, frozen=True, kw_only=True):
    """All records are in the log, at the offsets that were expected."""

    first_offset: int
    next_offset: int
    """The offset behind the last one: what the next append is to expect."""


class ExpectedOffsetMismatch(Exception):
    """Other records are at the expected offsets, or the log ends elsewhere. This is final.

    :ivar partition: Whose log it is.
    :ivar expected: The offset that was expected of the first record.
    :ivar upcoming: Where the log ended when the broker refused; None below version 8 of Produce,
        which has no room for it.
    :ivar appended: How many of the records are in the log all the same, from `expected` on, in
        front of the others: more than 0 only where an earlier attempt left a part of them.
    """

    def __init__(
        self, partition: Partition, expected: int, upcoming: int | None, appended: int = 0
    ) -> None:
        super().__init__(partition, expected, upcoming, appended)
        self.partition = partition
        self.expected = expected
        self.upcoming = upcoming
        self.appended = appended

    def __str__(self) -> str:
        upcoming = "" if self.upcoming is None else f", upcoming offset {self.upcoming}"
        part = f"; {self.appended} of the records are there" if self.appended else ""
        return f"{_name(self.partition)}: expected offset {self.expected}{upcoming}{part}"


class AppendRefused(Exception):
    """The broker refuses the records for good; none was appended.

    :ivar code: Kafka's error code.
    :ivar message: The broker's error message, if any.
    """

    def __init__(self, partition: Partition, code: int, message: str | None) -> None:
        super().__init__(partition, code, message)
        self.partition = partition
        self.code = code
        self.message = message

    @property
    def name(self) -> str:
        """Kafka's name of the code, or the number as text."""
        return error_name(self.code)

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{_name(self.partition)}: {self.name}{said}"


class NotChecked(Exception):
    """The records were appended, but at other offsets: the topic does not check base offsets.

    Its ``check.expected.offsets`` is false, or ``check.expected.offsets.source`` is not ``batch``.

    :ivar expected: The offset that was expected of the first record that was sent.
    :ivar first_offset: The offset that it got.
    """

    def __init__(self, partition: Partition, expected: int, first_offset: int) -> None:
        super().__init__(partition, expected, first_offset)
        self.partition = partition
        self.expected = expected
        self.first_offset = first_offset

    def __str__(self) -> str:
        return (
            f"{_name(self.partition)} does not check expected offsets: the records that were "
            f"expected at {self.expected} are at {self.first_offset}"
        )


class OutcomeUnknown(KafkaClientError):
    """The records may be in the log, wholly or in part, or may yet come to be there.

    :ivar upcoming: Where the log ended when a broker refused last; None where that is not known.
    :ivar appended: How many of the records were seen in the log, from `expected` on.
    :ivar reason: Why the outcome is unknown.
    """

    failure: ClassVar[Failure] = Failure.TIMED_OUT

    def __init__(
        self,
        partition: Partition,
        expected: int,
        *,
        upcoming: int | None,
        appended: int,
        reason: str,
    ) -> None:
        super().__init__(
            f"{_name(partition)}: whether the records are at {expected} is not known: {reason}"
        )
        self.partition = partition
        self.expected = expected
        self.upcoming = upcoming
        self.appended = appended
        self.reason = reason


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"


class Verdict(Enum):
    """The result of a comparison."""

    OWN = auto()
    """Every record that was compared is one's own."""
    FOREIGN = auto()
    """The next record is another's."""
    MISSING = auto()
    """The next record is not in the log any more: compaction took it."""


class MatchResult(Struct, frozen=True):
    """How far a comparison came."""

    next_offset: int
    """Every record before it is one's own."""
    verdict: Verdict


class ExpectedRecords(Struct, frozen=True, kw_only=True):
    """The records of one append, and where in the log they belong."""

    records: tuple[NewRecord, ...] | EncodedRecords
    first_offset: int
    sequenced: Sequenced
    """Of the first record; later ones follow it."""

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        return self.first_offset + len(self.records)

    def sequence_at(self, offset: int) -> Sequenced:
        """Producer id, epoch and sequence of the record at an offset."""
        first = self.sequenced
        return Sequenced(
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=_sequence_at(first.base_sequence, offset - self.first_offset),
        )

    def matches(self, found: FetchedRecord, batch: BatchHeader) -> bool:
        """Whether a record of the log is the one that belongs at its offset.

        Timestamps are not compared where the broker has written its own into the batch.
        """
        meant = self.records[found.offset - self.first_offset]
        return (
            (found.key, found.value, found.headers) == (meant.key, meant.value, meant.headers)
            and (batch.is_log_append_time or found.timestamp == meant.timestamp)
            and _sequenced_in(batch, found.offset) == self.sequence_at(found.offset)
        )


def match_records(
    own: ExpectedRecords, content: FetchedRecords, start: int, high_watermark: int
) -> MatchResult:
    """Compare fetched records with those that were to be appended.

    :param start: All records before it have been matched.
    :param high_watermark: Exclusive; records from it on may still be lost and are not compared.
    """
    found = {each.offset: each for each in content.records}
    end = min(high_watermark, own.end_offset)
    at = start
    for batch in content.batches:
        for offset in range(at, min(batch.next_offset, end)):
            record = found.get(offset)
            if batch.is_control and offset >= batch.base_offset:
                return MatchResult(at, Verdict.FOREIGN)
            if record is None:
                return MatchResult(at, Verdict.MISSING)
            if not own.matches(record, batch):
                return MatchResult(at, Verdict.FOREIGN)
            at = offset + 1
    return MatchResult(at, Verdict.OWN)


def _sequence_at(base_sequence: int, delta: int) -> int:
    return NO_SEQUENCE if base_sequence == NO_SEQUENCE else increment_sequence(base_sequence, delta)


def _sequenced_in(batch: BatchHeader, offset: int) -> Sequenced:
    return Sequenced(
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=_sequence_at(batch.base_sequence, offset - batch.base_offset),
    )
