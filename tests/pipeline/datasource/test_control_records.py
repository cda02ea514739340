"""The markers among control batches, and the files beside a segment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fencepost.pipeline.datasource.segment_scan import scan_batches
from fencepost.protocol.records import Record, build_batch
from fencepost.protocol.transaction_markers import TransactionMarker, encode_marker
from fencepost.storage.formats.file_names import FileKind, segment_file_name
from tests.pipeline.datasource.segments import write


def marker(offset: int, *, committed: bool, coordinator_epoch: int) -> bytes:
    made = TransactionMarker(
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        transaction_version=0,
    )
    data = encode_marker(made, 1000)
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def data(offset: int) -> bytes:
    return bytes(build_batch([Record(offset, 1000, b"k", b"v")], base_offset=offset))


def control(offset: int, key: bytes, **how: int) -> bytes:
    value = b"\0\0\0\0\0\5"
    record = Record(offset, 1000, key, value)
    return bytes(
        build_batch(
            [record], base_offset=offset, producer_id=7, transactional=True, control=True, **how
        )
    )


def test_the_markers_of_a_segment(tmp_path: Path) -> None:
    written = write(
        tmp_path,
        [
            data(0),
            marker(1, committed=True, coordinator_epoch=3),
            marker(2, committed=False, coordinator_epoch=70_000),
            control(3, b"\0\0\0\1", delete_horizon_ms=100_000),  # as compaction leaves it
            control(4, b"\0\0\0\2"),  # of a type that is no end of a transaction
            data(5),
        ],
    )
    rows = written.rows()
    assert rows["marker"].to_pylist() == [None, "commit", "abort", "commit", None, None]
    assert rows["coordinator_epoch"].to_pylist() == [None, 3, 70_000, 5, None, None]


def test_a_damaged_marker_is_none(tmp_path: Path) -> None:
    broken = bytearray(marker(0, committed=True, coordinator_epoch=3))
    broken[-3] ^= 1
    rows = write(tmp_path, [bytes(broken)]).rows()
    assert (rows["problem"][0].as_py(), rows["marker"][0].as_py()) == ("crc", None)


def test_files_beside_a_segment_have_rows_where_they_are_asked_for(tmp_path: Path) -> None:
    written = write(tmp_path, [data(0)])
    index = tmp_path / segment_file_name(0, FileKind.TRANSACTION_INDEX)
    snapshot = tmp_path / segment_file_name(1, FileKind.PRODUCER_SNAPSHOT)
    gone = tmp_path / segment_file_name(2, FileKind.PRODUCER_SNAPSHOT)
    index.write_bytes(b"aborts")
    snapshot.write_bytes(b"producers")
    files = replace(
        written.files, transaction_index=str(index), snapshots=(str(snapshot), str(gone))
    )
    assert written.rows().num_rows == 1
    beside, batches = scan_batches(files, beside=True)
    assert [(row["file"], row["content"], row["problem"]) for row in beside.to_pylist()] == [
        (snapshot.name, b"producers", None),
        (index.name, b"aborts", None),
    ]
    assert batches["file"].to_pylist() == [None]
