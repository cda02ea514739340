"""Brokers that do something wrong with transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fencepost.broker.coordinator.commit_queue import LoadedBatch, ReplicaLog
from fencepost.broker.transactions import transaction_partitions
from fencepost.broker.transactions.transaction_partitions import check_producer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import TRANSACTIONAL_FLAG
from fencepost.storage.log.producer_state import ProducerStateManager
from fencepost.storage.log.segmented_log import SegmentedLog
from tests.scenario.mutation import Mutant, set_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fencepost.broker.transactions.transaction_metadata import (
        ProducerIdAndEpoch,
        TransactionMetadata,
    )
    from fencepost.storage.log.verification import VerificationGuard


def _open_transactions_hold_back_nothing() -> None:
    def wrong(_self: SegmentedLog, high_watermark: int) -> int:
        return high_watermark

    set_attribute(SegmentedLog, "last_stable_offset", wrong)


def _no_epoch_of_a_producer_is_old() -> None:
    def wrong(current: TransactionMetadata, producer: ProducerIdAndEpoch) -> ErrorCode:
        error = check_producer(current, producer)
        return ErrorCode.NONE if error is ErrorCode.PRODUCER_FENCED else error

    def verified(
        self: ProducerStateManager,
        producer_id: int,
        sequence: int,
        epoch: int,
        *,
        supports_epoch_bump: bool,
    ) -> VerificationGuard | None:
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        return self._verifications.start(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        )

    def no_refusal(_self: ProducerStateManager, *_what: object, **_how: object) -> None:
        return None

    set_attribute(transaction_partitions, "check_producer", wrong)
    set_attribute(ProducerStateManager, "maybe_start_verification", verified)
    set_attribute(ProducerStateManager, "refusal", no_refusal)
    set_attribute(ProducerStateManager, "verification_refusal", no_refusal)


def _pending_offsets_are_not_read() -> None:
    read_all = ReplicaLog.read_all

    def wrong(self: ReplicaLog) -> Iterator[LoadedBatch]:
        for each in read_all(self):
            if not each.header.attributes & TRANSACTIONAL_FLAG:
                yield each

    set_attribute(ReplicaLog, "read_all", wrong)


MUTANTS: Final = {
    "kip-98-zombie-producer": Mutant(
        does="Neither partitions nor the coordinator look at the epoch of a producer.",
        noticed="The first one wakes up and goes on with its transaction.",
        apply=_no_epoch_of_a_producer_is_old,
    ),
    "kip-664-hanging-transaction": Mutant(
        does="The last stable offset is the high watermark.",
        noticed="A read_committed consumer does not get it.",
        apply=_open_transactions_hold_back_nothing,
    ),
    "kip-890-late-write": Mutant(
        does="Neither partitions nor the coordinator look at the epoch of a producer.",
        noticed="a1 arrives in its old epoch.",
        apply=_no_epoch_of_a_producer_is_old,
    ),
    "kip-447-coordinator-failover": Mutant(
        does="A new coordinator does not read the offsets that are pending.",
        noticed="The new one knows that an offset is pending,",
        apply=_pending_offsets_are_not_read,
    ),
}
