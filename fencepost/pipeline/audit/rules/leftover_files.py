"""No file in a partition's directory is left over that hides records or should be in place.

A file on its way in or out has a second suffix, and a broker that starts deals with it:

- ``.deleted``: retention or compaction took it, and ``file.delete.delay.ms`` had not passed. It is
  removed.
- ``.cleaned``: compaction was writing it, and all that it was written from is still there. It is
  removed. Kafka's cleaner leaves it even when its broker ends in order meanwhile.
- ``.swap``: compaction had written it, and was about to put it into the place of what it was
  written from. It gets that place, unless a ``.cleaned`` of the same or a lower offset is there:
  then it is removed. No broker ends in order before it has its place.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.batch_arrays import OffsetSpan, gaps
from fencepost.pipeline.audit.partition_logs import ReplicaLog, may_be_compacted, replica_logs
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place
from fencepost.storage.formats.file_names import FileState, SegmentFile, parse_segment_file_name

NAME: Final = "leftover-files"
_REMOVED: Final = "a broker that starts removes"
_Found = tuple[str, int, str | None]
"""A message, the offset that it is about, and an explanation."""


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """What is left over, by its second suffix, and what it hides."""
    for log in replica_logs(evidence):
        if not log.metadata.leftovers:
            continue
        files = [parse_segment_file_name(name) for name in log.metadata.leftovers]
        found = [file for file in files if file is not None]
        for message, offset, explanation in (
            *_removed(found, FileState.DELETED),
            *_removed(found, FileState.CLEANED),
            *_swaps(log, found),
        ):
            yield _violation(evidence, log, message, explanation, offset)
        for start, end in _hidden(evidence, log):
            message = (
                f"a .swap takes the place of segments that have offsets {start} to {end - 1}, "
                "and lacks them"
            )
            yield _violation(evidence, log, message, None, start, end)


def _removed(found: list[SegmentFile], state: FileState) -> Iterator[_Found]:
    """Files that are of no account any more, or not yet."""
    offsets = [file.offset for file in found if file.state is state]
    if offsets:
        why = "their deletion was waiting" if state is FileState.DELETED else "compaction was on"
        yield _count(offsets, state), min(offsets), f"{why}: {_REMOVED} them"


def _swaps(log: ReplicaLog, found: list[SegmentFile]) -> Iterator[_Found]:
    """Files that were about to be put into place, those apart that will not be."""
    cleaned = [file.offset for file in found if file.state is FileState.CLEANED]
    swaps = [file.offset for file in found if file.state is FileState.SWAP]
    dropped = [offset for offset in swaps if cleaned and offset >= min(cleaned)]
    finished = [offset for offset in swaps if not cleaned or offset < min(cleaned)]
    broker = f"broker {log.broker} has ended in order"
    for offsets, what in (
        (finished, "a broker that starts puts them into place"),
        (dropped, f"{_REMOVED} them, as compaction had not written all of their .cleaned files"),
    ):
        if offsets:
            message = _count(offsets, FileState.SWAP)
            if log.metadata.clean:
                yield f"{message}, though {broker}; {what}", min(offsets), None
            else:
                yield message, min(offsets), what


def _count(offsets: list[int], state: FileState) -> str:
    """Such as ``3 .deleted files, from 00000000000000000030 on``."""
    number = f"{len(offsets)} {state.value} file{'s' * (len(offsets) > 1)}"
    return f"{number} of the segment{'s' * (len(set(offsets)) > 1)} from offset {min(offsets)} on"


def _hidden(evidence: PartitionEvidence, log: ReplicaLog) -> list[OffsetSpan]:
    """What segments have that a swap replaces, and the swap has not.

    Where compaction may have been, it may have left anything out.
    """
    if not log.metadata.replaced or may_be_compacted(evidence):
        return []
    spans = log.batches.by_offset().spans
    return [gap for replaced in log.metadata.replaced for gap in gaps(spans, *replaced)]


def _violation(
    evidence: PartitionEvidence,
    log: ReplicaLog,
    message: str,
    explanation: str | None,
    offset: int,
    end_offset: int | None = None,
) -> Violation:
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=log.broker,
        place=Place.LOG,
        segment=offset if end_offset is None else None,
        offset=offset,
        end_offset=end_offset,
        missing=None if end_offset is None else Missing.FROM_COPY,
    )


RULE: Final = Rule(
    name=NAME,
    about="No file is left over in a partition's directory that hides records.",
    source="Kafka's LogLoader",
    needs_trace=False,
    order=8,
    severity=Severity.DAMAGE,
    remedy="start its broker, which puts a .swap into place or removes it; first keep a copy where "
    "it hides records",
    check=check,
    screen=lambda bucket: bucket.has_no_leftover,
)
