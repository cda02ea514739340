"""Records to a batch that is sent, and the records of what was fetched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    Record,
    build_batch,
    crc_ok,
    iter_headers,
    iter_records,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to be produced."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int
    """Milliseconds since 1970-01-01 UTC."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequenced:
    """What makes a batch an idempotent producer's: sent again, it is not appended again."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE


NOT_SEQUENCED = Sequenced()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecord:
    """A record that was fetched."""

    offset: int
    epoch: int
    """The leader epoch of its batch."""
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecords:
    """The records of an answer, up to the first batch that is broken."""

    records: tuple[FetchedRecord, ...]
    next_offset: int | None
    """Behind the last whole batch; None where there is none."""
    corrupt: str | None
    """What is wrong with the first batch that is broken; None where none is."""
    batches: tuple[BatchHeader, ...] = ()
    """The headers of the whole batches, in their order, those of control records too."""


def encode_records(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    sequenced: Sequenced = NOT_SEQUENCED,
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
    )


def decode_records(buffers: Sequence[Buffer], start: int) -> FetchedRecords:
    """The records from an offset on; control records are left out, a cut last batch as well.

    :param start: The fetch offset: the first batch may begin before it.
    """
    found: list[FetchedRecord] = []
    headers: list[BatchHeader] = []
    corrupt: str | None = None
    try:
        for buffer in buffers:
            for at, header in _whole(buffer):
                records = () if header.is_control else tuple(iter_records(buffer, at))
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


def _whole(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
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
