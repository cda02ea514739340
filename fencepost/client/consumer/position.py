"""Where a consumer is in a partition, as a state machine.

A position is the offset of the next record, the epoch of the record before it, and the leader in
whose epoch it is valid. It moves so:

- INITIALIZING: there is none yet. The committed offset is looked up; without a group, or where
  nothing is committed, the reset policy decides.
- AWAIT_VALIDATION: there is one with an epoch, and the leader has changed, or the position was
  sought or committed. No record is fetched before OffsetForLeaderEpoch has shown that the leader's
  log has not been truncated below it (KIP-320).
- AWAIT_DIVERGENCE: Fetch answered LOG_TRUNCATION, which only KIP-320's earlier draft has; the first
  offset that differs is looked up.
- AWAIT_RESET: the position is not valid, and the one to go on from is looked up by ListOffsets.
- FETCHING: records are fetched from it.

A seek is possible in every state, and so is the loss of the partition, which ends the machine.
While a partition has a `Problem` nothing is sent for it: the application is told first.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from fencepost.client.consumer.cluster_metadata import NO_EPOCH, LeaderAndEpoch
from fencepost.client.consumer.epoch_cache import EpochCache
from fencepost.client.consumer.fetch_buffer import FetchBuffer
from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
from fencepost.client.consumer.requests import Backoff, Retry
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.model import Partition

NO_TIMESTAMP: Final = -1


class FetchState(StrEnum):
    """A state of the machine."""

    INITIALIZING = "initializing"
    AWAIT_VALIDATION = "await_validation"
    AWAIT_DIVERGENCE = "await_divergence"
    AWAIT_RESET = "await_reset"
    FETCHING = "fetching"


TRANSITIONS: Final[Mapping[FetchState, frozenset[FetchState]]] = MappingProxyType(
    {
        FetchState.INITIALIZING: frozenset(
            {FetchState.AWAIT_VALIDATION, FetchState.AWAIT_RESET, FetchState.FETCHING}
        ),
        FetchState.AWAIT_VALIDATION: frozenset(
            {FetchState.AWAIT_VALIDATION, FetchState.AWAIT_RESET, FetchState.FETCHING}
        ),
        FetchState.AWAIT_DIVERGENCE: frozenset({FetchState.AWAIT_RESET, FetchState.FETCHING}),
        FetchState.AWAIT_RESET: frozenset(
            {FetchState.AWAIT_VALIDATION, FetchState.AWAIT_RESET, FetchState.FETCHING}
        ),
        FetchState.FETCHING: frozenset(FetchState) - {FetchState.INITIALIZING},
    }
)
"""The states that may follow each state."""


class Position(Struct, frozen=True, kw_only=True):
    """A place in a partition's log. A new object for each move: requests are told apart by it."""

    offset: int
    """Of the next record."""
    epoch: int = NO_EPOCH
    """Of the record before it; -1 where it is not known."""
    leader: LeaderAndEpoch
    """In whose log it is valid, or is to be validated."""
    is_read: bool = False
    """Whether this consumer fetched the record before it, so that the epoch is certainly its own.
    One that was sought or committed is taken for a bound (KIP-320, `OffsetAndMetadata`)."""
    timestamp: int = NO_TIMESTAMP
    """Of the record before it, in ms; for KIP-320's earlier draft."""
    log_epoch: int | None = None
    """The epoch of the record before it in the leader's log, where that is less than a bound."""

    @property
    def fetched_epoch(self) -> int:
        """The epoch for a Fetch to name: the leader would call a larger one truncated."""
        return self.epoch if self.log_epoch is None else self.log_epoch

    def to_commit(self) -> OffsetAndMetadata:
        """As it is handed out and committed."""
        return OffsetAndMetadata(
            offset=self.offset,
            leader_epoch=None if self.epoch == NO_EPOCH else self.epoch,
            timestamp=None if self.timestamp == NO_TIMESTAMP else self.timestamp,
        )


class OutOfRange(Struct, frozen=True):
    """The position is not in the log, and no policy moves it."""


class NoOffset(Struct, frozen=True):
    """Nothing is committed, and no policy says where to begin."""


class Corrupt(Struct, frozen=True):
    """The batch at the position is broken."""

    reason: str


Problem: TypeAlias = OutOfRange | NoOffset | Corrupt | Truncation
"""Why a partition waits for its application."""


