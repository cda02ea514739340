"""The batches of a producer follow on one another: no sequence number twice, none left out.

Its epoch never falls, and the first batch of a new one begins with 0. That is judged where the log
has all that was between two batches, and where a broker could not have forgotten the producer.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Final

from fencepost.pipeline.audit import sequence_fold
from fencepost.pipeline.audit.log_stretches import log_stretches
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.sequence_stretch import Fault, SequenceFinding

NAME: Final = "producer-sequences"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Batches that do not follow on the one before them of their producer."""
    for log in log_stretches(evidence):
        parts = [each.sequences for each in log.folds.values() if each.sequences is not None]
        if parts:
            summary = reduce(sequence_fold.merge, parts)
            for found in sequence_fold.verdict(summary, log.log_start):
                yield log.violation(
                    NAME,
                    _message(found),
                    segment=found.segment,
                    position=found.position,
                    offset=found.offset,
                    end_offset=found.end_offset,
                )


def _message(found: SequenceFinding) -> str:
    who = f"producer {found.producer}"
    numbers = f"sequence numbers {found.first} to {found.last} of {who}, epoch {found.epoch},"
    match found.fault:
        case Fault.EPOCH:
            return (
                f"{who} goes on with epoch {found.epoch}, and had epoch {found.epoch_before} at "
                f"offset {found.offset_before}"
            )
        case Fault.NEW_EPOCH:
            return f"{numbers} are the first of the epoch, which begins with 0"
        case Fault.REPEATED:
            before = f"behind offset {found.offset_before} {found.expected} is next"
            return f"{numbers} come again: {before}"
        case Fault.GAP:
            return f"{numbers} come where {found.expected} is next: those between are missing"


RULE: Final = Rule(
    name=NAME,
    about="Sequence numbers of a producer follow on one another, and its epoch never falls.",
    source="KIP-98 and KIP-360",
    needs_trace=False,
    order=8,
    severity=Severity.DAMAGE,
    remedy="produce again what is left out, and let readers leave out what came again",
    check=check,
    screen=lambda bucket: bucket.has_no_producer,
)
