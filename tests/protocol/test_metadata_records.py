"""The records of a metadata log: their bytes, and bytes that are none."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from fencepost.protocol import metadata_records as kraft
from fencepost.protocol.framed_records import MalformedValue, RecordLayout
from fencepost.protocol.metadata_records import LAYOUTS, METADATA_RECORDS
from tests.harness.metadata_logs import value

ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
SOME: dict[str, Any] = {
    "int8": 1,
    "int16": -2,
    "uint16": 65_535,
    "int32": -(2**31),
    "int64": 2**62,
    "bool": True,
    "uuid": ID,
    "string": "größe",
}
"""A value of each wire type."""


def some(layout: RecordLayout, version: int) -> object:
    """A record in which every field is something else than its default."""
    values = {}
    for f in layout.fields:
        if f.since <= version:
            one = SOME[f.kind] if f.kind is not None else some(f.struct, version)  # type: ignore[arg-type]  # fields by name
            values[f.name] = (one, one) if f.array else one
    return layout.cls(**values)


@pytest.mark.parametrize(
    ("layout", "version"),
    [(layout, v) for layout in LAYOUTS.values() for v in range(layout.newest + 1)],
    ids=lambda each: each.cls.__name__ if isinstance(each, RecordLayout) else str(each),
)
def test_every_field_of_every_version_comes_back(layout: RecordLayout, version: int) -> None:
    record = some(layout, version)
    data = value(record, version)
    assert METADATA_RECORDS.decode(data) == record
    assert set(layout.cls.__struct_fields__) == {f.name for f in layout.fields}
    for end in range(len(data)):
        with pytest.raises(MalformedValue):
            METADATA_RECORDS.decode(data[:end])


def test_the_bytes_of_a_change_of_a_partition() -> None:
    data = bytes.fromhex(
        "01 05 02"  # frame, type, version
        "00000007" + ID.hex + "03"  # partition, topic, tagged fields
        "00 05 02 00000003"  # ISR: one broker
        "01 04 00000003"  # leader
        "05 01 01"  # recovery state
    )
    record = METADATA_RECORDS.decode(data)
    assert record == kraft.PartitionChangeRecord(
        7, ID, isr=(3,), leader=3, leader_recovery_state=kraft.RECOVERING
    )


def test_the_bytes_of_a_partition() -> None:
    data = bytes.fromhex(
        "01 03 01 00000000"
        + ID.hex  # version 1, partition, topic
        + "03 00000001 00000002"  # replicas
        "02 00000001 01 01"  # ISR, removing, adding
        "00000001 00000004 00000005"  # leader, leader epoch, partition epoch
        "02" + ID.hex + "00"  # directories, tagged fields
    )
    assert METADATA_RECORDS.decode(data) == kraft.PartitionRecord(
        0, ID, (1, 2), (1,), leader=1, leader_epoch=4, partition_epoch=5, directories=(ID,)
    )


def test_records_of_other_types_are_passed_over() -> None:
    assert METADATA_RECORDS.decode(b"\x01\x14\x00\x00") is None
    assert METADATA_RECORDS.decode(b"\x01\xff\x01\x63") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x02\x02\x00", "a frame of version 2, not 1"),
        (b"\x01\x02\x01\x02t" + ID.bytes + b"\x00", "a TopicRecord of version 1, and 0 is the"),
        (b"\x01\x02\x00\xff\xff\xff\xff\x0ft", "not a record of this log"),
        (b"\x01\x02\x00\x02\xff" + ID.bytes + b"\x00", "not a record of this log"),
        (b"", "not a record of this log"),
    ],
)
def test_what_is_no_record(data: bytes, why: str) -> None:
    with pytest.raises(MalformedValue, match=why):
        METADATA_RECORDS.decode(data)
