"""Leader epochs never fall within a log, and the leader epoch checkpoint says what the batches say.

The checkpoint of a broker that did not end in order may lack the newest epochs: recovery learns
them from the batches.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    BoolArray,
    Int64Array,
    OffsetSpan,
)
from fencepost.pipeline.audit.explanations import unclean_shutdown
from fencepost.pipeline.audit.partition_logs import ReplicaLog, replica_logs
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "monotonic-epochs"
_FILE: Final = "leader-epoch-checkpoint"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Epochs that fall, in batches or in the checkpoint, and where the two differ."""
    for log in replica_logs(evidence):
        found = [*_falling(log.batches), *_checkpoint(log)]
        for message, (offset, end), epoch, explanation in found:
            yield Violation(
                rule=NAME,
                topic=evidence.topic,
                partition=evidence.partition,
                message=message,
                explanation=explanation,
                broker=log.broker,
                place=Place.LOG,
                offset=offset,
                end_offset=end,
                epoch=epoch,
            )


_Found = tuple[str, OffsetSpan, int, str | None]
"""A message, the offsets and the epoch that it is about, and an explanation."""


def _falling(batches: Batches) -> Iterator[_Found]:
    known = batches.select(batches.epoch >= 0)  # messages of old formats have none
    for number in np.flatnonzero(np.diff(known.epoch) < 0).tolist():
        epoch, before = int(known.epoch[number + 1]), int(known.epoch[number])
        span = (int(known.base[number + 1]), int(known.last[number + 1]) + 1)
        yield f"a batch of leader epoch {epoch} follows one of {before}", span, epoch, None


def _checkpoint(log: ReplicaLog) -> Iterator[_Found]:
    known = log.batches.select(log.batches.epoch >= 0)
    if not log.epochs:
        if len(known):
            offset, epoch = int(known.base[0]), int(known.epoch[0])
            what = "is not there, or is none" if log.metadata.epochs is None else "is empty"
            yield f"the {_FILE} {what}", (offset, log.end), epoch, unclean_shutdown(log, offset)
        return
    for (epoch, start), (later, later_start) in pairwise(log.epochs):
        if later <= epoch or later_start <= start:
            message = (
                f"in the {_FILE} epoch {later} from offset {later_start} on follows epoch {epoch} "
                f"from {start} on"
            )
            yield message, (later_start, log.end), later, None
            return
    yield from _mismatches(log, known)
    epoch, start = log.epochs[-1]
    if start > log.end:
        message = f"the {_FILE} lets epoch {epoch} begin at {start}, and the log ends at {log.end}"
        yield message, (start, start + 1), epoch, unclean_shutdown(log, log.end)


def _mismatches(log: ReplicaLog, batches: Batches) -> Iterator[_Found]:
    """Where the checkpoint says another epoch than the batches, neighbours together."""
    epochs, starts = (np.array(column, np.int64) for column in zip(*log.epochs, strict=True))
    first, last = (
        _checkpoint_epochs(epochs, starts, batches.base),
        _checkpoint_epochs(epochs, starts, batches.last),
    )
    # Before the log start nothing is known any more. Its checkpoint lags behind while one runs.
    begin = log.checkpointed_start
    if not log.metadata.clean:
        begin = max(begin, int(starts[0]))
    in_log: BoolArray = batches.last >= begin
    whole: BoolArray = batches.base >= begin
    wrongly_begun: BoolArray = whole & (first != batches.epoch)
    differs: BoolArray = (in_log & (last != batches.epoch)) | wrongly_begun
    checkpointed = np.where(wrongly_begun, first, last)
    firsts = _first_of_each(differs, batches.epoch, checkpointed)
    stops = np.flatnonzero(~differs)
    for number, following in zip(
        firsts.tolist(), [*firsts[1:].tolist(), len(batches)], strict=False
    ):
        stop = min([following, *stops[stops > number][:1].tolist()])
        span = (int(batches.base[number]), int(batches.last[stop - 1]) + 1)
        offset, epoch = int(batches.base[number]), int(batches.epoch[number])
        newer = epoch > int(epochs[-1])
        instead = f"epoch {checkpointed[number]}" if checkpointed[number] >= 0 else "no epoch"
        message = f"a batch of leader epoch {epoch}, where the {_FILE} says {instead}"
        yield message, span, epoch, unclean_shutdown(log, offset) if newer else None


def _checkpoint_epochs(epochs: Int64Array, starts: Int64Array, offsets: Int64Array) -> Int64Array:
    """The epoch that the checkpoint says of each offset, -1 where it says none."""
    numbers = np.searchsorted(starts, offsets, side="right") - 1
    return np.where(numbers >= 0, epochs[numbers], -1)


def _first_of_each(differs: BoolArray, *columns: Int64Array) -> Int64Array:
    """The numbers of those that differ, without those that are as the one before them."""
    begins = differs & ~np.append(False, differs[:-1])
    for column in columns:
        begins |= differs & np.append(True, column[1:] != column[:-1])[: len(differs)]
    return np.flatnonzero(begins)


RULE: Final = Rule(
    name=NAME,
    about="Leader epochs never fall within a log, and are those of the epoch checkpoint.",
    source="KIP-101, KIP-320",
    needs_trace=False,
    order=4,
    severity=Severity.DAMAGE,
    remedy=(
        "delete the directory of the partition while the broker is stopped, where another copy "
        "has its records; a leader-epoch-checkpoint that is deleted is made again from the "
        "batches"
    ),
    check=check,
    screen=lambda bucket: bucket.has_its_epochs,
)
