"""Any partition as rows: copies of a log that roll where they like, and what went wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from fencepost.pipeline.audit.batch_arrays import DELETE_HORIZON
from fencepost.pipeline.audit.condensed.segment_folds import FoldBuilder, to_json
from fencepost.pipeline.audit.condensed.window_rows import (
    WINDOWS,
    WindowCondenser,
    plan_windows,
    widened,
)
from fencepost.pipeline.audit.rule import PartitionMetadata, ReplicaMetadata, TierSegment
from fencepost.pipeline.datasource.schemas import BATCHES, TRACED_BATCH, Place
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import marker, sent
from tests.pipeline.audit.summaries import traces

TOPIC: Final = "orders"
_TRACED: Final = tuple(field.name for field in TRACED_BATCH)
_WIDTHS: Final = (1, 3, 8, 20, 64)
_FATES: Final = ("left", "left", "gone", "gone", "fewer", "rewritten")
"""Of a batch that a cleaner has come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A log, or a segment of the tier: its batches by the base offsets of its segments."""

    broker: int | None
    segment_id: str | None
    segments: dict[int, list[Row]]

    @property
    def rows(self) -> list[Row]:
        """All of them, in order."""
        return [row for own in self.segments.values() for row in own]

    @property
    def end(self) -> int:
        """Behind the last record (exclusive)."""
        return max((number(row, "last_offset") for row in self.rows), default=-1) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """All copies, and their metadata."""

    history: list[Row]
    """What was appended, before anything went wrong."""
    copies: list[Copy]
    metadata: PartitionMetadata

    @property
    def rows(self) -> pa.Table:
        """`BATCHES`, each batch in a row."""
        return pa.Table.from_pylist([row for each in self.copies for row in each.rows], BATCHES)


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Sound batches that follow one another; now and then a new leader epoch, or a marker."""
    rows: list[Row] = []
    offset = epoch = 0
    numbers: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 30))):
        epoch += draw(st.sampled_from([0] * 9 + [1]))
        producer = draw(st.sampled_from([-1, 7, 8]))
        if producer > 0 and draw(st.integers(0, 5)) == 0:
            word = draw(st.sampled_from(["abort", "commit"]))
            rows.append({**marker(offset, word, producer), "epoch": epoch, "crc": offset})
            offset += 1
            continue
        last = offset + draw(st.integers(0, 3))
        sequence = numbers.get(producer, 0) if producer > 0 else -1
        row = sent(offset, last, sequence, producer, transactional=producer == 8)
        rows.append({**row, "epoch": epoch, "crc": offset})
        numbers[producer] = sequence + last - offset + 1
        offset = last + 1
    return rows


_Harm: TypeAlias = Callable[[list[Row], int], None]
"""Does something wrong to some rows at a number."""


def _changed(**fields: object) -> _Harm:
    def harm(rows: list[Row], at: int) -> None:
        rows[at] = {**rows[at], **fields}

    return harm


def _moved(by: int) -> _Harm:
    def harm(rows: list[Row], at: int) -> None:
        base, last = (number(rows[at], name) for name in ("base_offset", "last_offset"))
        rows[at] = {**rows[at], "base_offset": base + by, "last_offset": last + by}

    return harm


def _diverges(rows: list[Row], at: int) -> None:
    rows[at:] = [{**row, "epoch": 5, "crc": 100 + number} for number, row in enumerate(rows[at:])]


def _gone(rows: list[Row], at: int) -> None:
    del rows[at]


def _cut(rows: list[Row], at: int) -> None:
    del rows[at:]


def _beheaded(rows: list[Row], at: int) -> None:
    del rows[:at]


def _twice(rows: list[Row], at: int) -> None:
    rows.insert(at, dict(rows[at]))


def _again(rows: list[Row], at: int) -> None:
    rows[at:at] = [dict(row) for row in rows[max(at - 4, 0) : at]]


def _swapped(rows: list[Row], at: int) -> None:
    rows[at : at + 2] = rows[at : at + 2][::-1]


HARMS: Final[tuple[_Harm, ...]] = (
    *(_changed(problem=problem, message="so it is") for problem in ("crc", "structure", "records")),
    *(_moved(by) for by in (-5, 2, 50, 2**40)),
    _changed(crc=99),
    _changed(count=0),
    _diverges,
    _gone,
    _cut,
    _beheaded,
    _twice,
    _again,
    _swapped,
)


