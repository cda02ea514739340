"""Records of ``__transaction_state``: Kafka's bytes, and a round trip of every value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.coordinator.record_fields import MalformedRecord
from fencepost.broker.transactions.records import TransactionRecord, decode, encode
from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
from fencepost.broker.transactions.transaction_state import TransactionState

ONGOING = TransactionMetadata(
    producer_id=7,
    previous_producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({("u", 0), ("t", 2), ("t", 1)}),
    start_ms=0x1A1FD7DC3C3,
    last_update_ms=0x1A1FD7DC426,
    client_version=2,
)
FIXED = "0000000000000007 0003 0000ea60 01"
TIMES = "000001a1fd7dc426 000001a1fd7dc3c3"
BYTES = {
    1: (
        f"0001 {FIXED} 03 0274 03 00000001 00000002 00 0275 02 00000000 00 {TIMES}"
        "02 00 08 0000000000000007 02 02 0002"
    ),
    0: (
        f"0000 {FIXED} 00000002 0001 74 00000002 00000001 00000002 0001 75 00000001 00000000"
        + TIMES
    ),
}


def record(value: TransactionMetadata | None) -> TransactionRecord:
    return TransactionRecord(transactional_id="a", value=value)


@pytest.mark.parametrize("version", [0, 1])
def test_a_record_has_the_bytes_of_kafkas_schema(version: int) -> None:
    old = replace(ONGOING, client_version=0, previous_producer_id=-1)
    value = ONGOING if version else old
    key, data = encode(record(value), version)
    assert key == bytes.fromhex("0000 0001 61")
    assert data == bytes.fromhex(BYTES[version])
    assert decode(key, data) == record(value)


def test_an_empty_transaction_has_null_for_its_partitions() -> None:
    empty = replace(ONGOING, state=TransactionState.EMPTY, partitions=frozenset(), start_ms=-1)
    key, data = encode(record(empty))
    assert data is not None
    assert data[17:19] == b"\x00\x00"  # the state, and a null array
    assert decode(key, data) == record(empty)


def test_an_expired_id_is_a_tombstone() -> None:
    key, data = encode(record(None))
    assert data is None
    assert decode(key, data) == record(None)


def test_what_version_0_cannot_hold_is_written_in_version_1() -> None:
    key, data = encode(record(ONGOING), 0)
    assert decode(key, data) == record(ONGOING)


@pytest.mark.parametrize(
    ("key", "value"), [("0001 0001 61", None), ("0000 0001 61", "0002 00")], ids=["key", "value"]
)
def test_other_versions_are_skipped(key: str, value: str | None) -> None:
    data = None if value is None else bytes.fromhex(value)
    assert decode(bytes.fromhex(key), data) is None


def test_an_unknown_state_is_malformed() -> None:
    key, data = encode(record(ONGOING))
    assert data is not None
    with pytest.raises(MalformedRecord):
        decode(key, data[:17] + b"\x09" + data[18:])
    with pytest.raises(MalformedRecord):
        decode(key, data[:30])


int64 = st.integers(-1, 2**63 - 1)
int16 = st.integers(-1, 2**15 - 1)
topics = st.text(min_size=1, max_size=4)


@settings(max_examples=100)
@given(
    st.builds(
        TransactionMetadata,
        producer_id=int64,
        previous_producer_id=int64,
        next_producer_id=int64,
        next_producer_epoch=int16,
        producer_epoch=int16,
        timeout_ms=st.integers(1, 2**31 - 1),
        state=st.sampled_from(sorted(set(TransactionState) - {TransactionState.EMPTY})),
        partitions=st.frozensets(st.tuples(topics, st.integers(0, 2**31 - 1)), max_size=6),
        start_ms=int64,
        last_update_ms=int64,
        client_version=st.integers(0, 2),
    )
)
def test_every_value_comes_back_from_version_1(value: TransactionMetadata) -> None:
    assert decode(*encode(record(value))) == record(value)
