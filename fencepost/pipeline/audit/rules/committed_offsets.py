"""Committed offsets, and their leader epochs (KIP-320), fit the log and what was committed.

- A group that asks is told what it has committed last. Of commits and questions at the same time
  either may have been first.
- No offset is committed beyond the end of the log.
- The epoch of a commit is one that a leader was elected in, and not older than that of the record
  before the offset: a consumer commits the epoch of what it has consumed, or a newer one that its
  leader told it.

What expires, is deleted, or is lost with a coordinator's log is gone honestly. A coordinator that
has not heard yet that it is none any more answers what it knew.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import NOT_FOUND, Batches
from fencepost.pipeline.audit.committed_offset_register import (
    APIS_OF_GROUPS,
    CommittedOffsetRegister,
    OffsetWrite,
    committed_offset_registers,
)
from fencepost.pipeline.audit.partition_logs import ReplicaLog, logs_of_incarnation
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.scan import Stretch

NAME: Final = "committed-offsets"
_NO_EPOCH: Final = -1


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Reads that returned another value, and commits that can't have been consumed."""
    last = evidence.last_incarnation
    for incarnation in evidence.incarnations:
        groups = tuple(committed_offset_registers(evidence, incarnation))
        for register in groups:
            yield from _invalid_reads(incarnation, register)
        if incarnation is last:
            yield from _invalid_commits(evidence, incarnation, groups)


# -- reads --------------------------------------------------------------------------------------


def _invalid_reads(
    incarnation: TopicIncarnation, register: CommittedOffsetRegister
) -> Iterator[Violation]:
    for read, last in register.invalid_reads():
        if read.offset is None:
            message = f"group {register.group} is told that it has committed nothing"
        else:
            message = f"group {register.group} is told offset {read.offset} of epoch {read.epoch}"
        yield Violation(
            rule=NAME,
            topic=incarnation.topic,
            partition=incarnation.partition,
            message=f"{message} by broker {read.broker}, and had committed {last.offset} of epoch "
            f"{last.epoch} at broker {last.broker} before",
            explanation=register.explanation(read, last),
            broker=read.broker,
            offset=read.offset,
            epoch=read.epoch if read.epoch != _NO_EPOCH else None,
            number=read.number,
            time_ms=read.time_ms,
        )


# -- what was committed -------------------------------------------------------------------------


def _invalid_commits(
    evidence: PartitionEvidence,
    incarnation: TopicIncarnation,
    groups: Iterable[CommittedOffsetRegister],
) -> Iterator[Violation]:
    logs = logs_of_incarnation(evidence, incarnation.topic_id).logs
    if not logs:
        return
    longest = max(logs, key=lambda log: (log.last_epoch_before(log.end), log.end))
    batches = None if evidence.metadata.compacted else longest.batches.by_offset()
    told_start: int | None = pc.max(incarnation.rows["log_start_offset"]).as_py()
    log_start = max(told_start or 0, longest.local_start)
    newest = max((term.epoch for term in incarnation.leader_terms), default=None)
    for register in groups:
        for commit in register.commits:
            if not commit.is_acknowledged:
                continue
            message = _commit_problem(commit, longest, batches, log_start, newest)
            if message is not None:
                yield _commit_violation(incarnation, register, commit, longest, message)


def _commit_problem(
    commit: OffsetWrite,
    log: ReplicaLog,
    batches: Batches | None,
    log_start: int,
    newest: int | None,
) -> str | None:
    """What is wrong with a commit, None where nothing is.

    :param batches: The log's batches by offset; None where offsets may be missing among them.
    :param newest: The newest epoch of a leader; None where the trace tells of none.
    """
    offset, epoch = commit.offset, commit.epoch
    if offset is None:
        return None
    if offset > max(log.end, log_start):
        return f"and the log of broker {log.broker} ends at {log.end}"
    if epoch == _NO_EPOCH:
        return None
    if newest is not None and epoch > newest:
        return f"and the newest epoch that there was is {newest}"
    before = None if batches is None or offset <= log_start else _epoch_at(batches, offset - 1)
    if before is not None and before > epoch:
        return f"and the record before it is of epoch {before}"
    return None


def _epoch_at(batches: Batches, offset: int) -> int | None:
    (number,) = batches.index_of(np.array([offset]))
    return None if number == NOT_FOUND else int(batches.epoch[number])


def _commit_violation(
    incarnation: TopicIncarnation,
    register: CommittedOffsetRegister,
    commit: OffsetWrite,
    log: ReplicaLog,
    message: str,
) -> Violation:
    known = None if commit.epoch == _NO_EPOCH else commit.epoch
    until = log.last_epoch_before(log.end)
    return Violation(
        rule=NAME,
        topic=incarnation.topic,
        partition=incarnation.partition,
        message=f"group {register.group} has committed offset {commit.offset} of epoch "
        f"{commit.epoch}, {message}",
        explanation=incarnation.explain_loss(epoch=known, number=commit.number, until=until),
        broker=commit.broker,
        offset=commit.offset,
        epoch=known,
        number=commit.number,
        time_ms=commit.time_ms,
    )


class GroupScan:
    """Leaves what groups commit, and what they are told."""

    def next(self, stretch: Stretch) -> None:
        """Go on."""
        wanted = pc.is_in(stretch.incarnation.rows["api"], pa.array(APIS_OF_GROUPS))
        stretch.kept.keep(wanted.to_numpy())


RULE: Final = Rule(
    name=NAME,
    about="Groups are told what they have committed, and it and its epoch fit the log.",
    source="KIP-320, KIP-211",
    needs_trace=True,
    order=5,
    severity=Severity.ANSWER,
    remedy=(
        "reset the group's offset: a member begins where it is told, and reads records twice or "
        "not at all"
    ),
    check=check,
    scan=GroupScan,
)
