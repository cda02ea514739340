"""All replicas of a partition say the same topic id in ``partition.metadata`` (KIP-516).

A topic that is deleted and created again has another id. A log of the earlier one may still lie
with a broker that was down meanwhile, and has no batch in common with the later logs. Where logs
of different ids have a batch in common, they are of one topic, and an id is wrong: a broker that
starts takes such a log for a stray. Those logs are compared all the same
(`partition_logs.logs_by_incarnation`).
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.partition_logs import IncarnationLogs, ReplicaLog, logs_by_incarnation
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "one-topic-id"
_FILE: Final = "partition.metadata"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Replicas whose topic id is not that of most replicas."""
    incarnations = logs_by_incarnation(evidence)
    for topic_logs in incarnations:
        yield from _wrong_ids(evidence, topic_logs)
    current = incarnations[0].topic_id
    for topic_logs in incarnations[1:]:
        for log in topic_logs.logs:
            yield _violation(
                evidence,
                log,
                f"{_says(log)}, and that of {_brokers(incarnations[0])} says {current}",
                "the topic was deleted and created again: "
                "the logs of the two ids have no batch in common",
            )


def _wrong_ids(evidence: PartitionEvidence, topic_logs: IncarnationLogs) -> Iterator[Violation]:
    usual = topic_logs.topic_id
    for log in topic_logs.logs:
        if log.metadata.topic_id not in (None, usual):
            yield _violation(
                evidence,
                log,
                f"{_says(log)}, other replicas with the same batches say {usual}",
                None,
            )


def _says(log: ReplicaLog) -> str:
    return f"the {_FILE} of broker {log.broker} says topic id {log.metadata.topic_id}"


def _brokers(topic_logs: IncarnationLogs) -> str:
    return " and ".join(f"broker {log.broker}" for log in topic_logs.logs)


def _violation(
    evidence: PartitionEvidence, log: ReplicaLog, message: str, explanation: str | None
) -> Violation:
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=log.broker,
        place=Place.LOG,
    )


RULE: Final = Rule(
    name=NAME,
    about="All replicas of a partition say the same topic id.",
    source="KIP-516",
    needs_trace=False,
    order=4,
    severity=Severity.DAMAGE,
    remedy="write the id of the topic into the partition.metadata while its broker is stopped",
    check=check,
    screen=lambda bucket: bucket.has_one_topic_id,
)
