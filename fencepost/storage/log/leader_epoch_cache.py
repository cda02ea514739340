"""The leader-epoch cache: where each leader epoch's records begin (KIP-101, KIP-279, KIP-320)."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """One leader epoch and the offset of its first record (inclusive)."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """The answer to "where does this epoch end": the epoch found and its end (exclusive)."""

    epoch: int
    end_offset: int


UNDEFINED_END_OFFSET: Final = EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)


class TruncationStep(NamedTuple):
    """One comparison of a follower's epochs with its leader's."""

    offset: int
    """Where the follower truncates its log (exclusive end of what remains)."""
    is_common: bool
    """Whether both logs are the same up to there; else an older epoch must be compared."""


def truncation_step(leader: EpochEndOffset, own: EpochEndOffset) -> TruncationStep:
    """What a follower does with its leader's answer (KIP-101, KIP-279).

    :param leader: The leader's largest epoch that is not above the follower's newest, and its end.
    :param own: What the follower itself knows of the leader's epoch, and where it ends.
    """
    if own.epoch < 0:
        return TruncationStep(leader.end_offset, is_common=True)
    return TruncationStep(
        min(leader.end_offset, own.end_offset), is_common=own.epoch == leader.epoch
    )


class LeaderEpochCache:
    """Epochs and start offsets, both strictly rising.

    Kept as two parallel lists, because the one question on the way of an append is whether the
    last epoch is still the same.

    :ivar on_change: Called after every change.
    """

    __slots__ = ("_entries", "_epochs", "_starts", "on_change")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self.on_change: Callable[[], None] = _ignore_change
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._entries: tuple[EpochEntry, ...] | None = ()
        """Both together; None after a change, until they are asked for."""
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def latest(self) -> int | None:
        """The newest epoch known, None where none is."""
        return self._epochs[-1] if self._epochs else None

    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        if self._entries is None:
            self._entries = tuple(map(EpochEntry, self._epochs, self._starts))
        return self._entries

    def assign_or_clear(self, epoch: int, start_offset: int) -> None:
        """Assign the epoch of a batch; one of the old message format has none and clears all."""
        if epoch == UNDEFINED_EPOCH:
            self.clear()
        else:
            self.assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`, unless that is known already.

        Entries that the new one contradicts (as new or newer, or beginning as late or later) are
        dropped: an epoch that wrote nothing leaves no entry behind.

        :returns: Whether anything changed.
        :raises ValueError: When either is negative.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot begin at offset {start_offset}")
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self._changed()
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch <= `epoch`, and the end of it (exclusive).

        That end is the start of the next larger epoch, or the log end for the newest. An epoch
        older than all that are known ends where the oldest known one begins; one newer than all,
        and -1, end nowhere.
        """
        epochs = self._epochs
        if epoch == UNDEFINED_EPOCH or not epochs or epoch > epochs[-1]:
            return UNDEFINED_END_OFFSET
        if epoch == epochs[-1]:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(epochs, epoch)
        found = epochs[higher - 1] if higher else epoch
        return EpochEndOffset(found, self._starts[higher])

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that a record at `offset` was, or would be, written in."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after `end_offset`."""
        if not self._starts or self._starts[-1] < end_offset:
            return
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
        self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at or before `start_offset`; the next begins there."""
        index = bisect_right(self._starts, start_offset)
        if index and self._starts[0] < start_offset:
            del self._epochs[: index - 1], self._starts[: index - 1]
            self._starts[0] = start_offset
            self._changed()

    def clear(self) -> None:
        """Drop everything."""
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._changed()

    def _changed(self) -> None:
        self._entries = None
        self.on_change()


def _ignore_change() -> None:
    """No listener is set."""
