"""What is kept of a segment has a format with a number, and another number where it is another one.

Digests are of the schemas, and of what a scan makes of a log that is always the same. So it shows
where a state that an earlier version has written would be read as what it is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa

from fencepost.pipeline.audit.condensed.segment_folds import SegmentFolds
from fencepost.pipeline.audit.condensed.window_rows import WindowPlan
from fencepost.pipeline.audit.condensed.window_scan import scan_windows
from fencepost.pipeline.audit.state.kept_segments import KEPT, KeptSegment, keep_rows
from fencepost.pipeline.audit.state.run_tables import FORMAT
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segment_stamps import SegmentStamp
from fencepost.storage.formats.checkpoints import encode_snapshot
from fencepost.storage.formats.indexes import encode_transactions
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry
from fencepost.storage.log.transactions import AbortedTransaction
from tests.harness.records import TIMESTAMP
from tests.harness.records import batch as batch_of
from tests.pipeline.datasource.segments import write

DIGESTS: Final = {1: "7db990f3be72dd85", 2: "dc7d534466c72ca8"}
"""Of each format. Where that of the newest one changes, raise `FORMAT`, and add the digest here."""
BASE: Final = 1000
PRODUCERS: Final = 3
BATCHES: Final = 200


def batches() -> Iterator[bytes]:
    """Of producers that repeat and leave out sequence numbers, commit, abort and change epoch."""
    offset, sequences = BASE, [0] * PRODUCERS
    for number in range(BATCHES):
        producer, turn = number % PRODUCERS, number // PRODUCERS
        epoch = turn // 50
        if producer and turn % 7 == 6:
            kind, of_it = turn % 2, (producer, epoch, -1)
            record = (TIMESTAMP + number, bytes((0, 0, 0, kind)), bytes(6))
            made = batch_of(
                record,
                base_offset=offset,
                leader_epoch=number // 80,
                producer=of_it,
                transactional=True,
                control=True,
            )
            count = 1
        else:
            count = 1 + turn % 4
            sequence = sequences[producer] + (number == 40) - (number == 100)
            made = batch_of(
                *[b"value"] * count,
                base_offset=offset,
                timestamp=TIMESTAMP + number,
                leader_epoch=number // 80,
                producer=(producer, epoch, sequence),
                transactional=producer > 0,
            )
            sequences[producer] = sequence + count
        if number == 150:
            made[-1] ^= 255
        yield bytes(made)
        offset += count + (number == 170)


def kept(folder: Path) -> pa.Table:
    """What is kept of a segment of them, with two snapshots and a transaction index."""
    files = write(folder, [*batches()], base_offset=BASE).files
    snapshots = [folder / f"{BASE + more:020d}.snapshot" for more in (50, 100)]
    index = folder / f"{BASE:020d}.txnindex"
    last = BatchMetadata(9, BASE + 40, 2, TIMESTAMP)
    entry = ProducerStateEntry(
        producer_id=1,
        producer_epoch=0,
        last_timestamp=TIMESTAMP,
        coordinator_epoch=-1,
        txn_first_offset=BASE + 30,
        batches=(last,),
    )
    for each in snapshots:
        each.write_bytes(encode_snapshot([entry]))
    index.write_bytes(encode_transactions([AbortedTransaction(1, BASE, BASE + 42, BASE)]))
    files = replace(
        files,
        snapshots=tuple(map(str, snapshots)),
        transaction_index=str(index),
        stamp=SegmentStamp.of([("a", 1, 2), ("b", 3, "etag")]),
    )
    plan = WindowPlan(width=64, cuts=(BASE, BASE + 70, BASE + 333), end=BASE + 600)
    rows = scan_windows(files, plan, checks=Checks.RECORDS)
    return pa.Table.from_batches(keep_rows(files, plan, Checks.RECORDS, rows), KEPT)


def in_order(value: object) -> object:
    """The same with all lists sorted: some are of sets."""
    match value:
        case dict():
            return {key: in_order(each) for key, each in sorted(value.items())}
        case list():
            return sorted(map(in_order, value), key=msgspec.json.encode)
    return value


def content(folder: Path) -> list[dict[str, Any]]:
    """The rows; what is JSON in them is decoded."""
    rows: list[dict[str, Any]] = kept(folder).to_pylist()
    for row in rows:
        for name in ("folds", "summary"):
            if row[name] is not None:
                row[name] = in_order(msgspec.json.decode(row[name]))
        if row["log"] is not None:
            row["log"] = Path(row["log"]).name
        row["content"] = None if row["content"] is None else row["content"].hex()
    return rows


def shape(kind: object) -> object:
    """The fields of a class, of classes in it too; the values of an enumeration."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [each.value for each in kind]
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return {name: shape(each) for name, each in get_type_hints(kind).items()}
    origin = get_origin(kind) or kind
    is_union = origin in (Union, UnionType)
    name = "union" if is_union else getattr(origin, "__name__", str(kind))
    return [name, *map(shape, get_args(kind))]


def test_another_format_has_another_number(tmp_path: Path) -> None:
    found = [
        [(each.name, str(each.type)) for each in KEPT],
        shape(KeptSegment),
        shape(SegmentFolds),
        content(tmp_path),
    ]
    digest = hashlib.sha256(msgspec.json.encode(found)).hexdigest()[:16]
    assert max(DIGESTS) == FORMAT
    assert DIGESTS[FORMAT] == digest, "raise FORMAT, and add the digest to DIGESTS"


def test_the_log_has_all_that_is_folded(tmp_path: Path) -> None:
    rows = kept(tmp_path).to_pylist()
    assert len(rows) > 10
    assert sum(row["batches"] is not None for row in rows) > 5
    (folds,) = (msgspec.json.decode(row["folds"]) for row in rows if row["folds"] is not None)
    assert folds["sequences"]["findings"]
    assert folds["transactions"]["producers"]
    assert folds["index"]["findings"]
    assert folds["snapshots"]["findings"]
    assert any(row["problem"] == "crc" for row in rows)
