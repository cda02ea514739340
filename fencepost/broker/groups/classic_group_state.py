"""The states of a classic group, and how it moves between them.

A group is EMPTY until a member joins, and again when the last one is gone; a group that only
commits offsets (a "simple" one) is EMPTY all its life. A member that joins, leaves, falls silent,
or comes back with another subscription begins a rebalance:

PREPARING_REBALANCE
    Every member has to join (again). JoinGroup requests are parked until all have, or until the
    largest rebalance timeout among the members has passed; members that did not come are dropped,
    static ones excepted (KIP-345). A group that was EMPTY waits
    ``group.initial.rebalance.delay.ms`` instead, and once more for as long as members keep coming,
    at most the rebalance timeout (KIP-134). Heartbeats are told REBALANCE_IN_PROGRESS; offsets of
    the old generation can still be committed.
COMPLETING_REBALANCE
    A new generation: the protocol has been voted for and the joins answered, and the leader was
    given the others' subscriptions. SyncGroup requests are parked until the leader's brings the
    assignment and its record is committed. Members that have not synced within the rebalance
    timeout are dropped and the rebalance begins anew. Offsets cannot be committed.
STABLE
    Each member has its assignment. Heartbeats keep it. A follower that joins with what it had is
    answered from memory; the leader's join is always a rebalance, because only the leader can see
    that a topic has changed. A static member that comes back as somebody new takes its old place
    without a rebalance if the vote stays the same.
DEAD
    This broker does not lead the group's partition any more. Requests that were parked are answered
    NOT_COORDINATOR, and the group object is dropped.

From the log a group comes back as STABLE, or EMPTY where it has no members: the states between
leave no records.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ClassicGroupState(Enum):
    """A state; the value is its name in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}
"""Which states each can follow upon."""


def is_valid_transition(before: ClassicGroupState, after: ClassicGroupState) -> bool:
    """Whether a group may move from one state to the other."""
    return before in VALID_PREVIOUS_STATES[after]
