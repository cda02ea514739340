"""The lineage as rows, and as lines for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow.compute as pc

from fencepost.pipeline.audit.lineage.description import MAX_RANGES, MAX_RUNS, describe
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA, RowKind, lineage_table
from tests.pipeline.audit.lineage.lineages import lineages, written
from tests.pipeline.audit.log_rows import copied, in_tier, replica


def parted() -> tuple[PartitionLineage, ...]:
    """Broker 2 was elected uncleanly when it had 0 to 5; the tier has the older epoch."""
    rows = written(1, (0, 0, 15)) + written(2, (0, 0, 6), (1, 6, 30))
    rows += in_tier("a", *written(1, (0, 0, 10)))
    return lineages(
        rows,
        replica(1, high_watermark=12),
        replica(2, high_watermark=30, epochs=((0, 0), (1, 6))),
        tier=[copied("a", 0, 9)],
    )


def row(kind: RowKind, **where: object) -> dict[str, object]:
    """The one row of a kind; without what is null in it."""
    table = lineage_table([("orders", 3, parted())])
    (found,) = (
        each for each in table.to_pylist() if each["kind"] == kind and where.items() <= each.items()
    )
    assert (found["topic"], found["partition"], found["topic_id"]) == ("orders", 3, "a")
    return {
        name: value
        for name, value in found.items()
        if value is not None and name not in {"topic", "partition", "topic_id", "kind", *where}
    }


def test_every_kind_of_row_says_what_it_is_about() -> None:
    table = lineage_table([("orders", 3, parted())])
    assert table.schema == LINEAGE_SCHEMA
    assert Counter(table["kind"].to_pylist()) == {"side": 3, "range": 4, "pair": 6, "single": 6}
    assert row(RowKind.SIDE, broker=2) == {
        "place": "log",
        "epoch": 1,
        "offset": 0,
        "end_offset": 30,
        "batches": 30,
        "records": 30,
        "high_watermark": 30,
        "leads": True,
    }
    assert row(RowKind.RANGE, place="tier") == {
        "epoch": 0,
        "offset": 0,
        "end_offset": 10,
        "batches": 10,
        "records": 10,
    }
    assert row(RowKind.PAIR, broker=1, other_broker=2) == {
        "place": "log",
        "other_place": "log",
        "epoch": 0,
        "other_epoch": 1,
        "ancestor_epoch": 0,
        "ancestor_end": 6,
        "parts_at": 6,
        "truncates_to": 6,
        "truncated_records": 9,
        "asked_epoch": 1,
        "answered_epoch": 0,
        "answered_end": 15,
    }
    assert row(RowKind.SINGLE, broker=1, other_broker=2) == {
        "place": "log",
        "other_place": "log",
        "relation": "diverging",
        "epoch": 0,
        "offset": 6,
        "end_offset": 15,
        "batches": 9,
        "records": 9,
        "committed_end": 12,
        "committed_by": 1,
    }
    assert row(RowKind.SINGLE, place="tier", other_broker=2) == {
        "other_place": "log",
        "relation": "diverging",
        "epoch": 0,
        "offset": 6,
        "end_offset": 10,
        "batches": 4,
        "records": 4,
        "committed_end": 10,
    }


def test_the_table_of_nothing_has_its_columns() -> None:
    assert lineage_table([]).schema == LINEAGE_SCHEMA
    assert lineage_table([("orders", 0, ())]).num_rows == 0


def test_people_are_told_who_parts_where_and_what_is_lost() -> None:
    (lineage,) = parted()
    assert list(describe(lineage)) == [
        "broker 1: epoch 0 from 0 to 14; high watermark 12",
        "broker 2: epoch 0 from 0 to 5, epoch 1 from 6 to 29; leads; high watermark 30",
        "the tier: epoch 0 from 0 to 9",
        (
            "broker 1 (epoch 0) and broker 2 (epoch 1) part at offset 6; their common ancestor"
            " is offset 5 of epoch 0"
        ),
        (
            "broker 2 (epoch 1) and the tier (epoch 0) part at offset 6; the tier has the same"
            " lineage up to offset 5 of epoch 0"
        ),
        (
            "broker 1 alone has offsets 6 to 14, which broker 2 does not have: 9 records of epoch"
            " 0, committed up to offset 11 by broker 1"
        ),
        (
            "broker 2 alone has offsets 6 to 29, which broker 1 does not have: 24 records of epoch"
            " 1, committed by broker 2"
        ),
        (
            "broker 2 alone has offsets 6 to 9, which the tier does not have: 4 records of epoch"
            " 1, committed by broker 2"
        ),
        (
            "broker 2 alone has offsets 10 to 29, beyond the end of the tier: 20 records of epoch"
            " 1, committed by broker 2"
        ),
        (
            "the tier alone has offsets 6 to 9, which broker 2 does not have: 4 records of epoch"
            " 0, committed by the tier"
        ),
        "broker 1 would truncate to 6 as follower of broker 2, and lose 9 records",
        "broker 2 answers OffsetForLeaderEpoch of epoch 0: epoch 0 ends at 6",
    ]


def test_what_is_left_out_is_counted() -> None:
    rows = written(1, *((epoch, epoch, epoch + 1) for epoch in range(20)))
    rows += written(2, *((epoch, epoch, epoch + 1) for epoch in range(0, 20, 2)))
    (lineage,) = lineages(rows, replica(1), replica(2))
    text = "\n".join(describe(replace(lineage, sides=lineage.sides[:1])))
    assert f"broker 1: {20 - MAX_RUNS} ranges before, epoch {20 - MAX_RUNS} from" in text
    assert f"broker 1 alone has {10 - MAX_RANGES} ranges more" in text
    assert "OffsetForLeaderEpoch" not in text, "they do not part"
    (lineage,) = lineages([], replica(1), replica(2, epochs=None))
    assert list(describe(lineage)) == ["broker 1: no batch; leads", "broker 2: no batch"]


def test_who_agrees_again_or_knows_no_epoch_is_told_so() -> None:
    other = written(2, (0, 0, 10))
    other[4] |= {"crc": 7}
    (lineage,) = lineages([*written(1, (0, 0, 10)), *other])
    assert (
        "broker 1 (epoch 0) and broker 2 (epoch 0) part at offset 4; their common ancestor is"
        " offset 3 of epoch 0; from offset 5 on they agree again"
    ) in list(describe(lineage))
    pairs = lineage_table([("orders", 3, (lineage,))]).filter(pc.field("kind") == RowKind.PAIR)
    assert pairs["parts_at"].to_pylist() == [4, 4]
    assert pairs["converges_at"].to_pylist() == [5, 5]
    (lineage,) = lineages(written(1, (1, 50, 60)) + written(2, (2, 40, 70)))
    assert (
        "broker 1 (knows no epoch there) and broker 2 (epoch 2) part at offset 40; they have no"
        " common ancestor"
    ) in list(describe(lineage))
