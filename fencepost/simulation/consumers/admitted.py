"""What the proposals themselves let consumers miss: each exception to the invariants, as data.

Whatever breaks an invariant and is none of these is a bug. The checker counts each that is met.
"""

from typing import Final

from msgspec import Struct


class Admitted(Struct, frozen=True, kw_only=True):
    """One exception."""

    name: str
    section: str
    """Of the proposal that admits it."""
    statement: str
    is_drafted: bool
    """Whether it is the earlier draft's alone."""


DEPOSED_LEADER: Final = Admitted(
    name="deposed_leader",
    section="KIP-320, earlier draft: Fetch v9",
    statement="the request has no current epoch, so that a leader that was deposed serves a "
    "consumer that knows of a newer epoch",
    is_drafted=True,
)
IGNORED: Final = Admitted(
    name="ignored",
    section="KIP-320, earlier draft: Consumer handling",
    statement="after a TruncatedPartitionException that is ignored, the consumer goes on from the "
    "same offset, without an epoch: what it reads need not continue what it has read",
    is_drafted=True,
)
UNKNOWN_OFFSET: Final = Admitted(
    name="unknown_offset",
    section="KIP-320, earlier draft: Consumer handling",
    statement="where the logs differ before all that the cache of epochs remembers, the truncation "
    "offset is unknown, and the policy decides where to go on",
    is_drafted=True,
)
ABOVE_THE_END: Final = Admitted(
    name="above_the_end",
    section="KIP-320, earlier draft: Consumer handling",
    statement="only an offset below the log start is out of range: a position without an epoch "
    "that was truncated away waits above the log end until the log reaches it",
    is_drafted=True,
)
OLDER_EPOCH: Final = Admitted(
    name="older_epoch",
    section="KIP-320, earlier draft: Fetch v9",
    statement="LOG_TRUNCATION is answered where a larger epoch began below the fetch offset: after "
    "several unclean elections a record of a smaller epoch may be there instead",
    is_drafted=True,
)
BOUND: Final = Admitted(
    name="bound",
    section="KIP-320: OffsetAndMetadata",
    statement="a committed or sought epoch is a bound: a record of a smaller epoch before the "
    "offset is no truncation",
    is_drafted=False,
)
EARLIER_DIVERGENCE: Final = Admitted(
    name="earlier_divergence",
    section="KIP-320: Consumer handling",
    statement="the divergent offset is where the largest epoch not above the position's ends in "
    "the leader's log, or that of the last record; the logs may differ before it",
    is_drafted=False,
)
NOTHING_KNOWN: Final = Admitted(
    name="nothing_known",
    section="KIP-320: Consumer handling",
    statement="a leader that knows no epoch up to the position's can't say where the logs diverge",
    is_drafted=False,
)
LOST_IN_TIER: Final = Admitted(
    name="lost_in_tier",
    section="KIP-405: Fetch",
    statement="an offset between the log start and the local log that the tier has lost is out of "
    "range: a consumer that resets to the log start comes to it again and again",
    is_drafted=False,
)
ADMITTED: Final = (
    DEPOSED_LEADER,
    IGNORED,
    UNKNOWN_OFFSET,
    ABOVE_THE_END,
    OLDER_EPOCH,
    BOUND,
    EARLIER_DIVERGENCE,
    NOTHING_KNOWN,
    LOST_IN_TIER,
)
"""All of them."""
