"""Where a follower starts over whose fetch its leader refused (KIP-405, KIP-1023): one table.

A leader refuses an offset that it does not have: OFFSET_OUT_OF_RANGE where it is nowhere, and
OFFSET_MOVED_TO_TIERED_STORAGE where the remote tier does. The follower then asks it for offsets
by ListOffsets, one after the other, until a row of `TABLE` says what to do. A row is tried when
all that it is about is known; what is not known is asked for first. So no follower asks for more
than it needs, and the order of the rows is the order of the questions.

An empty follower whose cluster lets it (``follower.fetch.last.tiered.offset.enable``, and a
``metadata.version`` that has KIP-1023) bootstraps: it starts at the first offset that waits to be
tiered, and leaves the records before it to the tier. All others start at the first offset that the
leader has itself, as KIP-405 has it.
"""

from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple

from msgspec import Struct, field

from fencepost.storage.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateEntry

UNKNOWN: Final = -1
"""The offset that a leader answers where it knows none."""


class SpecialTimestamp(IntEnum):
    """What a follower asks for by ListOffsets: the special timestamps."""

    LATEST = -1
    """The leader's log end offset."""
    EARLIEST = -2
    """Its log start offset."""
    EARLIEST_LOCAL = -4
    """Its local log start offset."""
    EARLIEST_PENDING_UPLOAD = -6
    """The offset behind the highest in the tier (v11)."""


class FetchRefusal(Enum):
    """Why a leader did not serve the fetch."""

    OUT_OF_RANGE = auto()
    MOVED_TO_TIER = auto()


class StartProtocol(Enum):
    """By which rules the follower starts over."""

    OLD = auto()
    """KIP-405's, and those from before it."""
    BOOTSTRAP = auto()
    """KIP-1023's: it is empty, and the feature is enabled."""


class OffsetAndEpoch(NamedTuple):
    """An offset, and the leader epoch of the record there; the epoch is -1 where not known."""

    offset: int
    epoch: int


class AuxiliaryState(Struct, frozen=True, kw_only=True):
    """The state of a log before an offset, for a follower that starts there (KIP-405).

    :ivar epochs: The leader epochs of the records before it, oldest first.
    :ivar producers: The producers behind them.
    """

    epochs: tuple[EpochEntry, ...]
    producers: tuple[ProducerStateEntry, ...]

    def since(self, log_start_offset: int) -> tuple[EpochEntry, ...]:
        """The leader epochs of the records from the log start on."""
        cache = LeaderEpochCache(self.epochs)
        cache.truncate_from_start(log_start_offset)
        return cache.entries()


class StartInputs(Struct, frozen=True, kw_only=True):
    """What a follower knows when it decides."""

    refusal: FetchRefusal
    protocol: StartProtocol
    log_end: int
    """Its own log end offset, from which it fetched."""
    offsets: dict[SpecialTimestamp, OffsetAndEpoch] = field(default_factory=dict)
    """Of its leader, so far."""

    @property
    def leader_end(self) -> int:
        """The leader's log end offset."""
        return self.offsets[SpecialTimestamp.LATEST].offset

    @property
    def log_start(self) -> int:
        """The leader's log start offset."""
        return self.offsets[SpecialTimestamp.EARLIEST].offset

    @property
    def local_start(self) -> int:
        """The leader's local log start offset."""
        return self.offsets[SpecialTimestamp.EARLIEST_LOCAL].offset

    @property
    def pending(self) -> int:
        """The leader's earliest offset that waits to be tiered, -1 where it does not know it."""
        return self.offsets[SpecialTimestamp.EARLIEST_PENDING_UPLOAD].offset


class StartAction(Enum):
    """What a follower does."""

    TRUNCATE = auto()
    """Cut its log, and fetch on from there."""
    START = auto()
    """Drop what it has, and fetch from an offset that is its log start then."""
    BUILD = auto()
    """Build the auxiliary state, of the leader's log start to before an offset, from the tier;
    drop what it has, and fetch from that offset."""
    BACK_OFF = auto()
    """Fetch the same again a little later."""


class StartRule(Struct, frozen=True, kw_only=True):
    """One row: where all that it asks for is known and `when` is so, `then` is done."""

    case: str
    """In the words of the KIPs."""
    protocol: StartProtocol
    refusals: frozenset[FetchRefusal] = frozenset(FetchRefusal)
    asks: tuple[SpecialTimestamp, ...]
    """What has to be known to try it."""
    when: Callable[[StartInputs], bool]
    then: StartAction
    at: SpecialTimestamp | None = None
    """The offset that it is done at."""


