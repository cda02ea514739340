"""A real Kafka's metadata log, written here: records, batches of them, segments and snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID

from fencepost.protocol.codec.writer import compile_writer, uvarint
from fencepost.protocol.framed_records import FRAME, RecordTypes
from fencepost.protocol.metadata_records import (
    METADATA_RECORDS,
    TOPIC_RESOURCE,
    ConfigRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.harness import records

TIME: Final = 1_700_000_000_000
"""Of the record at offset 0, in ms; each is a second later than the one before."""
TOPIC_ID: Final = UUID("11111111-2222-3333-4444-555555555555")
_FOOTER: Final = b"\x00\x00\x00\x04"
"""The key of a snapshot's last record: version 0, type 4."""


def value(
    record: object, version: int | None = None, types: RecordTypes = METADATA_RECORDS
) -> bytes:
    """A record as a value of the log.

    :param version: None for the newest.
    """
    kind, layout = next(
        (kind, layout) for kind, layout in types.layouts.items() if isinstance(record, layout.cls)
    )
    number = layout.newest if version is None else version
    out = bytearray(uvarint(FRAME) + uvarint(kind) + uvarint(number))
    compile_writer(layout.schema(number))(out, record)
    return bytes(out)


def batch(base_offset: int, *values: object, epoch: int = 1) -> bytes:
    """A batch of records, or of values as they are."""
    rows = [
        (
            TIME + 1000 * (base_offset + place),
            None,
            each if isinstance(each, bytes) else value(each),
        )
        for place, each in enumerate(values)
    ]
    return bytes(records.batch(*rows, base_offset=base_offset, leader_epoch=epoch))


def batches(base_offset: int, *values: object) -> bytes:
    """A batch for each."""
    return b"".join(batch(base_offset + place, each) for place, each in enumerate(values))


def control_batch(base_offset: int, key: bytes = b"\x00\x00\x00\x02", *, epoch: int = 1) -> bytes:
    """A batch of the log's own, such as of a new leader of the controllers."""
    row = (TIME, key, b"\x00\x00")
    return bytes(records.batch(row, base_offset=base_offset, leader_epoch=epoch, control=True))


def snapshot(*values: object) -> bytes:
    """The state that a snapshot holds."""
    end = len(values)
    return (batch(0, *values) if values else b"") + control_batch(end, _FOOTER)


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def snapshot_name(end: int, epoch: int = 1) -> str:
    return f"{end:020d}-{epoch:010d}.checkpoint"


def node(folder: Path, number: int, **files: bytes) -> Path:
    """The log directory of a node, which has only its copy of the metadata log.

    :param files: ``log_N`` is the segment that begins at offset N, ``snapshot_N`` the snapshot of
        what is before it.
    """
    log = folder / str(number) / "__cluster_metadata-0"
    log.mkdir(parents=True)
    about = f"version=1\nnode.id={number}\ncluster.id=c\n"
    (log.parent / "meta.properties").write_text(about)
    for name, data in files.items():
        (log / file_name(name)).write_bytes(data)
    return log


def file_name(short: str) -> str:
    """That of ``log_N`` or ``snapshot_N``."""
    kind, _, offset = short.partition("_")
    return (segment_name if kind == "log" else snapshot_name)(int(offset))


def config(topic: str, name: str, text: str | None) -> ConfigRecord:
    return ConfigRecord(TOPIC_RESOURCE, topic, name, text)


def topic(name: str = "t", topic_id: UUID = TOPIC_ID) -> TopicRecord:
    return TopicRecord(name, topic_id)


def partition(*replicas: int, topic_id: UUID = TOPIC_ID, **fields: object) -> PartitionRecord:
    """Partition 0, all of whose replicas are in sync; the first leads."""
    known = {"isr": replicas, "leader": replicas[0], "leader_epoch": 0, "partition_epoch": 0}
    return PartitionRecord(0, topic_id, replicas, **{**known, **fields})  # type: ignore[arg-type]  # fields by name
