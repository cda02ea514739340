"""The checkpointed log start of a replica lies in its log, or at its end.

One that lies beyond says that records are deleted which the log never had. No other rule believes
it (`ReplicaLog.log_start`). After a crash it may do so: the checkpoint was written and what was
appended last was not flushed.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.explanations import unclean_shutdown
from fencepost.pipeline.audit.partition_logs import ReplicaLog, replica_logs
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "log-start-in-log"
_FILE: Final = "log-start-offset-checkpoint"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Replicas whose log start lies beyond their log end."""
    for log in replica_logs(evidence):
        start = log.metadata.log_start
        if start is not None and start > log.end:
            yield _violation(evidence, log, start)


def _violation(evidence: PartitionEvidence, log: ReplicaLog, start: int) -> Violation:
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=f"the {_FILE} says {start}, and the log ends at {log.end}",
        explanation=unclean_shutdown(log, log.end),
        broker=log.broker,
        place=Place.LOG,
        offset=start,
    )


RULE: Final = Rule(
    name=NAME,
    about="The checkpointed log start of a replica lies in its log, or at its end.",
    source="KIP-107",
    needs_trace=False,
    order=4,
    severity=Severity.DAMAGE,
    remedy=(
        "delete the line from the checkpoint while the broker is stopped: the log starts with "
        "its first segment then"
    ),
    check=check,
    screen=lambda bucket: bucket.starts_in_log,
)
