"""Transactions in the partitions of a `Driver`, without a transaction coordinator."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.verification import VerificationGuard
from tests.harness.driver import NEWEST, Asked, Driver
from tests.harness.records import batch


def append_in_transaction(
    driver: Driver, topic: str, producer: tuple[int, int, int], *values: bytes, index: int = 0
) -> int:
    """Append a transactional batch at the leader, as if it were verified; its first offset.

    :param producer: Its id, epoch and base sequence.
    """
    producer_id, epoch, sequence = producer
    replica = driver.leader(topic, index)
    guard = replica.log.maybe_start_verification(
        producer_id, sequence, epoch, supports_epoch_bump=False
    )
    assert guard is None or isinstance(guard, VerificationGuard)
    result = replica.append(
        batch(*values, producer=producer, transactional=True),
        now_ms=driver.clock.wall_ms(),
        guard=guard,
    )
    assert isinstance(result, AppendResult), result
    driver.cluster.scheduler.run_due()
    return result.first_offset


def marker(
    producer_id: int,
    *topics: tuple[str, Sequence[int]],
    committed: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    """A marker for some partitions."""
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_result=committed,
        transaction_version=transaction_version,
        topics=tuple(
            WritableTxnMarkerTopic(name=name, partition_indexes=tuple(indexes))
            for name, indexes in topics
        ),
    )


def write_markers(
    driver: Driver, *markers: WritableTxnMarker, broker_id: int = 1, version: int = NEWEST
) -> Asked:
    """Send WriteTxnMarkers."""
    request = WriteTxnMarkersRequest(markers=markers)
    return driver.send(broker_id, "write_txn_markers", version, request)
