"""The producer snapshots of a log are there, can be read, and say what the log says.

A broker reads the newest one when it starts, and the batches behind it, so that a wrong snapshot
lets it take a batch twice, refuse what follows, or never end a transaction. One that ended in order
has a snapshot for each segment but the first, and one at the log end.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Final

from fencepost.pipeline.audit import snapshot_fold
from fencepost.pipeline.audit.explanations import unclean_shutdown
from fencepost.pipeline.audit.log_stretches import LogStretches, log_stretches
from fencepost.pipeline.audit.partition_logs import ReplicaLog
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.storage.formats.checkpoints import CorruptSnapshot, decode_snapshot
from fencepost.storage.formats.file_names import FileKind, segment_file_name

NAME: Final = "producer-snapshots"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Snapshots that are missing, that can't be read, or that contradict the log."""
    for log in log_stretches(evidence):
        if log.replica is None:
            continue
        yield from _misplaced(log, log.replica)
        for offset, content in sorted(log.files(FileKind.PRODUCER_SNAPSHOT).items()):
            try:
                decode_snapshot(content)
            except CorruptSnapshot as error:
                explanation = unclean_shutdown(log.replica, offset)
                yield _violation(log, offset, str(error), explanation)
        parts = [each.snapshots for each in log.folds.values()]
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
