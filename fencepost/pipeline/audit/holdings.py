"""What each replica and the tier hold of a partition, in numbers."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.account import MAX_MARKS, Held, Span
from fencepost.pipeline.audit.logs import trusted

_NOWHERE: Final = -1
"""The broker of what lies in the tier."""


def holdings(batches: pa.Table) -> Iterator[Held]:
    """One for each replica and one for the tier, in the order of the rows.

    :param batches: `BATCHES` of one partition by place, broker, segment and position.
    """
    for rows in replicas(batches):
        yield _held(rows)


def replicas(batches: pa.Table) -> Iterator[pa.Table]:
    """The rows of each replica and of the tier, which follow each other."""
    if not batches.num_rows:
        return
    brokers = pc.fill_null(batches["broker"], _NOWHERE).to_numpy()
    places = pc.equal(batches["place"], batches["place"][0]).to_numpy()
    changes = np.flatnonzero((np.diff(brokers) != 0) | (np.diff(places) != 0)) + 1
    edges = [0, *changes.tolist(), batches.num_rows]
    for start, end in pairwise(edges):
        yield batches.slice(start, end - start)


def _held(rows: pa.Table) -> Held:
    sound = trusted(rows)
    spans = _spans(sound)
    first = rows.slice(0, 1).to_pylist()[0]
    return Held(
        place=first["place"],
        broker=first["broker"],
        batches=sound.num_rows,
        records=pc.sum(sound["count"]).as_py() or 0,
        bytes=pc.sum(sound["size"]).as_py() or 0,
        problems=rows.num_rows - rows["problem"].null_count,
        start=pc.min(sound["base_offset"]).as_py(),
        end=max((each.end for each in spans), default=None),
        segments=len(spans),
        largest=max((each.bytes for each in spans), default=0),
        spans=_fewer(spans),
    )


def _spans(sound: pa.Table) -> list[Span]:
    """One for each segment with a batch in it, by base offset."""
    found = sound.group_by(["segment", "segment_id"], use_threads=False).aggregate(
        [("last_offset", "max"), ("size", "sum")]
    )
    return [
        Span(start=row["segment"], end=row["last_offset_max"] + 1, bytes=row["size_sum"])
        for row in found.sort_by(
            [("segment", "ascending"), ("last_offset_max", "ascending")]
        ).to_pylist()
    ]


def _fewer(spans: list[Span]) -> tuple[Span, ...]:
    """At most `MAX_MARKS`: as many neighbours as it takes are told as one."""
    together = -(-len(spans) // MAX_MARKS) or 1
    if together == 1:
        return tuple(spans)
    return tuple(
        Span(
            start=group[0].start,
            end=max(each.end for each in group),
            bytes=sum(each.bytes for each in group),
        )
        for group in (spans[at : at + together] for at in range(0, len(spans), together))
    )
