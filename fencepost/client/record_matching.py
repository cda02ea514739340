"""Whether what is in the log is what was to be appended, record by record.

Where the log ends says nothing of who wrote it: another producer's records may be just as many.
"""

from dataclasses import dataclass
from enum import Enum, auto

from fencepost.client.batches import (
    EncodedRecords,
    FetchedRecord,
    FetchedRecords,
    NewRecord,
    Sequenced,
)
from fencepost.protocol.records import NO_SEQUENCE, BatchHeader, increment_sequence


class Verdict(Enum):
    """How a comparison ended."""

    OWN = auto()
    """All that was looked at are one's own records."""
    FOREIGN = auto()
    """The next record is another's."""
    MISSING = auto()
    """The next record is not in the log any more: compaction took it."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What a comparison found."""

    next_offset: int
    """Every record before it is one's own."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRecords:
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
        """What the record for an offset is sequenced with."""
        first = self.sequenced
        return Sequenced(
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=_sequence_at(first.base_sequence, offset - self.first_offset),
        )

    def matches(self, found: FetchedRecord, batch: BatchHeader) -> bool:
        """Whether a record of the log is the one that belongs at its offset.

        Timestamps say nothing where the broker has written its own into the batch.
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
    """Compare what was fetched with what was to be appended.

    :param start: All before it is known to be there.
    :param high_watermark: Exclusive; what is not below it may be lost yet, and is not looked at.
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
