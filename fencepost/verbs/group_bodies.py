"""The bodies of the verbs on groups."""

import re
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from msgspec import Meta

from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS, MAX_LISTED, Body, Listed
from fencepost.verbs.model import Before, Examples
from fencepost.verbs.record_bodies import MAX_INT64, Index, TimeoutMs

GroupStateName: TypeAlias = Literal[
    "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
]
"""As Kafka names a classic group's states."""

_STATES: Final = {
    name.lower(): name
    for name in ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
}
_OFFSET_TEXT: Final = re.compile(r"(?P<topic>[^:]+):(?P<partition>\d{1,10}):(?P<offset>\d{1,19})")


def _any_case(given: object) -> object:
    """Kafka ignores the case of a state as well."""
    return _STATES.get(given.lower(), given) if isinstance(given, str) else given


class GroupWaitBody(Body):
    """The group to wait for."""

    state: Annotated[GroupStateName, Before(_any_case)] | None = None
    """Left out: ``Stable``, or ``Empty`` where there are to be no members."""
    members: Annotated[int, Meta(ge=0)] | None = None
    """Left out: any number."""
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS
    """In real time."""

    @property
    def wanted_state(self) -> GroupStateName:
        """The state that is waited for."""
        return self.state or ("Empty" if self.members == 0 else "Stable")

    examples: ClassVar[Examples] = [{"members": 2}, {"state": "Empty", "timeout_ms": 5000}]


class CoordinatorBody(Body):
    """The broker that is to coordinate a group."""

    broker: int
    """Its id; it must be in the ISR of the group's partition of ``__consumer_offsets``."""

    examples: ClassVar[Examples] = [{"broker": 2}]


class OffsetBody(Body):
    """An offset to commit for a group."""

    topic: str
    partition: Index
    offset: Annotated[int, Meta(ge=0, le=MAX_INT64)]
    """Of the next record to consume; whether there is one is not checked."""
    leader_epoch: Annotated[int, Meta(ge=-1, le=2**31 - 1)] = -1
    """Of the last consumed record; -1: not known."""

    examples: ClassVar[Examples] = [{"topic": "orders", "partition": 0, "offset": 17}]

    @classmethod
    def of(cls, given: "str | OffsetBody") -> Self:
        """The offset that a text such as ``orders:0:17`` stands for, or that is given.

        :raises ValueError: When the text is none.
        """
        if not isinstance(given, str):
            return cls.model_validate(given)
        found = _OFFSET_TEXT.fullmatch(given)
        if found is None:
            raise ValueError("input should be an object, or text such as orders:0:17")
        partition, offset = int(found["partition"]), int(found["offset"])
        return cls.model_validate(
            {"topic": found["topic"], "partition": partition, "offset": offset}
        )


GivenOffset: TypeAlias = str | OffsetBody
"""An offset; a text is its topic, partition and offset, such as ``orders:0:17``."""


class OffsetsBody(Body):
    """Offsets to commit for a group."""

    offsets: Annotated[Listed[GivenOffset], Meta(max_length=MAX_LISTED)]
    """Each as an object, or as text: ``orders:0:17``."""

    def check(self) -> None:
        """There is one, and all can be read."""
        if not self.offsets:
            raise ValueError("offsets: give at least one")
        self.all_offsets()

    def all_offsets(self) -> tuple[OffsetBody, ...]:
        """The offsets, however they are given.

        :raises ValueError: When a text is none.
        """
        return tuple(map(OffsetBody.of, self.offsets))

    examples: ClassVar[Examples] = [
        {"offsets": [{"topic": "orders", "partition": 0, "offset": 17}]}
    ]


class TopicsBody(Body):
    """Topics whose offsets a group is to lose."""

    topics: Annotated[Listed[str], Meta(max_length=MAX_LISTED)]
    """Each by name; the group has to have offsets of it."""

    def check(self) -> None:
        """There is one."""
        if not self.topics:
            raise ValueError("topics: give at least one")

    examples: ClassVar[Examples] = [{"topics": ["orders"]}]
