"""Records: where they were appended, as they are in the log, and the nearest to an expectation."""

from typing import ClassVar, Final, Literal

from fencepost.verbs.answers import Answer, ErrorAnswer
from fencepost.verbs.model import Example, Examples
from fencepost.verbs.record_encoding import Encoding, ShownHeaders

_RECORD: Final[Example] = {
    "partition": 0,
    "offset": 42,
    "leader_epoch": 3,
    "timestamp": 1764000000000,
    "key": "17",
    "value": "two fence posts",
    "headers": {"trace": "a1"},
    "encoding": "text",
    "producer_id": None,
    "producer_epoch": None,
    "sequence": None,
    "transaction": None,
}


class ProducedRecord(Answer):
    """Where a record was appended."""

    partition: int
    offset: int


class ProducedRecords(Answer):
    """Records that were appended."""

    records: tuple[ProducedRecord, ...]
    """In the order in which they were given."""

    examples: ClassVar[Examples] = [{"records": [{"partition": 0, "offset": 42}]}]


class RecordState(Answer):
    """A record of a partition's log."""

    partition: int
    offset: int
    leader_epoch: int
    """In which it was appended."""
    timestamp: int
    """Milliseconds since 1970-01-01 UTC."""
    key: str | None
    value: object
    """Text, or with the encoding ``json`` any JSON; null for a tombstone."""
    headers: ShownHeaders
    """By name, or an array of ``[name, value]`` where names repeat."""
    encoding: Encoding
    """In which it is shown: another one than asked for where that cannot show it."""
    producer_id: int | None
    """Null where its producer is not idempotent, as the two below."""
    producer_epoch: int | None
    sequence: int | None
    transaction: Literal["ongoing", "committed", "aborted"] | None
    """State of its transaction; null where it is part of none."""

    examples: ClassVar[Examples] = [_RECORD]


class RecordsState(Answer):
    """Records of a partition's log, in the order of their offsets."""

    records: tuple[RecordState, ...]
    """Without control records."""
    next_offset: int
    """Where to read on."""

    examples: ClassVar[Examples] = [{"records": [_RECORD], "next_offset": 43}]


class ExpectedRecords(Answer):
    """Records that match an expectation."""

    records: tuple[RecordState, ...]
    """The first ones, as many as were expected, in order of partition and offset."""

    examples: ClassVar[Examples] = [{"records": [_RECORD]}]


class NearRecord(RecordState):
    """A record that nearly matches an expectation."""

    differs: tuple[Literal["key", "value", "headers"], ...]
    """What of it does not match."""

    examples: ClassVar[Examples] = [{**_RECORD, "differs": ["value"]}]


class RecordsMissing(ErrorAnswer):
    """The records that were expected are not there in time."""

    records: tuple[RecordState, ...]
    """Those that match, fewer than were expected."""
    nearest: tuple[NearRecord, ...]
    """Of the others those that are most alike, the nearest first."""

    examples: ClassVar[Examples] = [
        {
            "error": "REQUEST_TIMED_OUT",
            "message": 'orders has no record with value "two" after 5000 ms; '
            'nearest: orders-0 offset 42: value "two fence posts"',
            "records": [],
            "nearest": [{**_RECORD, "differs": ["value"]}],
        }
    ]
