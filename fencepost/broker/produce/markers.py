"""The append of a transaction marker by the leader of a partition (KIP-98, KIP-890)."""

from typing import Final

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected

_COORDINATOR: Final = AppendOrigin.COORDINATOR


def append_marker(replica: Replica, marker: TransactionMarker, *, now_ms: int) -> int | ErrorCode:
    """Append a marker as acks=all does.

    It is appended also where the producer has no open transaction here: its epoch fences the
    producer from then on.

    :param now_ms: The time of day, which becomes the record's timestamp.
    :returns: The offset of the marker; it is not committed yet. NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR; INVALID_PRODUCER_EPOCH where the producer has
        written with a newer epoch, with transaction version 2 also with the same one;
        TRANSACTION_COORDINATOR_FENCED where a newer coordinator has written.
    """
    if not replica.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not replica.has_min_isr():
        return ErrorCode.NOT_ENOUGH_REPLICAS
    result = replica.append(
        marker.to_batch(now_ms),
        now_ms=now_ms,
        origin=_COORDINATOR,
        transaction_version=marker.transaction_version,
    )
    if isinstance(result, AppendRejected):
        return ErrorCode(result.error)
    # Completed transactions are forgotten here where no consumer fetches.
    replica.log.last_stable_offset(replica.high_watermark)
    return result.last_offset
