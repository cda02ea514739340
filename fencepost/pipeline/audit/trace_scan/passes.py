"""The two passes over the exchanges of partitions, as functions of streams of rows.

The rows of a bucket come by topic and partition: what is of no topic, then of each topic what is of
no partition, and of each partition events before exchanges. Events are few, and are all known when
the first exchange of a partition is seen.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.timeline import PartitionTimeline, TopicIncarnation
from fencepost.pipeline.audit.trace_rows import ACKNOWLEDGED, rows_where
from fencepost.pipeline.audit.trace_scan.ordering import AT, IS_ANSWERED, RANK, TURNS
from fencepost.pipeline.audit.trace_scan.scan import (
    KeptRows,
    NewScan,
    Stretch,
    TraceScan,
    standing_for,
)
from fencepost.pipeline.audit.trace_scan.session_epochs import SessionEpochs
from fencepost.pipeline.datasource.trace_files import EXCHANGE

LEFT_OUT: Final = "left_out"
"""The kind of a row that stands for exchanges which were left out: `number` of them."""


class ExchangePass(Protocol):
    """Goes over the exchanges of one partition."""

    def next(self, exchanges: pa.Table) -> pa.Table:
        """What becomes of the next ones."""

    def end(self) -> list[pa.Table]:
        """What is to be added in the end."""


def fill_session_epochs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fill in the leader epoch of each Fetch that leaves it to its session.

    :param batches: `TURNS` and a column of buckets, by this and then by `SESSION_ORDER`.
    """
    return _over_partitions(batches, SessionEpochs)


def leave_out_exchanges(
    batches: Iterable[pa.RecordBatch], scans: Iterable[NewScan]
) -> Iterator[pa.RecordBatch]:
    """Leave out exchanges that change nothing that a rule finds.

    :param batches: `TURNS` and a column of buckets, by this and then by `TURN_ORDER`, with the
        epochs of sessions filled in.
    :returns: `TRACES` and the column of buckets.
    """
    new = tuple(scans)
    for batch in _over_partitions(batches, lambda timeline: _LeavingOut(timeline, new)):
        yield batch.drop_columns([RANK, AT, IS_ANSWERED])


def trace_row_count(own: pa.Table) -> int:
    """How many rows the trace has of a partition, with those that were left out.

    :param own: What is left of them.
    """
    kind = own["kind"]
    rows = own.filter(pc.invert(pc.is_in(kind, pa.array((LEFT_OUT, ACKNOWLEDGED)))))
    left_out: list[int] = own.filter(pc.equal(kind, LEFT_OUT))["number"].to_pylist()
    return int(rows.num_rows) + sum(left_out)


class _LeavingOut:
    """Leaves out exchanges of one partition."""

    def __init__(self, timeline: PartitionTimeline, scans: tuple[NewScan, ...]) -> None:
        self._timeline = timeline
        self._new = scans
        self._scans: dict[int, tuple[KeptRows, tuple[TraceScan, ...]]] = {}
        """Of each incarnation, by its number."""
        self._left_out = 0
        self._first: pa.Table | None = None

    def next(self, exchanges: pa.Table) -> pa.Table:
        """What is left of them."""
        if self._first is None:
            self._first = exchanges.take([0])
        found = [exchanges.slice(0, 0)]
        for number, incarnation in enumerate(self._timeline.incarnations(exchanges)):
            if incarnation.rows.num_rows:
                found += self._left(number, incarnation)
        left = pa.concat_tables(found)
        self._left_out += int(pc.sum(exchanges[IS_ANSWERED]).as_py()) - left.num_rows
        added = [row for kept, _ in self._scans.values() for row in kept.added()]
        return pa.concat_tables([left, *added])

    def _left(self, number: int, incarnation: TopicIncarnation) -> list[pa.Table]:
        kept, scans = self._scans.setdefault(
            number, (KeptRows(), tuple(new() for new in self._new))
        )
        turns = incarnation.rows
        rows = rows_where(turns, turns[IS_ANSWERED])
        kept.begin(rows)
        stretch = Stretch(incarnation=replace(incarnation, rows=rows), turns=turns, kept=kept)
        for scan in scans:
            scan.next(stretch)
        return kept.left()

    def end(self) -> list[pa.Table]:
        """The rows that are held, and how many were left out."""
        found = [row for kept, _ in self._scans.values() for row in kept.held()]
        left_out = self._left_out - len(found)
        if left_out and self._first is not None:
            found.append(standing_for(self._first, kind=LEFT_OUT, number=left_out))
        return found


def _over_partitions(
    batches: Iterable[pa.RecordBatch], begin: Callable[[PartitionTimeline], ExchangePass]
) -> Iterator[pa.RecordBatch]:
    """All events, and what becomes of exchanges."""
    walk = _Walk(begin)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        found = [table.slice(0, 0)]
        for rows in _runs(table):
            found += walk.next(rows)
        yield from pa.concat_tables(found).combine_chunks().to_batches()
    for rows in walk.end():
        yield from rows.to_batches()


class _Walk:
    """Goes from one partition to the next."""

    def __init__(self, begin: Callable[[PartitionTimeline], ExchangePass]) -> None:
        self._begin = begin
        self._key: tuple[Any, ...] = ()
        self._events: dict[tuple[Any, ...], list[pa.Table]] = {}
        """Of the bucket, the topic and the partition where it is, by what they have in common."""
        self._pass: ExchangePass | None = None

    def next(self, rows: pa.Table) -> list[pa.Table]:
        """What becomes of rows of one bucket, topic and partition, and of what was before them."""
        *bucket, topic, partition = (rows[name][0].as_py() for name in _key_columns(rows))
        found = [] if (*bucket, topic, partition) == self._key else self.end()
        self._key = (*bucket, topic, partition)
        levels = [(*bucket,), (*bucket, topic), self._key]
        self._events = {key: each for key, each in self._events.items() if key in levels}
        is_exchange = pc.equal(rows["kind"], EXCHANGE)
        events = rows.filter(pc.invert(is_exchange))
        level = levels[0 if topic is None else 1 if partition is None else 2]
        self._events.setdefault(level, []).append(events)
        if partition is None:
            return [*found, rows]
        found.append(events)
        exchanges = rows_where(rows, is_exchange)
        if exchanges.num_rows and topic is not None:
            if self._pass is None:
                self._pass = self._begin(self._timeline(topic, partition))
            found.append(self._pass.next(exchanges))
        return found

    def end(self) -> list[pa.Table]:
        """What is to be added to the partition where it is."""
        found = [] if self._pass is None else self._pass.end()
        self._pass = None
        return found

    def _timeline(self, topic: str, partition: int) -> PartitionTimeline:
        events = pa.concat_tables([each for tables in self._events.values() for each in tables])
        return PartitionTimeline(events.sort_by("line"), topic, partition)


def _key_columns(rows: pa.Table) -> list[str]:
    return [*(name for name in rows.schema.names if name not in TURNS.names), "topic", "partition"]


def _runs(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of one bucket, topic and partition each."""
    changes = np.zeros(table.num_rows, bool)
    changes[:1] = True
    for name in _key_columns(table):
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        changes[1:] |= np.diff(codes.indices.to_numpy()) != 0
    edges = [*np.flatnonzero(changes).tolist(), table.num_rows]
    for start, end in pairwise(edges):
        yield table.slice(start, end - start)
