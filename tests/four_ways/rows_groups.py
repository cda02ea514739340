"""Groups that a test looks at and changes."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import CLIENT_ID, TOPIC
from tests.four_ways.row import JOIN, MEMBER, NEW_TOPIC, PRODUCE, Row, Step

_GROUP: Final = {"group": "g"}
_OFFSETS_TOPIC: Final[Step] = (
    "create_topic",
    {"name": "__consumer_offsets", "assignments": [[1, 2, 3]]},
)
_OFFSETS: Final[Step] = (
    "set_offsets",
    {**_GROUP, "offsets": [{"topic": TOPIC, "partition": 0, "offset": 3, "leader_epoch": 2}]},
)
_BEFORE: Final = (NEW_TOPIC, PRODUCE, _OFFSETS_TOPIC, _OFFSETS)
_SHOWN: Final = {
    "topic": TOPIC,
    "partition": 0,
    "committed_offset": 3,
    "leader_epoch": 2,
    "log_end_offset": 1,
    "lag": -2,
}
_JOINED: Final = (NEW_TOPIC, _OFFSETS_TOPIC, JOIN)
_MEMBER: Final = {"client_id": CLIENT_ID, "host": "/127.0.0.1", "assignment": ["t-0"]}

GROUPS: Final = (
    Row(
        verb="groups",
        command="groups",
        before=_BEFORE,
        answers={"groups": [{"group": "g", "type": "classic", "state": "Empty"}]},
    ),
    Row(
        verb="group",
        command="group g",
        given=_GROUP,
        before=_BEFORE,
        answers={
            "group": "g",
            "state": "Empty",
            "generation": 0,
            "members": [],
            "offsets": [_SHOWN],
        },
    ),
    Row(
        verb="group",
        command="group show nope",
        given={"group": "nope"},
        before=_BEFORE,
        refused="GROUP_ID_NOT_FOUND",
    ),
    Row(
        verb="set_offsets",
        command="group g set-offsets --offset t:0:1",
        given={**_GROUP, "offsets": ["t:0:1"]},
        before=(NEW_TOPIC, PRODUCE, _OFFSETS_TOPIC),
        answers={"offsets": [{"committed_offset": 1, "leader_epoch": -1, "lag": 0}]},
        after=("groups", {}),
        then={"groups": [{"group": "g"}]},
    ),
    Row(
        verb="set_offsets",
        command="group set-offsets g --offset t:7:1",
        given={**_GROUP, "offsets": ["t:7:1"]},
        before=_BEFORE,
        refused="UNKNOWN_TOPIC_OR_PARTITION",
        after=("group", _GROUP),
        then={"offsets": [_SHOWN]},
    ),
    Row(
        verb="delete_offsets",
        command="group delete-offsets g --topic t",
        given={**_GROUP, "topics": [TOPIC]},
        before=_BEFORE,
        answers={"offsets": []},
        after=("group", _GROUP),
        then={"offsets": []},
    ),
    Row(
        verb="wait_for_group",
        command="group g wait --members 0",
        given={**_GROUP, "members": 0},
        before=_BEFORE,
        answers={"state": "Empty"},
    ),
    Row(
        verb="wait_for_group",
        command="group wait g --state stable --timeout-ms 1",
        given={**_GROUP, "state": "stable", "timeout_ms": 1},
        before=_BEFORE,
        refused="REQUEST_TIMED_OUT",
    ),
    Row(
        verb="move_coordinator",
        command="group move g --broker 3",
        given={**_GROUP, "broker": 3},
        before=_BEFORE,
        answers={"coordinator": 3, "offsets": [_SHOWN]},
        after=("group", _GROUP),
        then={"coordinator": 3},
    ),
    Row(
        verb="wait_for_group",
        command="group g wait --members 1",
        given={**_GROUP, "members": 1},
        before=_JOINED,
        answers={
            "state": "Stable",
            "generation": 1,
            "members": [_MEMBER],
            "offsets": [{"committed_offset": -1, "lag": None}],
        },
    ),
    Row(
        verb="rebalance_group",
        command="group g rebalance",
        given=_GROUP,
        before=_JOINED,
        answers={"state": "PreparingRebalance", "members": [_MEMBER]},
    ),
    Row(
        verb="remove_member",
        command=f"group g remove {MEMBER}",
        given={**_GROUP, "member": MEMBER},
        before=_JOINED,
        answers={"state": "Empty", "generation": 2, "members": []},
    ),
    Row(
        verb="rebalance_group",
        command="group rebalance g",
        given=_GROUP,
        before=_BEFORE,
        refused="INVALID_REQUEST",
    ),
    Row(
        verb="remove_member",
        command="group remove g m",
        given={**_GROUP, "member": "m"},
        before=_BEFORE,
        refused="UNKNOWN_MEMBER_ID",
    ),
)
