"""The states of a classic group and the transitions between them.

A group is EMPTY until a member joins, and again when the last one has left; a group that only
commits offsets (a "simple" group) is always EMPTY. A member that joins, leaves, misses its session
timeout, or rejoins with another subscription begins a rebalance:

PREPARING_REBALANCE
    Every member has to join (again). JoinGroup requests are parked until all have joined, or until
    the largest rebalance timeout among the members has passed; dynamic members that did not join
    are removed, static ones stay (KIP-345). A group that was EMPTY waits
    ``group.initial.rebalance.delay.ms`` instead, and again while new members join, at most the
    rebalance timeout (KIP-134). Heartbeats are answered REBALANCE_IN_PROGRESS; offsets of the old
    generation can still be committed.
COMPLETING_REBALANCE
    A new generation: the protocol is selected and the JoinGroup requests are answered; the leader
    has the others' subscriptions. SyncGroup requests are parked until the leader's brings the
    assignment and its record is committed. Members that have not synced within the rebalance
    timeout are removed, and another rebalance begins. Offsets cannot be committed.
STABLE
    Each member has its assignment, and keeps it by heartbeats. A follower that joins with unchanged
    protocols is answered with the present generation; the leader's join always begins a rebalance,
    because only the leader sees that a topic has changed. A static member that returns without a
    member id replaces its old self without a rebalance if the selected protocol stays the same.
DEAD
    This broker does not lead the group's partition any more. Parked requests are answered
    NOT_COORDINATOR, and the group object is dropped.

A group that is loaded from the log is STABLE, or EMPTY if it has no members: the states between
write no records.
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
"""The states that each state can follow."""


def is_valid_transition(before: ClassicGroupState, after: ClassicGroupState) -> bool:
    """Whether a group may go from one state to the other."""
    return before in VALID_PREVIOUS_STATES[after]
