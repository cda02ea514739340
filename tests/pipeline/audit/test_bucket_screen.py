"""What arrays of a bucket prove is what the rules find, and they prove it of what is in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.pipeline.audit import spark_task
from fencepost.pipeline.audit.bucket_screen import BucketScreen
from fencepost.pipeline.audit.condensed.refinement import ReadWindow
from fencepost.pipeline.audit.condensed.segment_folds import files_beside, folds_of, to_json
from fencepost.pipeline.audit.condensed.window_rows import (
    WINDOWS,
    WindowCondenser,
    WindowPlan,
    widened,
)
from fencepost.pipeline.audit.rule import (
    AbsentReplica,
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    TopicPartition,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.audit.spark_task import check_partitions, partition_evidence
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.storage.formats.checkpoints import encode_snapshot
from fencepost.storage.formats.file_names import FileKind
from tests.pipeline.audit.log_rows import Row, batch, copied, replica

LOG_RULES: Final = tuple(rule for rule in RULES.values() if not rule.needs_trace)
NOW_MS: Final = 1_700_000_000_000
EMPTY: Final = encode_snapshot(())
OF_SEGMENT: Final = ("topic", "partition", "place", "broker", "segment", "segment_id")


def log(
    broker: int, segments: list[list[int]], epochs: list[int]
) -> tuple[list[Row], ReplicaMetadata]:
    """A log in order: of each segment how many offsets each batch has, and of each its epoch."""
    rows: list[Row] = []
    starts: dict[int, int] = {}
    bases, end = [], 0
    for sizes, epoch in zip(segments, sorted(epochs), strict=True):
        bases.append(end)
        starts.setdefault(epoch, end)
        for size in sizes:
            own = {"segment": bases[-1], "broker": broker}
            rows.append(batch(end, end + size - 1, epoch, **own))
            end += size
    snapshots = {*bases[1:], end} if rows else set(bases[1:])
    rows += [
        {
            "place": "log",
            "broker": broker,
            "segment": max(b for b in bases if b <= offset),
            "file": f"{offset:020d}.snapshot",
            "content": EMPTY,
        }
        for offset in snapshots
    ]
    known = replica(
        broker,
        segments=tuple(bases),
        epochs=tuple(starts.items()),
        high_watermark=end,
        recovery_point=end,
        log_start=0,
        snapshots=tuple(sorted(snapshots)),
    )
    return rows, known


CELLS: Final = {
    "base_offset": st.sampled_from([0, 1, 2, 7, 2**40, None]),
    "last_offset": st.sampled_from([0, 1, 2, 9, 2**40]),
    "epoch": st.sampled_from([-1, 0, 1, 3]),
    "attributes": st.sampled_from([0x10, 0x20, 0x30, 0x40]),
    "producer_id": st.sampled_from([0, 5]),
    "base_sequence": st.sampled_from([0, 4]),
    "count": st.sampled_from([0, 1]),
    "crc": st.just(99),
    "size": st.just(1),
    "problem": st.sampled_from(["crc", "structure", "trailing", "missing", "offset-index"]),
    "message": st.just("00000000000000000000.log is not there"),
    "segment": st.sampled_from([0, 1, 5]),
    "broker": st.sampled_from([1, 2, 3]),
    "place": st.just("tier"),
    "marker": st.sampled_from(["abort", "commit"]),
    "content": st.sampled_from([b"", EMPTY, EMPTY[:-1], b"\0\1" + bytes(8), None]),
    "file": st.sampled_from(["00000000000000000000.txnindex", "00000000000000000003.snapshot"]),
}
OF_REPLICA: Final[dict[str, st.SearchStrategy[object]]] = {
    "clean": st.just(False),
    "segments": st.sampled_from([(), (0,), (1,), (0, 5), (5, 0), (0, 0)]),
    "epochs": st.sampled_from(
        [None, (), ((0, 3),), ((0, 0), (1, 1)), ((1, 0), (0, 2)), ((9, 99),)]
    ),
    "high_watermark": st.sampled_from([None, 0, 99]),
    "recovery_point": st.sampled_from([None, 0, 99]),
    "log_start": st.sampled_from([None, 1, 99]),
    "topic_id": st.sampled_from([None, "b"]),
    "leftovers": st.just(("00000000000000000000.log.deleted",)),
    "replaced": st.just(((0, 2),)),
    "snapshots": st.sampled_from([None, (), (0,), (1, 99)]),
}
OF_PARTITION: Final[dict[str, st.SearchStrategy[object]]] = {
    "tier": st.just((copied("x", 0, 1),)),
    "with_tier": st.just(True),
    "compacted": st.just(True),
    "tiered": st.sampled_from([True, False]),
    "unreadable": st.just(("x: makes no sense",)),
    "absent": st.just((AbsentReplica(broker=9, end=5),)),
}


SEQUENCES: Final = st.lists(st.sampled_from([0, 1, 2, 3, 9]), min_size=60, max_size=60)


def produced(row: Row, sequence: int) -> Row:
    """The batch as an idempotent producer's; a file as it is."""
    if "file" in row:
        return row
    return {**row, "producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[Row], PartitionMetadata]:
    """A partition in order, of which up to three things are changed."""
    segments = draw(st.lists(st.lists(st.integers(1, 3), max_size=5), min_size=1, max_size=3))
    # A segment behind which others come has a batch.
    segments = [sizes or [1] for sizes in segments[:-1]] + segments[-1:]
    epochs = draw(st.lists(st.integers(0, 2), min_size=len(segments), max_size=len(segments)))
    logs = [log(broker, segments, epochs) for broker in range(1, draw(st.integers(1, 2)) + 1)]
    rows = [row for own, _ in logs for row in own]
    replicas = [known for _, known in logs]
    known = PartitionMetadata(with_objects=False)
    for _ in range(draw(st.integers(0, 3))):
        what = ["cell", "row", "producer", "replica", "replicas", "partition"]
        match draw(st.sampled_from(what)):
            case "cell" if rows:
                name = draw(st.sampled_from(sorted(CELLS)))
                number = draw(st.integers(0, len(rows) - 1))
                changed = {**rows[number], name: draw(CELLS[name])}
                # A row is a batch or a file, and never both.
                if changed.get("file") is None or changed.get("base_offset") is None:
                    rows[number] = changed
            case "row" if rows:
                number = draw(st.integers(0, len(rows) - 1))
                rows = draw(st.sampled_from([rows[:number] + rows[number + 1 :], rows + rows[:1]]))
            case "producer" if rows:
                first = draw(st.integers(0, len(rows) - 1))
                behind = draw(st.integers(first, len(rows)))
                rows[first:behind] = map(produced, rows[first:behind], draw(SEQUENCES))
            case "replica" if replicas:
                name = draw(st.sampled_from(sorted(OF_REPLICA)))
                replicas[0] = replace(replicas[0], **{name: draw(OF_REPLICA[name])})  # type: ignore[arg-type]  # as the table says
            case "replicas":
                replicas = draw(st.sampled_from([replicas[1:], replicas + replicas[:1]]))
            case "partition":
                name = draw(st.sampled_from(sorted(OF_PARTITION)))
                known = replace(known, **{name: draw(OF_PARTITION[name])})  # type: ignore[arg-type]  # likewise
    return rows, replace(known, replicas=tuple(replicas))


def bucket(
    found: list[tuple[list[Row], PartitionMetadata]],
) -> tuple[pa.Table, dict[TopicPartition, PartitionMetadata]]:
    rows = [
        {**row, "topic": "t", "partition": number}
        for number, (own, _) in enumerate(found)
        for row in own
    ]
    return pa.Table.from_pylist(rows, BATCHES), {
        ("t", number): known for number, (_, known) in enumerate(found)
    }


def condensed(rows: pa.Table, width: int, *, of_all: bool = True) -> pa.Table:
    """The rows as windows of so many offsets, and their folds.

    :param of_all: Whether of all segments, or of every other.
    """
    tables = [WINDOWS.empty_table()]
    segments: dict[tuple[object, ...], list[Row]] = {}
    for row in rows.to_pylist():
        segments.setdefault(tuple(row[name] for name in OF_SEGMENT), []).append(row)
    for number, (key, own) in enumerate(segments.items()):
        table = pa.Table.from_pylist(own, BATCHES)
        if not of_all and number % 2:
            tables.append(widened(table))
            continue
        base = own[0]["segment"] or 0
        assert isinstance(base, int)
        beside = table.filter(pc.is_valid(table["file"]))
        names = beside["file"].to_pylist()
        contents = pc.fill_null(beside["content"], b"").to_pylist()
        snapshots = files_beside(names, contents, FileKind.PRODUCER_SNAPSHOT, base)
        index = files_beside(names, contents, FileKind.TRANSACTION_INDEX, base).get(base, b"")
        condenser = WindowCondenser("log", WindowPlan(width=width), min_rows=1)
        tables += [*condenser.add(table), *condenser.finish()]
        fold: Row = dict(zip(OF_SEGMENT, key, strict=True))
        fold["folds"] = to_json(folds_of(table, base, snapshots, index))
        tables.append(pa.Table.from_pylist([fold], WINDOWS))
    return pa.concat_tables(tables)


def reader(rows: pa.Table) -> ReadWindow:
    """Reads the batches of windows among all rows."""
    found = rows.to_pylist()

    def read(window: Row) -> pa.Table:
        start, size = window["position"], window["size"]
        assert isinstance(start, int)
        assert isinstance(size, int)
        inside = [
            row
            for row in found
            if all(row[name] == window[name] for name in OF_SEGMENT)
            and row["position"] is not None
            and start <= row["position"] < start + size
        ]
        return widened(pa.Table.from_pylist(inside, BATCHES))

    return read


@settings(max_examples=150, deadline=None)
@given(
    found=st.lists(partitions(), max_size=4),
    width=st.sampled_from([None, 2, 4, 64]),
    of_all=st.booleans(),
)
def test_a_partition_is_judged_in_its_bucket_as_it_is_alone(
    found: list[tuple[list[Row], PartitionMetadata]],
    width: int | None,
    of_all: bool,
) -> None:
    rows, metadata = bucket(found)
    read = reader(rows)
    if width is not None:
        rows = condensed(rows, width, of_all=of_all)
    together = list(check_partitions(rows, None, metadata, now_ms=NOW_MS, read=read))
    alone = [
        spark_task._check_partition(evidence, LOG_RULES, (), None, ())
        for evidence, _ in partition_evidence(rows, None, metadata, now_ms=NOW_MS, read=read)
    ]
    for one, other in zip(together, alone, strict=True):
        assert one.violations == other.violations
        # A traceback names the line that called the rule.
        assert [each.rule for each in one.summary.failures] == [
            each.rule for each in other.summary.failures
        ]
        assert replace(one.summary, failures=()) == replace(other.summary, failures=())


@pytest.mark.parametrize("width", [None, 64])
def test_no_rule_runs_where_all_is_in_order(
    monkeypatch: pytest.MonkeyPatch, width: int | None
) -> None:
    def refuse(_: PartitionEvidence) -> list[Violation]:
        raise AssertionError("a rule was run")

    refusing = {rule.name: replace(rule, check=refuse) for rule in LOG_RULES}  # type: ignore[arg-type]  # it never returns
    monkeypatch.setattr(spark_task, "RULES", refusing)
    own, known = log(1, [[2, 3], [1], [4, 1, 1]], [0, 0, 2])
    rows, metadata = bucket([(own, PartitionMetadata(replicas=(known,)))] * 3)
    if width is not None:
        rows = condensed(rows, width)
        assert rows.num_rows - rows["batches"].null_count == 3
    for result in check_partitions(rows, None, metadata, now_ms=NOW_MS):
        assert result.summary.failures == ()
        assert result.violations == ()
        (inventory,) = result.summary.replicas
        assert (inventory.batches, inventory.records, inventory.bytes) == (6, 12, 1200)


def test_a_producer_within_a_window_is_judged_by_its_folds() -> None:
    own, known = log(1, [[1, 1, 1, 1]], [0])
    sent = {"producer_id": 7, "producer_epoch": 0, "max_timestamp": 0}
    own[1:4] = [
        {**row, **sent, "base_sequence": sequence}
        for row, sequence in zip(own[1:4], (0, 1, 5), strict=True)
    ]
    rows, metadata = bucket([(own, PartitionMetadata(replicas=(known,)))])
    windows = condensed(rows, 64)
    assert pc.max(windows["batches"]).as_py() == 3
    (found,) = check_partitions(windows, None, metadata, now_ms=NOW_MS)
    (whole,) = check_partitions(rows, None, metadata, now_ms=NOW_MS)
    assert "producer-sequences" in {each.rule for each in found.violations}
    assert found.violations == whole.violations
    assert found.summary == whole.summary


@pytest.mark.parametrize("width", [None, 64])
def test_a_number_that_no_array_holds_is_judged_by_the_rules(width: int | None) -> None:
    own, known = log(1, [[2, 1, 1]], [0])
    huge = replace(known, epochs=((0, 2**70),))
    rows, metadata = bucket([(own, PartitionMetadata(replicas=(known,)))] * 2)
    metadata["t", 1] = PartitionMetadata(replicas=(huge,))
    if width is not None:
        rows = condensed(rows, width)
    results = list(check_partitions(rows, None, metadata, now_ms=NOW_MS))
    failed = [[failure.rule for failure in each.summary.failures] for each in results]
    assert failed == [[], ["monotonic-epochs"]]


SCREENS: Final[dict[str, Callable[[BucketScreen], object]]] = {
    rule.name: rule.screen for rule in LOG_RULES if rule.screen is not None
}


def test_every_rule_about_logs_has_a_screen() -> None:
    assert SCREENS.keys() == {rule.name for rule in LOG_RULES}


def test_a_window_of_a_segment_that_was_not_folded_may_have_any_producer() -> None:
    own, known = log(1, [[1, 1, 1, 1]], [0])
    rows, metadata = bucket([(own, PartitionMetadata(replicas=(known,)))])
    found = [each for each, _ in partition_evidence(condensed(rows, 64), None, metadata, now_ms=0)]
    assert BucketScreen.of(found).has_no_producer.tolist() == [True]
    unfolded = BucketScreen.of([replace(each, folds={}) for each in found])
    assert unfolded.is_plain.tolist() == [True]
    assert unfolded.has_no_producer.tolist() == [False]
