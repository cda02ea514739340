"""Verification of transactional producers: does the coordinator know the partition (KIP-890)?

Before the first record of a transaction is appended, the leader asks the coordinator whether the
partition is part of it. Meanwhile a marker may end that transaction, and another one begin. So each
verification has a guard of its own: an append needs the guard, and a record or a marker that is
appended makes it worthless.
"""

from typing import final

from msgspec import Struct


@final
class VerificationGuard:
    """What an append shows after its verification; one is equal to itself alone."""

    __slots__ = ()


class Verification(Struct, kw_only=True):
    """A verification that no append has followed yet.

    :ivar lowest_sequence: The lowest base sequence that was to be appended in this epoch.
    :ivar supports_epoch_bump: Whether the producer gets a new epoch with each transaction: then a
        producer without state begins with sequence 0.
    :ivar since_ms: When it was first looked at for its expiration; None before.
    """

    guard: VerificationGuard
    epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    since_ms: int | None = None


class Verifications:
    """Those of one log, by producer id."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: dict[int, Verification] = {}

    def start(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """The guard of a producer's verification, which is begun where none is pending."""
        known = self.pending.get(producer_id)
        if known is None:
            known = self.pending[producer_id] = Verification(
                guard=VerificationGuard(),
                epoch=epoch,
                lowest_sequence=sequence,
                supports_epoch_bump=supports_epoch_bump,
            )
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, sequence
        elif epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        return known.guard

    def clear(self, producer_id: int) -> None:
        """A transactional record or a marker was appended."""
        self.pending.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that were here `expiration_ms` ago, when this was called."""
        for producer_id, each in list(self.pending.items()):
            if each.since_ms is None:
                each.since_ms = now_ms
            elif now_ms - each.since_ms >= expiration_ms:
                del self.pending[producer_id]
