"""The lineage of partitions as rows: what ``lineage.parquet`` and the DataFrame have."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final, TypeAlias

import pyarrow as pa

from fencepost.pipeline.audit.lineage.model import (
    PartitionLineage,
    SideLineage,
    SidePair,
    SingleRange,
)
from fencepost.pipeline.datasource.schemas import Place

LINEAGE_SCHEMA: Final = pa.schema(
    (
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("kind", pa.string()),  # a `RowKind`
        ("place", pa.string()),  # a `Place`
        ("broker", pa.int32()),  # null in the tier
        ("other_place", pa.string()),
        ("other_broker", pa.int32()),
        ("epoch", pa.int32()),
        ("other_epoch", pa.int32()),
        ("offset", pa.int64()),
        ("end_offset", pa.int64()),  # exclusive
        ("batches", pa.int64()),
        ("records", pa.int64()),
        ("high_watermark", pa.int64()),
        ("leads", pa.bool_()),
        ("relation", pa.string()),  # a `Relation`
        ("committed_end", pa.int64()),  # exclusive
        ("committed_by", pa.int32()),
        ("acknowledged", pa.int64()),
        ("ancestor_epoch", pa.int32()),
        ("ancestor_end", pa.int64()),  # exclusive
        ("parts_at", pa.int64()),
        ("converges_at", pa.int64()),
        ("truncates_to", pa.int64()),  # exclusive end of what remains
        ("truncated_records", pa.int64()),
        ("asked_epoch", pa.int32()),
        ("answered_epoch", pa.int32()),
        ("answered_end", pa.int64()),  # exclusive
    )
)
"""docs/audit.md says what each column is, and which kind of row has it."""


class RowKind(StrEnum):
    """What a row is about."""

    SIDE = "side"
    """A replica, or the tier."""
    RANGE = "range"
    """Offsets of one leader epoch that a side has."""
    PAIR = "pair"
    """One side compared with another."""
    SINGLE = "single"
    """Offsets that one side has and the other has not."""


_Row: TypeAlias = dict[str, Any]


def lineage_table(
    lineages: Iterable[tuple[str, int, Iterable[PartitionLineage]]],
) -> pa.Table:
    """The rows of some partitions, in their order.

    :param lineages: With the topic and the index of the partition.
    :returns: `LINEAGE_SCHEMA`.
    """
    rows = [
        {"topic": topic, "partition": partition, "topic_id": lineage.topic_id, **row}
        for topic, partition, each in lineages
        for lineage in each
        for row in _rows(lineage)
    ]
    return pa.Table.from_pylist(rows, schema=LINEAGE_SCHEMA)


def _rows(lineage: PartitionLineage) -> Iterator[_Row]:
    for side in lineage.sides:
        yield from _side_rows(side)
    for pair in lineage.pairs:
        where = {**_side(pair.broker), **_side(pair.other, "other_")}
        yield {"kind": RowKind.PAIR, **where, **_pair_row(pair)}
        for single in pair.single:
            yield {"kind": RowKind.SINGLE, **where, **_single_row(single)}


def _side(broker: int | None, prefix: str = "") -> _Row:
    place = Place.TIER if broker is None else Place.LOG
    return {f"{prefix}place": place, f"{prefix}broker": broker}


def _side_rows(side: SideLineage) -> Iterator[_Row]:
    yield {
        "kind": RowKind.SIDE,
        **_side(side.broker),
        "epoch": side.newest_epoch,
        "offset": side.start,
        "end_offset": side.end,
        "batches": sum(run.batches for run in side.runs),
        "records": side.records,
        "high_watermark": side.high_watermark,
        "leads": side.leads,
    }
    for run in side.runs:
        yield {
            "kind": RowKind.RANGE,
            **_side(side.broker),
            "epoch": run.epoch,
            "offset": run.start,
            "end_offset": run.end,
            "batches": run.batches,
            "records": run.records,
        }


def _pair_row(pair: SidePair) -> _Row:
    row: _Row = {}
    if pair.ancestor is not None:
        row |= {"ancestor_epoch": pair.ancestor.epoch, "ancestor_end": pair.ancestor.end}
    if pair.parting is not None:
        row |= {
            "parts_at": pair.parting.offset,
            "converges_at": pair.parting.converges_at,
            "epoch": pair.parting.epoch,
            "other_epoch": pair.parting.other_epoch,
        }
    if pair.truncation is not None:
        row |= {
            "truncates_to": pair.truncation.offset,
            "truncated_records": pair.truncation.records,
        }
    if pair.answer is not None:
        row |= {
            "asked_epoch": pair.answer.asked_epoch,
            "answered_epoch": pair.answer.epoch,
            "answered_end": pair.answer.end_offset,
        }
    return row


def _single_row(single: SingleRange) -> _Row:
    return {
        "relation": single.relation,
        "epoch": single.epoch,
        "offset": single.start,
        "end_offset": single.end,
        "batches": single.batches,
        "records": single.records,
        "committed_end": single.committed_end,
        "committed_by": single.committed_by,
        "acknowledged": single.acknowledged,
    }