class StartDecision(NamedTuple):
    """What to do, by which row, and at which offset."""

    row: StartRule
    at: OffsetAndEpoch

    @property
    def action(self) -> StartAction:
        """What to do."""
        return self.row.then


_OUT_OF_RANGE: Final = frozenset({FetchRefusal.OUT_OF_RANGE})
_MOVED: Final = frozenset({FetchRefusal.MOVED_TO_TIER})
_OLD, _BOOTSTRAP = StartProtocol.OLD, StartProtocol.BOOTSTRAP
_END, _START = SpecialTimestamp.LATEST, SpecialTimestamp.EARLIEST
_LOCAL, _PENDING = SpecialTimestamp.EARLIEST_LOCAL, SpecialTimestamp.EARLIEST_PENDING_UPLOAD


def _always(_: StartInputs) -> bool:
    return True


TABLE: Final[tuple[StartRule, ...]] = (
    StartRule(
        case="out of range: the leader's log ends before the follower's",
        protocol=_OLD,
        refusals=_OUT_OF_RANGE,
        asks=(_END,),
        when=lambda f: f.leader_end < f.log_end,
        then=StartAction.TRUNCATE,
        at=_END,
    ),
    StartRule(
        case="out of range: lower than the earliest offset that the leader knows",
        protocol=_OLD,
        refusals=_OUT_OF_RANGE,
        asks=(_END, _START),
        when=lambda f: f.log_start > f.log_end,
        then=StartAction.START,
        at=_START,
    ),
    StartRule(
        case="out of range no more",
        protocol=_OLD,
        refusals=_OUT_OF_RANGE,
        asks=(_END, _START),
        when=_always,
        then=StartAction.BACK_OFF,
    ),
    StartRule(
        case="moved to the tier: but all that is left is local by now",
        protocol=_OLD,
        refusals=_MOVED,
        asks=(_START, _LOCAL),
        when=lambda f: f.local_start == f.log_start,
        then=StartAction.START,
        at=_LOCAL,
    ),
    StartRule(
        case="moved to the tier: auxiliary state for [log start, local log start)",
        protocol=_OLD,
        refusals=_MOVED,
        asks=(_START, _LOCAL),
        when=_always,
        then=StartAction.BUILD,
        at=_LOCAL,
    ),
    StartRule(
        case="auxiliary state for [log start, earliest pending upload)",
        protocol=_BOOTSTRAP,
        asks=(_START, _PENDING),
        when=lambda f: f.pending > f.log_start,
        then=StartAction.BUILD,
        at=_PENDING,
    ),
    StartRule(
        case="nothing is tiered from the log start on: all of it waits to be uploaded",
        protocol=_BOOTSTRAP,
        asks=(_START, _PENDING),
        when=lambda f: f.pending == f.log_start,
        then=StartAction.START,
        at=_PENDING,
    ),
    StartRule(
        case="earliest pending upload < log start: no valid segment is in the tier",
        protocol=_BOOTSTRAP,
        asks=(_START, _PENDING),
        when=lambda f: f.pending != UNKNOWN,
        then=StartAction.START,
        at=_START,
    ),
    StartRule(
        case="earliest pending upload unknown, log start = local log start: nothing tiered yet",
        protocol=_BOOTSTRAP,
        asks=(_START, _PENDING, _LOCAL),
        when=lambda f: f.local_start == f.log_start,
        then=StartAction.START,
        at=_LOCAL,
    ),
    StartRule(
        case="earliest pending upload unknown: the leader does not know it yet",
        protocol=_BOOTSTRAP,
        asks=(_START, _PENDING, _LOCAL),
        when=_always,
        then=StartAction.BACK_OFF,
    ),
)
"""The conditions and their actions; the first row that fits holds. Those of the old protocol
are KIP-1023's recapitulation of it (Case 2.1, Case 2.2), the others its changes."""


def decide(findings: StartInputs) -> SpecialTimestamp | StartDecision:
    """What to ask the leader next, or what to do."""
    for row in TABLE:
        if row.protocol is not findings.protocol or findings.refusal not in row.refusals:
            continue
        for target in row.asks:
            if target not in findings.offsets:
                return target
        if row.when(findings):
            at = OffsetAndEpoch(UNKNOWN, UNKNOWN) if row.at is None else findings.offsets[row.at]
            return StartDecision(row, at)
    raise AssertionError(f"no row for {findings}")
