"""The producer snapshots of a log are there, can be read, and say what the log says.

A broker reads the newest one when it starts, and the batches behind it, so that a wrong snapshot
lets it take a batch twice, refuse what follows, or never end a transaction. One that ended in order
has a snapshot for each segment but the first, and one at the log end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from typing import Final

import pyarrow.compute as pc

from fencepost.pipeline.audit import snapshot_fold
from fencepost.pipeline.audit.explanations import unclean_shutdown
from fencepost.pipeline.audit.log_stretches import LogStretches, log_stretches
from fencepost.pipeline.audit.partition_logs import ReplicaLog
from fencepost.pipeline.audit.producer_batches import stretch_of
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.snapshot_fold import Entries, SnapshotSummary
from fencepost.storage.formats.checkpoints import CorruptSnapshot, decode_snapshot
from fencepost.storage.formats.file_names import FileKind, segment_file_name

NAME: Final = "producer-snapshots"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Snapshots that are missing, that can't be read, or that contradict the log."""
    for log in log_stretches(evidence):
        if log.replica is None:
            continue
        yield from _misplaced(log, log.replica)
        snapshots: dict[int, Entries | None] = {}
        for offset, content in sorted(log.files(FileKind.PRODUCER_SNAPSHOT).items()):
            try:
                snapshots[offset] = decode_snapshot(content)
            except CorruptSnapshot as error:
                explanation = unclean_shutdown(log.replica, offset)
                yield _violation(log, offset, str(error), explanation)
        parts = list(_parts(log, snapshots))
        if parts:
            for found in snapshot_fold.verdict(reduce(snapshot_fold.merge, parts)):
                yield _violation(log, found.offset, found.message)


def _misplaced(log: LogStretches, replica: ReplicaLog) -> Iterator[Violation]:
    """Snapshots that are not there and must be, or that lie behind the log end."""
    metadata = replica.metadata
    if not metadata.clean or metadata.snapshots is None:
        return
    expected = {base for base in metadata.segments[1:] if base > log.log_start}
    behind = max(metadata.snapshots, default=0)
    if behind > replica.end:
        message = f"it is of the log end, and the log ends at {replica.end}"
        yield replace(_violation(log, behind, message), offset=replica.end, end_offset=behind)
    elif len(replica.batches):
        expected.add(replica.end)
    for offset in sorted(expected - set(metadata.snapshots)):
        yield _violation(log, offset, "it is not there")


def _parts(log: LogStretches, snapshots: dict[int, Entries | None]) -> Iterator[SnapshotSummary]:
    """The log in parts that begin where a segment or a snapshot does."""
    offsets, bases = sorted(snapshots), list(log.segments)
    for (base, rows), following in zip_longest(log.segments.items(), bases[1:]):
        first = bisect_right(offsets, base)
        behind = len(offsets) if following is None else bisect_left(offsets, following)
        inside = offsets[first:behind]
        if not inside:
            yield snapshot_fold.summarize(log.by_segment[base], base, snapshots.get(base))
            continue
        starts = pc.fill_null(rows["base_offset"], base)
        for start, end in zip([base, *inside], [*inside, None], strict=True):
            within = pc.greater_equal(starts, start)
            if end is not None:
                within = pc.and_(within, pc.less(starts, end))
            stretch = stretch_of(rows.filter(within))
            yield snapshot_fold.summarize(stretch, start, snapshots.get(start))


def _violation(
    log: LogStretches, offset: int, message: str, explanation: str | None = None
) -> Violation:
    name = segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT)
    # It tells of what comes before it: the segment that ends there.
    before = max((base for base in log.segments if base < offset), default=None)
    return log.violation(
        NAME,
        f"{name}: {message}",
        segment=before,
        offset=offset if before is None else before,
        end_offset=offset,
        explanation=explanation,
    )


RULE: Final = Rule(
    name=NAME,
    about="The producer snapshots of a log are there, and say what the log says.",
    source="KIP-98",
    needs_trace=False,
    order=10,
    severity=Severity.REBUILT,
    remedy="delete the snapshots while the broker is stopped: they are made again from the log",
    check=check,
    screen=lambda bucket: bucket.has_its_snapshots,
)
