"""Transaction markers, byte by byte as Apache Kafka writes them."""

import pytest
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.records import CorruptBatch, Record, build_batch, crc_ok, read_header
from fencepost.protocol.transaction_markers import (
    EndTransactionMarker,
    TransactionMarker,
    decode_marker,
)
from tests.harness.records import batch, records_of

COMMIT = TransactionMarker(
    producer_id=5, producer_epoch=3, coordinator_epoch=7, committed=True, transaction_version=2
)
ABORT = replace(COMMIT, committed=False)


@pytest.mark.parametrize(("marker", "kind"), [(COMMIT, 1), (ABORT, 0)])
def test_a_marker_is_a_control_record_with_the_epoch_of_its_coordinator(
    marker: TransactionMarker, kind: int
) -> None:
    data = marker.to_batch(1_000)
    header = read_header(data)
    assert crc_ok(data, 0, header)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, -1)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (1_000, 1_000, 1)
    (record,) = records_of([data])
    assert (record.key, record.value) == (bytes([0, 0, 0, kind]), bytes([0, 0, 0, 0, 0, 7]))
    assert decode_marker(data) == EndTransactionMarker(marker.committed, 7)


def test_a_marker_is_found_where_its_batch_begins() -> None:
    before = batch(b"a")
    assert decode_marker(before + ABORT.to_batch(0), len(before)) == EndTransactionMarker(False, 7)


KEY, VALUE = bytes([0, 0, 0, 1]), bytes([0, 0, 0, 0, 0, 7])


@pytest.mark.parametrize(
    ("record", "codec"),
    [
        (Record(0, 5, KEY, VALUE), Codec.ZSTD),
        (Record(0, 5, KEY, VALUE, (("who", b"x"),)), Codec.NONE),
        (Record(0, 5, KEY + b"more", VALUE), Codec.NONE),
        (Record(0, 5, KEY, VALUE + b"more"), Codec.NONE),
    ],
    ids=["compressed", "with a header", "a longer key", "a longer value"],
)
def test_a_marker_need_not_be_as_short_as_it_can(record: Record, codec: int) -> None:
    data = build_batch([record], codec=codec, control=True, transactional=True)
    assert decode_marker(data) == EndTransactionMarker(True, 7)


def test_what_is_no_marker() -> None:
    bare = build_batch([], control=True, transactional=True, producer_id=5, producer_epoch=0)
    assert decode_marker(bare) is None
    leader_change = batch((0, b"\0\0\0\2", b"\0\0\0\0\0\0"), control=True)
    assert decode_marker(leader_change) is None
    short = batch((0, b"\0\0", b"\0\0"), control=True)
    assert decode_marker(short) is None
    with pytest.raises(CorruptBatch, match="cut short"):
        decode_marker(COMMIT.to_batch(0)[:-1])