@st.composite
def harmed(draw: st.DrawFn, rows: Sequence[Row]) -> list[Row]:
    """The same with up to three things wrong."""
    found = list(rows)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        if found:
            draw(st.sampled_from(HARMS))(found, draw(st.integers(0, len(found) - 1)))
    return found


def number(row: Row, name: str) -> int:
    """A column that is a number."""
    found = row[name]
    assert isinstance(found, int)
    return found


@st.composite
def cleaned(draw: st.DrawFn, rows: Sequence[Row]) -> list[Row]:
    """What a cleaner has left that came to one of the batches, and not further."""
    until = draw(st.integers(0, len(rows)))
    found: list[Row] = []
    for row in rows[:until]:
        fate = draw(st.sampled_from(_FATES))
        records, crc = number(row, "count"), number(row, "crc")
        if fate == "fewer":
            left = draw(st.integers(0, records - 1))
            found.append({**row, "count": left, "crc": crc + 1000 + left})
        elif fate == "rewritten":
            horizon = number({"attributes": 0, **row}, "attributes") | DELETE_HORIZON
            found.append({**row, "attributes": horizon, "crc": crc + draw(st.integers(500, 502))})
        elif fate == "left":
            found.append(row)
    return [*found, *rows[until:]]


@st.composite
def copies(draw: st.DrawFn, rows: Sequence[Row], broker: int) -> Copy:
    """A log of these batches, in segments."""
    rolls = sorted(draw(st.sets(st.integers(1, 30), max_size=4)))
    wrong_name = draw(st.sampled_from([0] * 9 + [3]))
    segments: dict[int, list[Row]] = {}
    edges = sorted({0, *(each for each in rolls if each < len(rows)), len(rows)})
    for start, end in pairwise(edges):
        base = number(rows[start], "base_offset")
        if start > 0 and draw(st.booleans()):
            # A segment keeps its name when a cleaner has taken what it began with.
            base = min(base, number(rows[start - 1], "last_offset") + 1)
        name = max(base + wrong_name * (start > 0), 0)
        segments.setdefault(name, []).extend(map(dict, rows[start:end]))
    for name, own in segments.items():
        position = 0
        for row in own:
            row |= {"topic": TOPIC, "partition": 0, "place": "log", "broker": broker}
            row |= {"segment": name, "position": position, "size": 100}
            position += 100 + draw(st.sampled_from([0] * 19 + [7]))
    return Copy(broker=broker, segment_id=None, segments=dict(sorted(segments.items())))


@st.composite
def partitions(draw: st.DrawFn, *, compacted: bool = False) -> Partition:
    """One to three replicas, of which some are harmed, and perhaps a part of it in the tier.

    :param compacted: Whether cleaners have been over the replicas, not equally far.
    """
    history = draw(histories())
    logs = []
    for broker in range(1, draw(st.integers(2, 4))):
        rows = draw(cleaned(history)) if compacted else history
        is_sound = compacted and draw(st.booleans())
        logs.append(draw(copies(rows if is_sound else draw(harmed(rows)), broker)))
    replicas = tuple(draw(metadata(each, history)) for each in logs)
    copied = [
        (f"{log.broker}-{name}", own)
        for log in (logs if draw(st.integers(0, 1 + 8 * compacted)) == 0 else ())
        for name, own in [*log.segments.items()][: draw(st.integers(0, 2))]
    ]
    known = PartitionMetadata(
        replicas=replicas,
        tier=tuple(draw(tier_segments(*each)) for each in copied),
        with_tier=bool(copied),
        compacted=draw(st.sampled_from([compacted] * 4 + [not compacted])),
    )
    return Partition(
        history=history, copies=[*logs, *(_object(*each) for each in copied)], metadata=known
    )


def _object(segment_id: str, rows: Sequence[Row]) -> Copy:
    start = min(number(row, "base_offset") for row in rows)
    where: Row = {"place": "tier", "broker": None, "segment_id": segment_id, "segment": start}
    own = [{**row, **where} for row in rows]
    return Copy(broker=None, segment_id=segment_id, segments={start: own})


@st.composite
def tier_segments(draw: st.DrawFn, segment_id: str, rows: Sequence[Row]) -> TierSegment:
    """What the tier's metadata say of an object."""
    return TierSegment(
        id=segment_id,
        topic_id="a",
        start_offset=min(number(row, "base_offset") for row in rows),
        end_offset=max(number(row, "last_offset") for row in rows),
        epochs=draw(epoch_lists(rows)),
        bytes=100 * len(rows),
        finished=True,
    )


