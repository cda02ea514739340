"""The invariants of what clients are told and read. Each function checks one; it returns the
violation, or None.
"""

from collections.abc import Collection
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.simulation.history import Batch, BatchLog, PartitionHistory

Problem = str | None


def acknowledged_records_are_committed(
    history: PartitionHistory, batch: Batch | None, base_offset: int, crc: int
) -> Problem:
    """What acks=all is told to be safe is committed, where the answer says."""
    where = f"p{history.index}: acknowledged at {base_offset}"
    if batch is None or batch.crc != crc:
        return f"{where}, where the leader has {batch}"
    return None if history.committed.holds(batch) else f"{where}, and {batch} is not committed"


def enough_replicas_hold_what_is_acknowledged(
    history: PartitionHistory, batch: Batch, logs: Collection[BatchLog], enough: int
) -> Problem:
    """At least min.insync.replicas logs have a record when acks=all is answered."""
    count = sum(log.holds(batch) for log in logs)
    if count >= enough:
        return None
    return f"p{history.index}: {batch} is acknowledged with {count} of {enough} replicas"


def too_small_an_isr_is_told_before_the_append(
    where: str, error: ErrorCode | None, appended: bool, lacked: bool
) -> Problem:
    """NOT_ENOUGH_REPLICAS is the answer to acks=all while the ISR is too small, and leaves nothing.

    :param error: None where there is no answer yet.
    :param lacked: Whether the leader had fewer in sync than ``min.insync.replicas`` before.
    """
    if error is ErrorCode.NOT_ENOUGH_REPLICAS:
        if lacked and not appended:
            return None
        why = "what was appended" if appended else "a leader with enough in sync"
        return f"{where}: {error.name} of {why}"
    if not lacked or (error is None and not appended):
        return None
    told = "no answer" if error is None else error.name
    return f"{where}: {told} where too few are in sync, appended: {appended}"


def latest_offsets_never_go_back(who: str, before: int, after: int) -> Problem:
    """While the gate is on, no client is told a smaller latest offset than before (KIP-207)."""
    return f"{who}: latest offset {after} after {before}" if after < before else None


def clients_read_what_is_committed(who: str, history: PartitionHistory, batch: Batch) -> Problem:
    """Consumers get records that are committed, and no others."""
    if batch.next_offset <= history.deleted or history.committed.holds(batch):
        return None
    return f"{who}: got {batch}, not committed"


def consumers_miss_no_truncation(who: str, log: BatchLog, batch: Batch, deleted: int) -> Problem:
    """What a consumer that minds epochs reads continues what it has read (KIP-320).

    :param deleted: Where logs begin by now; the records before are unknown.
    """
    if batch.may_follow(log.tip) or batch.base_offset <= deleted:
        return None
    return f"{who}: got {batch} after {log.tip}, where it followed {batch.before}"


INVARIANTS: Final = (
    acknowledged_records_are_committed,
    enough_replicas_hold_what_is_acknowledged,
    too_small_an_isr_is_told_before_the_append,
    latest_offsets_never_go_back,
    clients_read_what_is_committed,
    consumers_miss_no_truncation,
)
"""All of them."""
