"""The epochs of the records that a consumer fetched from a partition (KIP-320's earlier draft).

After LOG_TRUNCATION it is compared with the leader's answers to OffsetForLeaderEpoch, from the
largest epoch down, as a follower does with its own log:

    the leader's answer to epoch E         is
    E and where it ends                    the offset that differs: that end, or E's own end if less
    a smaller epoch that was fetched       the same, for that epoch
    a smaller one that was not fetched     no result: the next smaller one that was fetched is asked
    nothing, or none smaller was fetched   unknown: the logs differ before all that is remembered
"""

from typing import Final

from msgspec import Struct

from fencepost.client.consumer.cluster_metadata import NO_EPOCH

MAX_EPOCHS: Final = 16
"""Elections between two of a consumer's fetches are few; an older epoch is forgotten."""


class Divergence(Struct, frozen=True):
    """The first offset that differs from what was fetched; None: it is not known."""

    offset: int | None


class NextEpoch(Struct, frozen=True):
    """The epoch to ask about next."""

    epoch: int


class EpochCache:
    """Epochs and the offsets at which they began, by offset.

    The epochs ascend, unless a leader that was deposed served records after its successor had:
    the draft's consumer sends no current epoch by which the deposed leader would refuse it.
    """

    def __init__(self) -> None:
        self._starts: list[tuple[int, int]] = []

    @property
    def last(self) -> int | None:
        """The largest epoch; None where none is known."""
        return max((epoch for epoch, _ in self._starts), default=None)

    def before(self, offset: int) -> int | None:
        """The epoch of the record before an offset; None where it is not known."""
        return next((epoch for epoch, start in reversed(self._starts) if start < offset), None)

    def restart(self, epoch: int, offset: int) -> None:
        """Forget all: the record before an offset has this epoch; -1: it is not known."""
        self._starts = [] if epoch == NO_EPOCH else [(epoch, max(offset - 1, 0))]

    def add(self, epoch: int, offset: int) -> None:
        """A record of an epoch was fetched."""
        if epoch == NO_EPOCH or (self._starts and epoch == self._starts[-1][0]):
            return
        self._starts.append((epoch, offset))
        if len(self._starts) > MAX_EPOCHS:
            del self._starts[0]

    def truncate(self, offset: int) -> None:
        """Forget the epochs that began at or after an offset."""
        self._starts = [each for each in self._starts if each[1] < offset]

    def compare(self, epoch: int, end_offset: int, fetched_to: int) -> Divergence | NextEpoch:
        """What the leader's answer to OffsetForLeaderEpoch shows.

        :param epoch: The epoch of the answer.
        :param end_offset: Where it ends in the leader's log, exclusive.
        :param fetched_to: The consumer's position.
        """
        floor = max((each for each, _ in self._starts if each <= epoch), default=None)
        if floor is None or end_offset < 0:
            return Divergence(None)
        if floor < epoch:
            return NextEpoch(floor)
        begin = next(start for each, start in self._starts if each == floor)
        # The epochs of the leader's log ascend: no smaller one comes after this one there.
        other = [
            start
            for each, start in self._starts
            if each > floor or (each < floor and start > begin)
        ]
        return Divergence(min([end_offset, fetched_to, *other]))