class AssignedPartition:
    """A partition that the consumer reads, with its position.

    :param validates: Whether positions are validated after a change of leader: not in KIP-320's
        earlier draft, whose brokers check every fetch.
    :ivar position: None in INITIALIZING, and in AWAIT_RESET where there was none before.
    :ivar pending: The request that is under way; answers to others come too late.
    :ivar target: Where to reset to, in AWAIT_RESET.
    :ivar asked_epoch: The epoch to ask about next, in AWAIT_DIVERGENCE.
    :ivar preferred: The follower to fetch from (KIP-392), and until when, in ms.
    :ivar epochs: The epochs that were fetched; for KIP-320's earlier draft.
    """

    def __init__(self, partition: Partition, backoff: Backoff, *, validates: bool) -> None:
        self.partition = partition
        self.state = FetchState.INITIALIZING
        self.position: Position | None = None
        self.is_paused = False
        self.pending: object | None = None
        self.problem: Problem | None = None
        self.target: Target | None = None
        self.asked_epoch: int | None = None
        self.buffer: FetchBuffer | None = None
        self.preferred: tuple[int, int] | None = None
        self.retry = Retry(backoff)
        self.epochs = EpochCache()
        self._validates = validates

    @property
    def has_position(self) -> bool:
        """Whether records may be fetched from the position."""
        return self.state is FetchState.FETCHING

    def seek(self, offset: OffsetAndMetadata, leader: LeaderAndEpoch) -> None:
        """Go to a position that the application, or the group's last commit, names."""
        epoch = NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch
        timestamp = NO_TIMESTAMP if offset.timestamp is None else offset.timestamp
        self.epochs.restart(epoch, offset.offset)
        self._place(Position(offset=offset.offset, epoch=epoch, timestamp=timestamp, leader=leader))

    def see_leader(self, leader: LeaderAndEpoch) -> None:
        """Metadata names a leader: another one has to validate the position first."""
        position = self.position
        if position is None or self.state is FetchState.AWAIT_RESET:
            return
        if leader.leader is None or leader == position.leader:
            return
        self.preferred = None
        if self.state is FetchState.AWAIT_DIVERGENCE:
            self.position = replace(position, leader=leader)
            self.pending = None
            self.asked_epoch = self.epochs.last  # what another leader answered does not count
        else:
            self._place(replace(position, leader=leader, log_epoch=None))

    def validated(self, epoch: int) -> None:
        """The leader's log has the position, and no larger epoch than this before it.

        The position keeps its own: the log of another leader may have it.
        """
        assert self.position is not None
        self._enter(FetchState.FETCHING)
        if epoch < self.position.epoch:
            self.position = replace(self.position, log_epoch=epoch)

    def await_reset(self, target: Target) -> None:
        """Look for another position."""
        self._enter(FetchState.AWAIT_RESET)
        self.target = target

    def await_divergence(self) -> None:
        """Look for the first offset that differs from what was fetched."""
        self._enter(FetchState.AWAIT_DIVERGENCE)
        self.asked_epoch = self.epochs.last

    def move(self, offset: int, epoch: int, leader: LeaderAndEpoch) -> None:
        """Go on from an offset of the leader's log, which needs no validation."""
        self._enter(FetchState.FETCHING)
        self.position = Position(offset=offset, epoch=epoch, leader=leader)
        if epoch == NO_EPOCH:
            self.epochs.restart(epoch, offset)
        else:
            self.epochs.truncate(offset)

    def drop_epoch(self) -> None:
        """Go on from the same offset without the epoch of the record before it."""
        assert self.position is not None
        self.move(self.position.offset, NO_EPOCH, self.position.leader)

    def advance(self, offset: int, epoch: int, timestamp: int) -> None:
        """Records up to an offset, exclusive, were handed out; the last one has this epoch."""
        assert self.position is not None
        assert self.state is FetchState.FETCHING
        leader = self.position.leader
        self.position = Position(
            offset=offset, epoch=epoch, leader=leader, is_read=True, timestamp=timestamp
        )

    def _place(self, position: Position) -> None:
        has_epochs = NO_EPOCH not in {position.epoch, position.leader.epoch}
        validates = self._validates and has_epochs
        self._enter(FetchState.AWAIT_VALIDATION if validates else FetchState.FETCHING)
        self.position = position

    def _enter(self, state: FetchState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"
        self.state = state
        self.pending = None
        self.problem = None
        self.target = None
        self.asked_epoch = None
        self.buffer = None
        self.retry.reset()
