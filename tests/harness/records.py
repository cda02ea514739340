"""Record batches built and read by the server's own codec: `batch` for all tests of the core.

A test that must not trust that codec builds its bytes by `tests.harness.batches`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, build_batch, iter_headers

TIMESTAMP: Final = 1_699_999_000_000
"""Of records that give none: a little before the drivers' clocks start."""

Row: TypeAlias = tuple[int, bytes | None, bytes | None]
"""Timestamp, key and value."""
_ONE: Final[Row] = (1_700_000_000_000, b"k", b"v")


def batch(
    *records: bytes | Row | Record,
    base_offset: int = 0,
    timestamp: int = TIMESTAMP,
    codec: int = Codec.NONE,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """A batch as a producer sends it, or with a base offset and epoch as a leader stores it.

    :param records: Values, rows, or whole records. The key of a value is ``k`` and its place, its
        timestamp ``timestamp`` plus its place. Without any there is one row.
    :param producer: Its id, epoch and base sequence.
    """
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    return build_batch(
        [
            _record(record, base_offset + place, place, timestamp)
            for place, record in enumerate(records or [_ONE])
        ],
        base_offset=base_offset,
        codec=codec,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
        control=control,
    )


def _record(record: bytes | Row | Record, offset: int, place: int, timestamp: int) -> Record:
    if isinstance(record, Record):
        return record
    if isinstance(record, bytes):
        return Record(offset, timestamp + place, b"k%d" % place, record)
    return Record(offset, *record)


def records_of(buffers: Iterable[Buffer]) -> list[Record]:
    """The records of all whole batches."""
    return [
        record
        for buffer in buffers
        for at, _ in iter_headers(buffer)
        for record in iter_records(buffer, at)
    ]
