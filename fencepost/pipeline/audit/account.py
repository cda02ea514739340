"""What an audit tells of a partition besides what is wrong: what was looked at, and how it went.

An account is made where the partition was examined, and goes as JSON to where the audit was
started; it stays small however much there is of the partition.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

MAX_POINTS: Final = 400
"""Of a series, at most."""
MAX_MARKS: Final = 200
"""Elections, or segments of a replica, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Segments that follow each other, mostly one."""

    start: int
    """The first offset, by the name of the file."""
    end: int
    """Behind the last record (exclusive)."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a replica, or the tier, holds of a partition."""

    place: str
    """``log`` or ``tier``."""
    broker: int | None
    batches: int
    records: int
    """By the headers of the batches."""
    bytes: int
    problems: int
    """Batches and files that are not sound."""
    start: int | None
    """The first offset; None where there is no record."""
    end: int | None
    """Behind the last record (exclusive)."""
    segments: int
    largest: int
    """Bytes of the largest segment."""
    spans: tuple[Span, ...]
    """At most `MAX_MARKS`: where there are more segments, neighbours are told as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Values over time, in order."""

    times: tuple[int, ...] = ()
    """Milliseconds since the epoch."""
    values: tuple[int, ...] = ()
    of: int = 0
    """How many there were before the series was thinned out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A leader begins an epoch."""

    time_ms: int
    leader: int | None
    """None: nobody leads, or it is not known who."""
    epoch: int
    unclean: bool = False
    """Whether the leader was not in the ISR, so that records may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How many records a follower was behind the log end when it fetched."""

    broker: int
    records: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A partition over time."""

    traced: bool
    """Whether it was seen in a trace; else it is told by the timestamps of the batches."""
    log_end: Series
    """The leader's (exclusive)."""
    high_watermark: Series
    latest: Series
    """What ListOffsets answered to clients that asked for the latest offset."""
    gated: Series
    """When it answered OFFSET_NOT_AVAILABLE instead (KIP-207); the values say nothing."""
    lag: tuple[Lag, ...]
    elections: tuple[Election, ...]
    """At most `MAX_MARKS`."""
    elections_of: int
    """How many there were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What a rule found in a partition."""

    rule: str
    found: int
    """Violations, and what is explained."""
    explained: int
    kept: int
    """How many of them are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A rule that could not be followed to its end."""

    rule: str
    topic: str
    partition: int
    reason: str
    """The traceback."""

    @property
    def last(self) -> str:
        """The last line of the reason."""
        return self.reason.strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What there is to tell of a partition."""

    topic: str
    partition: int
    held: tuple[Held, ...]
    """By place and broker."""
    traced: int
    """Rows of the trace that are of this partition."""
    counts: tuple[Count, ...]
    """One a rule that was followed, in the order of the rules."""
    failures: tuple[Failure, ...] = ()
    history: History | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Which partition it is."""
        return self.topic, self.partition

    @property
    def violations(self) -> int:
        """Findings that nothing explains."""
        return sum(each.found - each.explained for each in self.counts)


def to_json(account: Account) -> bytes:
    """An account on its way."""
    return json.dumps(asdict(account), separators=(",", ":")).encode()


def from_json(data: bytes) -> Account:
    """What `to_json` made."""
    # Executors only ever write accounts, and are spared the import.
    from pydantic import TypeAdapter

    return TypeAdapter(Account).validate_json(data)