@st.composite
def epoch_lists(draw: st.DrawFn, rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """The leader epochs of batches and where they begin; now and then elsewhere."""
    starts: dict[int, int] = {}
    for row in rows:
        start = number(row, "base_offset") + draw(st.sampled_from([0] * 9 + [1, 4]))
        starts.setdefault(number(row, "epoch"), start)
    return tuple(sorted(starts.items())) or ((0, 0),)


@st.composite
def metadata(draw: st.DrawFn, log: Copy, history: Sequence[Row]) -> ReplicaMetadata:
    """What the checkpoints of a log may say."""
    epochs = draw(epoch_lists(history))
    marks = st.sampled_from([None, 0, log.end, max(log.end - 3, 0), log.end + 4])
    return ReplicaMetadata(
        broker=log.broker or 0,
        clean=draw(st.booleans()),
        segments=tuple(log.segments),
        epochs=draw(st.sampled_from([epochs, epochs, epochs, epochs[:1], None, ()])),
        high_watermark=draw(marks),
        recovery_point=draw(marks),
        log_start=draw(st.sampled_from([None, None, 0, 5, 12])),
        topic_id=draw(st.sampled_from(["a"] * 9 + ["b"])),
    )


@st.composite
def produced(draw: st.DrawFn, partition: Partition) -> pa.Table:
    """A trace of how the batches were produced, or most of them; now and then another one."""
    rows = []
    skipped = draw(st.sampled_from([0, 0, 5]))
    acks = st.sampled_from([-1] * draw(st.sampled_from([1, 20])) + [1])
    for row in partition.history[skipped:]:
        batch = {name: row.get(name) for name in _TRACED}
        batch["crc"] = number(row, "crc") + draw(st.sampled_from([0] * 30 + [1]))
        error = draw(st.sampled_from([0] * 30 + [6, int(ErrorCode.EXPECTED_OFFSET_MISMATCH)]))
        exchange = {"api": "Produce", "acks": draw(acks), "error": error, "batches": [batch]}
        rows.append({**exchange, "offset": row["base_offset"], "broker": 1})
    return traces(*rows)


@st.composite
def windows(draw: st.DrawFn, partition: Partition) -> pa.Table:
    """The rows of its windows and folds, as a scan that reads any parts at a time makes them."""
    files = [
        segment_files(copy.broker, base, copy.segment_id, closed=base != [*copy.segments][-1])
        for copy in partition.copies
        for base in copy.segments
    ]
    width = draw(st.sampled_from(_WIDTHS))
    plans = [replace(plan, width=width) for plan in plan_windows(files)]
    tables = [WINDOWS.empty_table()]
    own = (rows for copy in partition.copies for rows in copy.segments.values())
    for segment, plan, rows in zip(files, plans, own, strict=True):
        if draw(st.integers(0, 3)) == 0:
            # Of a small segment nothing is condensed.
            tables.append(widened(pa.Table.from_pylist(rows, BATCHES)))
            continue
        condenser = WindowCondenser(segment.log, plan, min_rows=draw(st.integers(1, 20)))
        builder = FoldBuilder(segment.segment, {}, b"")
        edges = sorted({0, len(rows), *draw(st.sets(st.integers(0, len(rows)), max_size=3))})
        for start, end in pairwise(edges):
            part = pa.Table.from_pylist(rows[start:end], BATCHES)
            builder.add(part)
            tables += condenser.add(part)
        tables += condenser.finish()
        fold: Row = {name: rows[0].get(name) for name in WINDOWS.names[:6]}
        fold["folds"] = to_json(builder.finished())
        tables.append(pa.Table.from_pylist([fold], WINDOWS))
    return pa.concat_tables(tables)


def reads(partition: Partition, window: Row) -> pa.Table:
    """The batches of a window."""
    start = number(window, "position")
    end = start + number(window, "size")
    names = ("place", "broker", "segment", "segment_id")
    found = [
        row
        for copy in partition.copies
        for row in copy.rows
        if all(row.get(name) == window[name] for name in names)
        and start <= number(row, "position") < end
    ]
    return widened(pa.Table.from_pylist(found, BATCHES))


def segment_files(
    broker: int | None, base: int, segment_id: str | None = None, *, closed: bool = False
) -> SegmentFiles:
    """A segment of a log, or of the tier."""
    return SegmentFiles(
        topic=TOPIC,
        partition=0,
        place=Place.TIER if broker is None else Place.LOG,
        broker=broker,
        segment=base,
        segment_id=segment_id,
        log=f"{base}.log",
        offset_index=None,
        time_index=None,
        size=0,
        closed=closed,
    )
