"""The logs of a partition and its segments in the tier, and what is folded of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.condensed.segment_folds import (
    SegmentFolds,
    files_beside,
    folds_of,
)
from fencepost.pipeline.audit.partition_logs import ReplicaLog, TierCopy, replica_logs, tier_copies
from fencepost.pipeline.audit.rule import PartitionEvidence, SegmentKey, Violation, memoized
from fencepost.pipeline.datasource.schemas import Place
from fencepost.storage.formats.file_names import FileKind


@dataclass(frozen=True, kw_only=True, eq=False)
class LogStretches:
    """A log as its segments, or segments of the tier that follow one another."""

    topic: str
    partition: int
    replica: ReplicaLog | None
    """None in the tier."""
    rows: pa.Table
    """Those of the segments, in order."""
    log_start: int
    known: Mapping[SegmentKey, SegmentFolds]
    """The folds that were made when segments were read, of this log and of others."""

    @cached_property
    def segments(self) -> Mapping[int, pa.Table]:
        """The rows of each segment by its base offset, in order."""
        segments = self.rows["segment"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(segments)) + 1).tolist(), len(segments)]
        return {
            int(segments[start]): self.rows.slice(start, end - start)
            for start, end in pairwise(edges)
            if end > start
        }

    @cached_property
    def _beside(self) -> Mapping[int, list[tuple[str, bytes]]]:
        """The names and contents of the files beside each segment that has any."""
        columns = self.rows.select(["segment", "file", "content"])
        columns = columns.filter(pc.is_valid(columns["file"]))
        found: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
        for base, *file in zip(*(each.to_pylist() for each in columns.columns), strict=True):
            found[base].append((file[0], file[1]))
        return found

    @cached_property
    def folds(self) -> Mapping[int, SegmentFolds]:
        """Those of each segment, by its base offset, in order."""
        snapshots, indexes = map(
            self.files, (FileKind.PRODUCER_SNAPSHOT, FileKind.TRANSACTION_INDEX)
        )
        found = {}
        following: list[int | None] = [*[*self.segments][1:], None]
        for (base, rows), end in zip(self.segments.items(), following, strict=False):
            known = self.known.get(_key(rows))
            if known is None:
                own = {
                    offset: content
                    for offset, content in snapshots.items()
                    if base <= offset and (end is None or offset < end)
                }
                known = folds_of(rows, base, own, indexes.get(base, b""))
            found[base] = known
        return found

    def files(self, kind: FileKind) -> dict[int, bytes]:
        """What files of a kind beside the segments hold, by the offset in their names."""
        found: dict[int, bytes] = {}
        for base, files in self._beside.items():
            names, contents = zip(*files, strict=True)
            found |= files_beside(names, contents, kind, base)
        return found

    def violation(
        self,
        rule: str,
        message: str,
        *,
        segment: int | None,
        offset: int | None,
        position: int | None = None,
        end_offset: int | None = None,
        explanation: str | None = None,
    ) -> Violation:
        """A finding in it."""
        return Violation(
            rule=rule,
            topic=self.topic,
            partition=self.partition,
            message=message,
            explanation=explanation,
            broker=None if self.replica is None else self.replica.broker,
            place=Place.TIER if self.replica is None else Place.LOG,
            segment=segment,
            position=position,
            offset=offset,
            end_offset=end_offset,
        )


@memoized
def log_stretches(evidence: PartitionEvidence) -> list[LogStretches]:
    """Each broker's log, and each run of segments in the tier of which one begins where the one
    before it ends.
    """
    found = [
        LogStretches(
            topic=evidence.topic,
            partition=evidence.partition,
            replica=log,
            rows=log.rows,
            log_start=log.log_start,
            known=evidence.folds,
        )
        for log in replica_logs(evidence)
    ]
    return found + [
        LogStretches(
            topic=evidence.topic,
            partition=evidence.partition,
            replica=None,
            rows=rows,
            log_start=0,
            known=evidence.folds,
        )
        for rows in _tier_runs(evidence)
    ]


def _key(rows: pa.Table) -> SegmentKey:
    """The segment that rows are of."""
    place, broker, segment, segment_id = (
        rows[name][0].as_py() for name in ("place", "broker", "segment", "segment_id")
    )
    return place, broker, segment, segment_id


def _tier_runs(evidence: PartitionEvidence) -> Iterator[pa.Table]:
    served = tuple(each for each in evidence.metadata.tier if each.finished)
    run: list[TierCopy] = []
    for copy in tier_copies(evidence, served):
        if run and copy.segment.start_offset != run[-1].segment.end_offset + 1:
            yield pa.concat_tables([each.rows for each in run])
            run = []
        run.append(copy)
    if run:
        yield pa.concat_tables([each.rows for each in run])
