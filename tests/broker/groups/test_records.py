"""Records of ``__consumer_offsets``: Kafka's bytes, and a round trip of every value."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.coordinator.record_fields import MalformedRecord
from fencepost.broker.groups.records import (
    CommittedOffset,
    CoordinatorRecord,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
    StoredMember,
    decode,
    encode,
)

TOPIC_ID = UUID("3e02c23a-d9bc-41a1-8895-3cf8c94f57a6")
MEMBER_ID = "probe-fcd0d593-6fd0-4d70-996f-ce8d7898eca6"
SUBSCRIPTION = bytes.fromhex("000000000001000174ffffffff")

KAFKA_WROTE: list[tuple[str, str | None, CoordinatorRecord]] = [
    (
        "0002000165",
        "00030000 00000000 ffff ffff 000001a1fd7dc3c3 00000000",
        GroupRecord(group_id="e", value=StoredGroup(state_timestamp_ms=0x1A1FD7DC3C3)),
    ),
    (
        "0002000166",
        "0003 0008636f6e73756d6572 00000001 000572616e6765 002a"
        + MEMBER_ID.encode().hex()
        + "000001a1fd7dc426 00000001 002a"
        + MEMBER_ID.encode().hex()
        + "ffff 000570726f6265 000a2f3132372e302e302e31 00000bb8 00002710"
        + "0000000d 000000000001000174ffffffff 00000007 413a70726f6265",
        GroupRecord(
            group_id="f",
            value=StoredGroup(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader=MEMBER_ID,
                state_timestamp_ms=0x1A1FD7DC426,
                members=(
                    StoredMember(
                        member_id=MEMBER_ID,
                        group_instance_id=None,
                        client_id="probe",
                        client_host="/127.0.0.1",
                        rebalance_timeout_ms=3000,
                        session_timeout_ms=10_000,
                        subscription=SUBSCRIPTION,
                        assignment=b"A:probe",
                    ),
                ),
            ),
        ),
    ),
    ("0002000166", None, GroupRecord(group_id="f", value=None)),
    (
        "00010001660001740000 0000",
        None,
        OffsetRecord(group_id="f", topic="t", partition=0, value=None),
    ),
]
"""Keys and values that Apache Kafka 4.3.1 wrote."""
KAFKA_WROTE_OFFSET = (
    "0004 0000000000000005 00000003 036d64 000001a1fd7dc3fe 01 00 10" + TOPIC_ID.hex
)


@pytest.mark.parametrize(("key", "value", "record"), KAFKA_WROTE)
def test_records_are_read_and_written_as_kafkas_bytes(
    key: str, value: str | None, record: CoordinatorRecord
) -> None:
    data = None if value is None else bytes.fromhex(value)
    assert decode(bytes.fromhex(key), data) == record
    assert encode(record) == (bytes.fromhex(key), data)


def test_kafkas_own_offset_has_the_topics_id() -> None:
    record = offset_record(
        CommittedOffset(
            offset=5,
            leader_epoch=3,
            metadata="md",
            commit_timestamp_ms=0x1A1FD7DC3FE,
            topic_id=TOPIC_ID,
        )
    )
    value = bytes.fromhex(KAFKA_WROTE_OFFSET)
    assert encode(record, offset_version=4)[1] == value
    assert decode(encode(record)[0], value) == record


def offset_record(value: CommittedOffset) -> OffsetRecord:
    return OffsetRecord(group_id="f", topic="t", partition=0, value=value)


def value_of(committed: CommittedOffset, version: int = 3) -> bytes:
    value = encode(offset_record(committed), version)[1]
    assert value is not None
    return value


def test_an_offset_is_written_as_version_3() -> None:
    committed = CommittedOffset(offset=5, leader_epoch=3, metadata="md", commit_timestamp_ms=9)
    expected = "0003 0000000000000005 00000003 00026d64 0000000000000009"
    assert value_of(committed) == bytes.fromhex(expected)


def test_an_offset_with_an_expiry_is_written_as_version_1() -> None:
    committed = CommittedOffset(offset=5, commit_timestamp_ms=9, expire_timestamp_ms=10)
    expected = "0001 0000000000000005 0000 0000000000000009 000000000000000a"
    assert value_of(committed, 4) == bytes.fromhex(expected)
    key = encode(offset_record(committed))[0]
    assert decode(key, value_of(committed)) == offset_record(committed)


def test_metadata_too_long_for_version_3_takes_version_4() -> None:
    longest = CommittedOffset(offset=5, metadata="x" * 32767, commit_timestamp_ms=9)
    assert value_of(longest)[:2] == b"\0\3"
    committed = CommittedOffset(offset=5, metadata="x" * 32768, commit_timestamp_ms=9)
    assert value_of(committed)[:2] == b"\0\4"
    key = encode(offset_record(committed))[0]
    assert decode(key, value_of(committed)) == offset_record(committed)


TIMESTAMPED = "0004 0000000000000005 00000003 036d64 0000000000000009"
"""Version 4, the offset, its epoch, "md" in three bytes, and when it was committed."""
TIMESTAMP = "d050 08 0000000000000007"
"""The tagged field 10320 (0x50 << 7 | 0x50), of eight bytes."""


@pytest.mark.parametrize("version", [3, 4])
def test_the_timestamp_of_a_record_is_a_tagged_field_of_version_4(version: int) -> None:
    committed = CommittedOffset(
        offset=5, leader_epoch=3, metadata="md", commit_timestamp_ms=9, timestamp_ms=7
    )
    assert value_of(committed, version) == bytes.fromhex(TIMESTAMPED + "01" + TIMESTAMP)
    with_id = replace(committed, topic_id=TOPIC_ID)
    topic_id = "00 10" + TOPIC_ID.hex
    assert value_of(with_id, version) == bytes.fromhex(TIMESTAMPED + "02" + topic_id + TIMESTAMP)
    for each in (committed, with_id):
        assert decode(*encode(offset_record(each), version)) == offset_record(each)


def test_a_timestamp_of_another_size_is_malformed() -> None:
    short = bytes.fromhex(TIMESTAMPED + "01 d050 07 00000000000007")
    with pytest.raises(MalformedRecord):
        decode(bytes.fromhex("000100016600017400000000"), short)


@pytest.mark.parametrize("size", [0, 126, 127, 128, 16_382, 16_383])
def test_compact_strings_of_any_length(size: int) -> None:
    committed = CommittedOffset(
        offset=5, metadata="x" * size, commit_timestamp_ms=9, topic_id=TOPIC_ID
    )
    record = offset_record(committed)
    assert decode(*encode(record, 4)) == record
    prefix = {0: "01", 126: "7f", 127: "8001", 128: "8101", 16_382: "ff7f", 16_383: "808001"}
    expected = bytes.fromhex(prefix[size]) + b"x" * size
    assert value_of(committed, 4)[14:].startswith(expected)


def test_a_zero_topic_id_is_none() -> None:
    value = bytes.fromhex(KAFKA_WROTE_OFFSET[:-32] + "00" * 16)
    record = decode(bytes.fromhex("000100016600017400000000"), value)
    assert isinstance(record, OffsetRecord)
    assert record.value is not None
    assert record.value.topic_id is None


@pytest.mark.parametrize(
    ("version", "fields"),
    [(0, ""), (1, "000000000000000a"), (2, "")],
)
def test_old_offsets_have_no_leader_epoch(version: int, fields: str) -> None:
    value = bytes.fromhex(f"{version:04x}" + "0000000000000005 00026d64 0000000000000009" + fields)
    record = decode(bytes.fromhex("000000016600017400000000"), value)
    assert isinstance(record, OffsetRecord)
    assert record.value is not None
    assert (record.value.offset, record.value.leader_epoch) == (5, -1)
    assert record.value.expire_timestamp_ms == (10 if version == 1 else -1)


def test_old_groups_have_neither_timestamp_nor_rebalance_timeout() -> None:
    member = "00016d 000163 000168 00002710 00000000 00000000"
    value = bytes.fromhex("0000 000163 00000002 000172 00016d 00000001" + member)
    record = decode(bytes.fromhex("0002000167"), value)
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert record.value.state_timestamp_ms == -1
    assert record.value.members[0].rebalance_timeout_ms == 10_000
    assert record.value.members[0].group_instance_id is None


@pytest.mark.parametrize(("version", "timestamp_ms"), [(1, -1), (2, 3), (3, 3)])
def test_groups_of_the_versions_between(version: int, timestamp_ms: int) -> None:
    stamp = "0000000000000003" if version >= 2 else ""
    instance = "000169" if version >= 3 else ""
    member = "00016d" + instance + "000163 000168 00000007 00002710 00000000 00000000"
    head = f"{version:04x}" + "000163 00000002 000172 00016d" + stamp
    record = decode(bytes.fromhex("0002000167"), bytes.fromhex(head + "00000001" + member))
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert record.value.state_timestamp_ms == timestamp_ms
    assert record.value.members[0].rebalance_timeout_ms == 7
    assert record.value.members[0].group_instance_id == ("i" if version == 3 else None)


def test_the_newest_groups_are_compact() -> None:
    member = "026d 0269 0263 0268 00000001 00000002 0273 0261 00"
    value = bytes.fromhex("0004 0263 00000002 0272 026d 0000000000000003 02" + member + "00")
    record = decode(bytes.fromhex("0002000167"), value)
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert (record.value.generation, record.value.state_timestamp_ms) == (2, 3)
    (stored,) = record.value.members
    assert (stored.group_instance_id, stored.subscription, stored.assignment) == ("i", b"s", b"a")


@pytest.mark.parametrize("key", ["0003 0001 67", "0011", "ffff"])
def test_keys_of_other_types_of_groups_are_skipped(key: str) -> None:
    assert decode(bytes.fromhex(key), b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", ""),
        ("0002", None),
        ("0002 0005 67", None),
        ("0002 ffff", None),
        ("0001 0001 66 0001 74", None),
        ("0002 0001 67", "0005"),
        ("0002 0001 67", "ffff"),
        ("0002 0001 67", "0003"),
        ("0002 0001 67", "0003 0001 63 00000002 ffff ffff 0000000000000000 00000001"),
        ("0002 0001 67", "0003 0001 ff 00000002 ffff ffff 0000000000000000 00000000"),
    ],
)
def test_broken_records_are_malformed(key: str, value: str | None) -> None:
    with pytest.raises(MalformedRecord):
        decode(bytes.fromhex(key), None if value is None else bytes.fromhex(value))


def test_a_name_too_long_for_its_field_is_malformed() -> None:
    with pytest.raises(MalformedRecord):
        encode(GroupRecord(group_id="g" * 32768, value=None))


names = st.text(max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
members = st.builds(
    StoredMember,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    session_timeout_ms=int32,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)
groups = st.builds(
    StoredGroup,
    protocol_type=names,
    generation=int32,
    protocol=st.none() | names,
    leader=st.none() | names,
    state_timestamp_ms=int64,
    members=st.lists(members, max_size=3).map(tuple),
)
committed_offsets = st.builds(
    CommittedOffset,
    offset=int64,
    leader_epoch=int32,
    metadata=names,
    commit_timestamp_ms=int64,
    timestamp_ms=int64,
)
any_record = st.builds(GroupRecord, group_id=names, value=st.none() | groups) | st.builds(
    OffsetRecord, group_id=names, topic=names, partition=int32, value=st.none() | committed_offsets
)


@settings(database=None)
@given(any_record, st.sampled_from([3, 4]))
def test_a_written_record_is_read_as_the_same_record(
    record: CoordinatorRecord, version: int
) -> None:
    assert decode(*encode(record, version)) == record


@settings(database=None)
@given(st.binary(max_size=30), st.none() | st.binary(max_size=60))
def test_any_bytes_are_a_record_or_malformed(key: bytes, value: bytes | None) -> None:
    with contextlib.suppress(MalformedRecord):
        decode(key, value)
