"""Batches as a client sends and fetches them: records encoded, decoded, or encoded already.

A client with many records of a kind encodes a batch at once, without an object for each record.
Such a batch is sent as it is, and read again only where the log is compared record by record.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, overload

from msgspec import Struct

from fencepost.client.aborted_transactions import AbortedBatches, AbortedTransaction
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import (
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_ok,
    iter_headers,
    peek_header,
    stamp,
)


class NewRecord(Struct, frozen=True, kw_only=True):
    """A record to be produced."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int
    """Milliseconds since 1970-01-01 UTC."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Sequenced(Struct, frozen=True, kw_only=True):
    """What makes a batch an idempotent producer's: sent again, it is not appended again."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


NOT_SEQUENCED = Sequenced()


class FetchedRecord(Struct, frozen=True, kw_only=True):
    """A record that was fetched."""

    offset: int
    epoch: int
    """The leader epoch of its batch."""
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class FetchedRecords(Struct, frozen=True, kw_only=True):
    """The records of an answer, up to the first batch that is broken."""

    records: tuple[FetchedRecord, ...]
    next_offset: int | None
    """Behind the last whole batch; None where there is none."""
    corrupt: str | None
    """What is wrong with the first batch that is broken; None where none is."""
    batches: tuple[BatchHeader, ...] = ()
    """The headers of the whole batches, in their order, those of control records too, and those
    of aborted transactions."""


def encode_records(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    sequenced: Sequenced = NOT_SEQUENCED,
    transactional: bool = False,
) -> bytearray:
    """One batch of all the records.

    :param base_offset: 0 as all producers send it; under KIP-27 the offset that is expected.
    """
    numbered = [
        Record(base_offset + at, each.timestamp, each.key, each.value, each.headers)
        for at, each in enumerate(records)
    ]
    return build_batch(
        numbered,
        base_offset=base_offset,
        codec=codec,
        producer_id=sequenced.producer_id,
        producer_epoch=sequenced.producer_epoch,
        base_sequence=sequenced.base_sequence,
        transactional=transactional,
    )


def decode_records(
    buffers: Sequence[Buffer], start: int, aborted: Iterable[AbortedTransaction] = ()
) -> FetchedRecords:
    """The records from an offset on; control records are left out, a cut last batch as well.

    :param start: The fetch offset: the first batch may begin before it.
    :param aborted: Transactions whose records are left out.
    """
    aborted_batches = AbortedBatches(aborted)
    found: list[FetchedRecord] = []
    headers: list[BatchHeader] = []
    corrupt: str | None = None
    try:
        for buffer in buffers:
            for at, header in _intact_batches(buffer):
                left_out = aborted_batches.contains(buffer, at, header) or header.is_control
                records = () if left_out else tuple(iter_records(buffer, at))
                epoch = header.partition_leader_epoch
                found += (_fetched(each, epoch) for each in records if each.offset >= start)
                headers.append(header)
    except CorruptBatch as error:
        corrupt = str(error)
    return FetchedRecords(
        records=tuple(found),
        next_offset=headers[-1].next_offset if headers else None,
        corrupt=corrupt,
        batches=tuple(headers),
    )


def _intact_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Place and header of each batch.

    :raises CorruptBatch: At the first one that is broken.
    """
    for at, header in iter_headers(buffer):
        if not crc_ok(buffer, at, header):
            raise CorruptBatch(f"the batch at {header.base_offset} has another checksum")
        yield at, header


def _fetched(record: Record, epoch: int) -> FetchedRecord:
    return FetchedRecord(
        offset=record.offset,
        epoch=epoch,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


_LEADER_EPOCH_ENDS: Final = 16
"""Base offset, length and leader epoch lie before it; what a producer has settled, behind it."""


class EncodedBatch(Struct, frozen=True):
    """A batch without a producer id, at base offset 0."""

    header: bytearray
    """Its first 61 bytes, as `protocol.records.build_header` makes them."""
    packed: Buffer
    """All its records."""

    @property
    def read_header(self) -> BatchHeader:
        """The header's fields."""
        return peek_header(self.header)

    def matches_at(self, buf: memoryview, pos: int, found: BatchHeader) -> bool:
        """Whether a batch of a log is this one, byte by byte; its offset is not looked at."""
        body = pos + HEADER_SIZE
        # A bytearray compares memory. Two views would compare item by item, as numbers: and bytes
        # of Arrow are signed ones.
        return (
            found.size == HEADER_SIZE + len(self.packed)
            and self.header[_LEADER_EPOCH_ENDS:] == buf[pos + _LEADER_EPOCH_ENDS : body]
            and bytearray(self.packed) == buf[body : pos + found.size]
        )


class EncodedRecords(Sequence[NewRecord]):
    """The records of some batches, in their order.

    :param batches: Each with all the records that its header counts.
    :ivar batches: The same.
    """

    __slots__ = ("_records", "_starts", "batches")

    def __init__(self, batches: Sequence[EncodedBatch]) -> None:
        self.batches = tuple(batches)
        counts = [each.read_header.record_count for each in self.batches]
        self._starts = (0, *accumulate(counts))
        self._records: tuple[NewRecord, ...] | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncodedRecords) and self.batches == other.batches

    __hash__ = None  # type: ignore[assignment]  # its batches are no keys

    @overload
    def __getitem__(self, at: int) -> NewRecord: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[NewRecord, ...]: ...

    def __getitem__(self, at: int | slice) -> NewRecord | tuple[NewRecord, ...]:
        if self._records is None:
            self._records = tuple(each for batch in self.batches for each in _decode_batch(batch))
        return self._records[at]

    @property
    def size(self) -> int:
        """Bytes of all batches, with their headers."""
        return sum(HEADER_SIZE + len(each.packed) for each in self.batches)

    def starts(self, base_offset: int) -> tuple[int, ...]:
        """The offset of each batch, and the one behind the last."""
        return tuple(base_offset + each for each in self._starts)

    def encode_from(self, start: int, *, base_offset: int) -> bytearray | None:
        """The batches from a record on, each with the offset that is expected as its base.

        :param start: Index of the record; None where it is not a batch's first.
        :param base_offset: What that record's offset is to be.
        """
        if start not in self._starts:
            return None
        encoded = bytearray()
        first = self._starts.index(start)
        for batch, at in zip(self.batches[first:], self._starts[first:], strict=False):
            pos = len(encoded)
            encoded += batch.header
            encoded += batch.packed
            offset = base_offset + at - start
            header = batch.read_header
            epoch = header.partition_leader_epoch
            stamp(encoded, pos, header, base_offset=offset, leader_epoch=epoch)
        return encoded


def _decode_batch(batch: EncodedBatch) -> list[NewRecord]:
    whole = bytes(batch.header) + bytes(batch.packed)
    return [
        NewRecord(key=each.key, value=each.value, timestamp=each.timestamp, headers=each.headers)
        for each in iter_records(whole)
    ]
