"""Append transaction markers: the leader's part of WriteTxnMarkers."""

from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.transaction_markers import TransactionMarker
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected


def append_marker(replica: Replica, marker: TransactionMarker, *, now_ms: int) -> int | ErrorCode:
    """Append a marker as leader; its offset, or an error."""
    result = replica.append(marker.to_batch(now_ms), now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
    return ErrorCode(result.error) if isinstance(result, AppendRejected) else result.last_offset
