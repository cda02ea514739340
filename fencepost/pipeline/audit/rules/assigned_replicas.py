"""Every replica that the cluster metadata assign to a broker is in its log directories.

A replica that is not in sync may not be there yet: its broker makes it when it hears of it. One
that is in sync was there, unless the partition was created just before its broker ended.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.explanations import wiped_disk
from fencepost.pipeline.audit.partition_logs import replica_logs
from fencepost.pipeline.audit.rule import (
    AbsentReplica,
    Missing,
    PartitionEvidence,
    Rule,
    Severity,
    Violation,
)

NAME: Final = "assigned-replicas"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Replicas that are assigned, and not there."""
    known = evidence.metadata.cluster.incarnation(None)
    if known is None:
        return
    logs = replica_logs(evidence)
    start = max((log.log_start for log in logs), default=0)
    for absent in evidence.metadata.absent:
        in_sync = absent.broker in known.last.isr
        end = max((absent.end or 0, *(log.metadata.high_watermark or 0 for log in logs)))
        is_known_loss = in_sync and start < end
        yield Violation(
            rule=NAME,
            topic=evidence.topic,
            partition=evidence.partition,
            message=(
                f"broker {absent.broker} has no directory of the partition, and the cluster "
                f"metadata say that it is a replica{' in sync' if in_sync else ''}"
            ),
            explanation=_explanation(evidence, absent, in_sync=in_sync, end=end),
            broker=absent.broker,
            offset=start if is_known_loss else None,
            end_offset=end if is_known_loss else None,
            missing=Missing.FROM_COPY if is_known_loss else None,
        )


def _explanation(
    evidence: PartitionEvidence, absent: AbsentReplica, *, in_sync: bool, end: int
) -> str | None:
    wiped = wiped_disk(absent.broker, evidence.traces)
    if wiped is not None:
        return wiped
    if not in_sync:
        return f"broker {absent.broker} is not in sync, and makes the directory when it starts"
    if absent.end is None and not end:
        return f"nothing tells of a record, and broker {absent.broker} may not have made it yet"
    return None


RULE: Final = Rule(
    name=NAME,
    about="Each replica that the cluster metadata assign is in its broker's log directories.",
    source="KIP-500, KIP-858",
    needs_trace=False,
    order=1,
    severity=Severity.DAMAGE,
    remedy=(
        "a broker that starts makes the directory, empty, and copies the partition from its "
        "leader: where it leads itself, elect another replica before"
    ),
    check=check,
    screen=lambda bucket: bucket.has_no_absent_replica,
)
