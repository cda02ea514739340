"""The rows of a trace as rules get them from Spark, made in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.trace_rows import slimmed
from fencepost.pipeline.audit.trace_scan.ordering import (
    SESSION_ORDER,
    TURN_ORDER,
    TURNS,
    with_turns,
)
from fencepost.pipeline.audit.trace_scan.passes import fill_session_epochs, leave_out_exchanges
from fencepost.pipeline.audit.trace_scan.shared_scans import SCANS
from fencepost.pipeline.datasource.schemas import TRACES


def passed(traces: pa.Table, sizes: Sequence[int] = (1, 2)) -> pa.Table:
    """What is left of a trace.

    :param sizes: Of the chunks in which rows come to each pass, over and over.
    """
    turns = [
        with_turns(slimmed(rows, all_of_followers=False))
        for rows in _chunks(traces.combine_chunks(), sizes)
    ]
    table = pa.Table.from_batches(turns, TURNS)
    filled = fill_session_epochs(_chunks(_sorted(table, SESSION_ORDER), sizes))
    table = pa.Table.from_batches(filled, table.schema)
    left = leave_out_exchanges(_chunks(_sorted(table, TURN_ORDER), sizes), SCANS)
    return pa.Table.from_batches(left, TRACES)


def _sorted(rows: pa.Table, order: Iterable[str]) -> pa.Table:
    """As Spark sorts them: null comes first."""
    keys = [(name, "ascending", "at_start") for name in order]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def _chunks(rows: pa.Table, sizes: Sequence[int]) -> Iterator[pa.RecordBatch]:
    ends = accumulate(cycle(sizes), initial=0)
    for start, end in pairwise(ends):
        if start >= rows.num_rows:
            return
        (chunk,) = rows.slice(start, end - start).combine_chunks().to_batches()
        yield chunk
