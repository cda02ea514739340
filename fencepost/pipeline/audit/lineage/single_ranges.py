"""What one side has that another has not, and which of it was committed or acknowledged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fencepost.pipeline.audit.acknowledged_batches import acknowledged_batches
from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    BoolArray,
    Int64Array,
)
from fencepost.pipeline.audit.lineage.comparison import RELATIONS, SAME, Comparison, LogSide
from fencepost.pipeline.audit.lineage.model import SingleRange
from fencepost.pipeline.audit.timeline import TopicIncarnation

Side: TypeAlias = int | None
"""A broker; None is the tier."""
BatchKeys: TypeAlias = npt.NDArray[np.void]
_KEY: Final = np.dtype([("base", np.int64), ("last", np.int64), ("crc", np.int64)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedUpTo:
    """How far the records of a side are known to have been committed."""

    end: int
    """Exclusive."""
    broker: Side
    """By whose high watermark; None: the tier has them."""


def acknowledged_keys(incarnation: TopicIncarnation) -> BatchKeys:
    """The batches that were acknowledged to acks=all, by first and last offset and checksum.

    Batches are left out of which the trace does not tell where they were appended: those that a
    producer sent again, and those that were converted.
    """
    traced = acknowledged_batches(incarnation).batches
    traced = traced.select(traced.is_appended_as_sent)
    return _keys(traced.base, traced.last, traced.crc)


def committed_up_to(
    side: LogSide, logs: Mapping[int, LogSide], seen: Mapping[tuple[Side, Side], Comparison]
) -> CommittedUpTo | None:
    """How far a log is known to be committed: by its own high watermark, and by those of others.

    The high watermark of another log says it of what both have, before they part. The tier has
    only what was committed (KIP-405).

    :param seen: Each side, seen from each other.
    :returns: None where no checkpoint and no segment says anything.
    """
    found: list[tuple[int, Side]] = []
    for broker, log in logs.items():
        if log.high_watermark is not None:
            found.append((min(log.high_watermark, _shared_end(side, log, seen)), broker))
    tier = seen.get((side.broker, None))
    if tier is not None and tier.ancestor is not None:
        found.append((tier.ancestor.end, None))
    known = [each for each in found if each[0] > 0]
    if not known:
        return None
    furthest = max(known, key=lambda each: (each[0], each[1] == side.broker))
    return CommittedUpTo(end=furthest[0], broker=furthest[1])


def _shared_end(side: LogSide, log: LogSide, seen: Mapping[tuple[Side, Side], Comparison]) -> int:
    """Up to where (exclusive) two logs are one."""
    end = min(side.end, log.end)
    parting = None if log is side else seen[side.broker, log.broker].parting
    return end if parting is None else min(end, parting.offset)


def single_ranges(
    comparison: Comparison,
    *,
    committed: CommittedUpTo | None,
    acknowledged: BatchKeys | None,
    is_tier: bool,
    limit: int,
) -> tuple[tuple[SingleRange, ...], int]:
    """The ranges that one side has alone, and how many there are.

    :param committed: How far the side is; of the tier everything is.
    :param acknowledged: The batches that were; None without a trace.
    :param limit: How many ranges are made.
    """
    numbers = np.flatnonzero(comparison.relations != SAME)
    batches, relations = comparison.batches.select(numbers), comparison.relations[numbers]
    # In a log batches follow each other by their numbers. The tier is no log: offsets decide.
    breaks = batches.base[1:] != batches.last[:-1] + 1 if is_tier else np.diff(numbers) > 1
    breaks |= (np.diff(batches.epoch) != 0) | (np.diff(relations) != 0)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(batches)] if len(batches) else [0]
    known = None if acknowledged is None else _is_known(batches, acknowledged)
    made = _ranges(batches, relations, edges, committed, known)
    return tuple(islice(made, limit)), len(edges) - 1


def _ranges(
    batches: Batches,
    relations: Int64Array,
    edges: list[int],
    committed: CommittedUpTo | None,
    known: BoolArray | None,
) -> Iterator[SingleRange]:
    for first, behind in pairwise(edges):
        own = slice(first, behind)
        start, end = int(batches.base[first]), int(batches.last[own].max()) + 1
        is_committed = committed is not None and committed.end > start
        yield SingleRange(
            relation=RELATIONS[relations[first]],
            epoch=int(batches.epoch[first]),
            start=start,
            end=end,
            batches=int(batches.batches[own].sum()),
            records=int(batches.count[own].sum()),
            committed_end=min(end, committed.end) if committed and is_committed else None,
            committed_by=committed.broker if committed and is_committed else None,
            acknowledged=None if known is None else int(batches.count[own][known[own]].sum()),
        )


def _is_known(batches: Batches, keys: BatchKeys) -> BoolArray:
    """Of each batch whether it is one of those."""
    found: BoolArray = np.isin(_keys(batches.base, batches.last, batches.crc), keys)
    # A window has only such batches, or none (`refinement`).
    starts = np.sort(keys["base"])
    inside = np.searchsorted(starts, batches.base) < np.searchsorted(
        starts, batches.last, side="right"
    )
    return found | ((batches.batches > 1) & inside)


def _keys(base: Int64Array, last: Int64Array, crc: Int64Array) -> BatchKeys:
    keys: BatchKeys = np.empty(len(base), _KEY)
    keys["base"], keys["last"], keys["crc"] = base, last, crc
    return keys
