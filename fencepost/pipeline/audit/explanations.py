"""Explanations of what looks like a violation and is none.

Two things lose records legitimately. When a broker ends uncleanly, records that were not flushed
may be torn or garbage. Recovery cuts them at the next start, and another broker has what was
committed. The other is a leader that lacks committed records: it was elected uncleanly, or it lost
its disk while no other replica was in sync.
"""

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.core.events import Kind
from fencepost.pipeline.audit.batch_arrays import OffsetSpan, covers
from fencepost.pipeline.audit.partition_logs import IncarnationLogs, ReplicaLog
from fencepost.pipeline.audit.rule import PartitionEvidence


def unclean_shutdown(log: ReplicaLog, offset: int) -> str | None:
    """That recovery will look at an offset: nothing from there on was known to be durable."""
    metadata = log.metadata
    if metadata.clean or offset < (metadata.recovery_point or 0):
        return None
    return (
        f"broker {log.broker} has not ended in order, and from offset "
        f"{metadata.recovery_point or 0} on recovery looks at everything"
    )


def torn_write(log: ReplicaLog, topic_logs: IncarnationLogs, end: int) -> str | None:
    """That a log which ends too early lost only what was not flushed and is held elsewhere.

    :param end: Where it ends (exclusive).
    """
    reason = unclean_shutdown(log, end)
    committed = log.metadata.high_watermark or 0
    if reason is None or end >= committed:
        return reason
    if not covers(other_copies(log, topic_logs), end, committed):
        return None
    return f"{reason}; others have what was committed"


def not_written_yet(log: ReplicaLog) -> str | None:
    """That the checkpoints of a broker that has not ended in order may tell of later records.

    A file that was cut since is newer than the checkpoints.
    """
    if not log.metadata.unchanged_since_checkpoint:
        return None
    return (
        f"broker {log.broker} has not ended in order, and its checkpoints are newer than the log's "
        "end: as in a copy that was made while it ran, or after a loss of power"
    )


def other_copies(log: ReplicaLog, topic_logs: IncarnationLogs) -> list[OffsetSpan]:
    """What the other logs of a partition and the tier hold."""
    spans = [(each.start_offset, each.end_offset + 1) for each in topic_logs.tier]
    for other in topic_logs.logs:
        if other is not log:
            spans += other.batches.by_offset().spans
    return spans


def retention(log: ReplicaLog, segment: int) -> str | None:
    """That retention may have taken a segment of a broker that runs, while it was being read."""
    if log.metadata.clean or (log.batches.base < segment).any():
        return None
    return f"broker {log.broker} was not stopped: its first segments may go at any time"


def lost_disk(log: ReplicaLog, traces: pa.Table | None) -> str | None:
    """That the broker of a log has lost its disk, as the trace tells."""
    return wiped_disk(log.broker, traces)


def wiped_disk(broker: int, traces: pa.Table | None) -> str | None:
    """That a broker has lost its disk, as the trace tells."""
    if traces is None:
        return None
    events = traces.filter(pc.equal(traces["kind"], Kind.REPLICA_WIPED))
    if broker not in events["broker"].to_pylist():
        return None
    return f"broker {broker} lost its disk"


def committed_loss(
    evidence: PartitionEvidence, topic_id: str | None, after: int, until: int
) -> str | None:
    """That committed records may be gone with a leader that lacked them.

    :param topic_id: Of the topic that the logs are of, where they say it.
    :param after: The leader epoch of what is gone.
    :param until: That of what has its place.
    :returns: Why; None where every election in between is known by the cluster metadata or by the
        trace, and all were clean.
    """
    traced = {} if evidence.traces is None else dict(_elections(evidence.traces))
    unclean = [epoch for epoch, is_unclean in traced.items() if is_unclean]
    for epoch in sorted(unclean):
        if after < epoch <= until:
            return f"the election of leader epoch {epoch} was unclean"
    known = evidence.metadata.cluster.incarnation(topic_id)
    election = None if known is None else known.unclean_election(after, until)
    if election is not None:
        return election.unclean_text
    wiped = _wiped_broker(evidence.traces)
    if wiped is not None:
        return f"broker {wiped} lost its disk"
    if until in traced or (until >= 0 and known is not None and known.are_clean(after, until)):
        return None
    return _unknown_election(evidence, until)


def _unknown_election(evidence: PartitionEvidence, until: int) -> str:
    """That an election may have been unclean of which nothing tells."""
    if evidence.traces is None:
        text = f"an unclean election of leader epoch {until} explains it, and there is no trace "
        if evidence.metadata.cluster.reading.source is None:
            return f"{text}that tells of another reason"
        return f"{text}and no cluster metadata that tell of every election before"
    if until < 0:
        return "messages of old formats know no leader epochs, and can't tell what was lost"
    return f"the trace does not tell of the election of leader epoch {until}"


def _wiped_broker(traces: pa.Table | None) -> int | None:
    """The broker that lost its disk first, as the trace tells."""
    if traces is None:
        return None
    wiped = traces.filter(pc.equal(traces["kind"], Kind.REPLICA_WIPED))
    first: int | None = wiped["broker"][0].as_py() if wiped.num_rows else None
    return first


def left_over(evidence: PartitionEvidence, log: ReplicaLog) -> str | None:
    """That no reader is served from a log, as the cluster metadata tell.

    Its topic was deleted, or the partition was reassigned, and its broker has not heard of it.
    """
    known = evidence.metadata.cluster.incarnation(log.metadata.topic_id)
    unit = _unit(evidence)
    if known is None:
        return None
    if known.deleted is not None:
        return f"the cluster metadata say that the topic was deleted, at {unit} {known.deleted}"
    assignment = known.assignments[-1]
    if log.broker in assignment.replicas:
        return None
    return (
        f"the cluster metadata say that broker {log.broker} is no replica any more, since {unit} "
        f"{assignment.offset}"
    )


def _unit(evidence: PartitionEvidence) -> str:
    source = evidence.metadata.cluster.reading.source
    return "" if source is None else source.unit


def lost_tier(traces: pa.Table | None) -> str | None:
    """That the tier was made to lose what it had, as the trace tells."""
    if traces is None or not pc.any(pc.equal(traces["kind"], Kind.TIER_LOST)).as_py():
        return None
    return "the tier has lost what it had of the partition"


def _elections(traces: pa.Table) -> Iterator[tuple[int, bool]]:
    """Leader epochs, and whether their leaders were elected uncleanly."""
    events = traces.filter(pc.equal(traces["kind"], Kind.LEADER_CHANGED))
    for text in events["details"].to_pylist():
        details = json.loads(text or "{}")
        yield int(details.get("leader_epoch", -1)), bool(details.get("unclean"))
