"""What lies in the tier of a partition, and how much of it belongs to a log."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.evidence import Evidence, TierSegment
from fencepost.pipeline.audit.logs import Batches, Log, batches_of, by_segment_id
from fencepost.pipeline.reading.schemas import Place, Problem
from fencepost.storage.epochs import EpochEntry
from fencepost.storage.tier.lineage import valid_end


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copy:
    """A finished segment in the tier, and what was found of it."""

    segment: TierSegment
    rows: pa.Table
    batches: Batches
    """In the order of their offsets."""

    @property
    def is_lost(self) -> bool:
        """Whether its records are not there, though it is said to be finished."""
        return not len(self.batches) and self.has(Problem.MISSING)

    def has(self, problem: Problem | None = None) -> bool:
        """Whether it has a problem, or any."""
        problems = self.rows["problem"]
        if problem is None:
            return bool(problems.null_count < len(problems))
        return bool(pc.any(pc.equal(problems, problem)).as_py())

    def end_in(self, log: Log) -> int:
        """Behind the last offset of it (exclusive) that belongs to a log's lineage.

        Where none does, that is where it starts.
        """
        lineage = [EpochEntry(epoch, start) for epoch, start in log.epochs]
        end = valid_end(self.segment, lineage)
        return self.segment.start_offset if end is None else end + 1


def copies_of(evidence: Evidence, segments: tuple[TierSegment, ...]) -> list[Copy]:
    """The copies that metadata tell of, by start offset."""
    tier = evidence.of(Place.TIER)
    rows = by_segment_id(tier)
    found = []
    for segment in sorted(segments, key=lambda each: (each.start_offset, each.id)):
        own = rows.get(segment.id, tier.slice(0, 0))
        found.append(Copy(segment=segment, rows=own, batches=batches_of(own).by_offset()))
    return found
