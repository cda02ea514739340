"""What a row of the table says, and what many of them begin with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.four_ways.meeting import TOPIC, Meeting

Json: TypeAlias = Any
Given: TypeAlias = Mapping[str, Any]
Step: TypeAlias = tuple[str, Given]
"""A verb, or what a client asks, by its name in a scenario; and what it is given."""

FAULT_ID: Final = "ID"
"""Stands for the id of the fault that was added before, in what is given and in commands."""
MEMBER: Final = "MEMBER"
"""Stands for the id of the member that `JOIN` has made."""
SINCE: Final = "SINCE"
"""Stands for the number of the event before the one that `WATCH` has seen."""
WATCH: Final[Step] = ("watch", {})
"""The topic is created, and the event of it is watched for."""

PLACE: Final = {"topic": TOPIC, "partition": 0}
THIRD: Final = {**PLACE, "broker": 3}
NEW_TOPIC: Final[Step] = ("create_topic", {"name": TOPIC, "assignments": [[1, 2, 3]]})
PRODUCE: Final[Step] = ("produce", {})
LIST_OFFSETS: Final[Step] = ("list_offsets", {})
JOIN: Final[Step] = ("join", {})
"""A client becomes the one member of group ``g``."""
TRANSACT: Final[Step] = ("transact", {})
"""A client writes a record to the topic in a transaction of id ``x``, which stays open."""
HOLD_THIRD: Final[Step] = ("hold", {**THIRD, "leave_isr": True})
ADD_FAULT: Final[Step] = ("add_fault", {"api": "ListOffsets", "action": {"delay": 0}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A verb with its arguments, and its result in each way."""

    verb: str
    command: str
    """Without ``fencepost``."""
    given: Given = field(default_factory=dict)
    """Parameters by their names in JSON."""
    before: tuple[Step, ...] = (NEW_TOPIC,)
    answers: Json = None
    """Part of its answer. `matches` says what is a part."""
    changes: Given = field(default_factory=dict)
    """Part of what is seen of the cluster afterwards: ``cluster``, ``topics``, ``partition``
    (the topic's first) and ``faults``."""
    meets: Meeting | None = None
    """What a client then does."""
    told: Json = None
    """Part of what it is told."""
    refused: str | None = None
    """By which code, where it is."""
    clock: str = "real"
    configs: Given = field(default_factory=dict)
    """Of the cluster's brokers."""
    after: Step | None = None
    """A verb that is carried out over HTTP before it is seen how the cluster is."""
    then: Json = None
    """Part of its answer; by which code it is refused, where it is."""

    @property
    def name(self) -> str:
        return re.sub(r"[ -]+", "-", self.command)


def partition(**part: Json) -> Given:
    return {"partition": part}
