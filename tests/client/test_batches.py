from __future__ import annotations

import pytest

from fencepost.client.batches import NewRecord, Sequenced, decode_records, encode_records
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import build_batch, read_header

RECORDS = (
    NewRecord(value=b"a", timestamp=1),
    NewRecord(key=b"k", value=None, timestamp=2, headers=(("h", b"x"), ("n", None))),
)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_sent_can_be_read_with_every_codec(codec: Codec) -> None:
    found = decode_records([encode_records(RECORDS, codec=codec)], 0)
    assert [(each.key, each.value, each.timestamp) for each in found.records] == [
        (None, b"a", 1),
        (b"k", None, 2),
    ]
    assert found.records[1].headers == (("h", b"x"), ("n", None))
    assert (found.next_offset, found.corrupt) == (2, None)


def test_an_idempotent_batch_says_who_sends_it() -> None:
    sequenced = Sequenced(producer_id=7, producer_epoch=1, base_sequence=40)
    header = read_header(encode_records(RECORDS, sequenced=sequenced))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 40)


def test_a_stated_base_offset_is_sent() -> None:
    header = read_header(encode_records(RECORDS, base_offset=12))
    assert (header.base_offset, header.last_offset) == (12, 13)


def test_records_before_the_fetch_offset_are_left_out() -> None:
    found = decode_records([encode_records(RECORDS)], 1)
    assert [each.offset for each in found.records] == [1]


def test_a_broken_batch_ends_what_is_read() -> None:
    whole, broken = encode_records(RECORDS), encode_records(RECORDS, base_offset=2)
    broken[-1] ^= 1
    found = decode_records([whole + broken, encode_records(RECORDS, base_offset=4)], 0)
    assert [each.offset for each in found.records] == [0, 1]
    assert found.next_offset == 2
    assert found.corrupt is not None
    assert "batch at 2" in found.corrupt


def test_a_batch_that_is_cut_off_is_no_broken_one() -> None:
    whole = encode_records(RECORDS)
    found = decode_records([whole + encode_records(RECORDS, base_offset=2)[:-1]], 0)
    assert (len(found.records), found.next_offset, found.corrupt) == (2, 2, None)


def test_control_records_are_skipped_and_passed() -> None:
    marker = build_batch([], base_offset=0, last_offset=0, control=True, max_timestamp=0)
    found = decode_records([bytes(marker)], 0)
    assert (found.records, found.next_offset) == ((), 1)
