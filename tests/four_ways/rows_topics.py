"""Actions on topics, partitions and replicas."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import TOPIC
from tests.four_ways.row import HOLD_THIRD, NEW_TOPIC, PLACE, PRODUCE, THIRD, Row, Step, partition

_COMPACTED: Final[Step] = (
    "create_topic",
    {
        "name": TOPIC,
        "assignments": [[1, 2, 3]],
        # It is never dirty enough to be compacted unless an operator asks for it.
        "configs": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"},
    },
)
_PRODUCE_KEY: Final[Step] = ("produce_key", {})

TOPICS: Final = (
    Row(
        verb="create_topic",
        command="topic create new:2:3,retention.ms=7000",
        given={"name": "new:2:3,retention.ms=7000"},
        answers={
            "name": "new",
            "partitions": 2,
            "replication_factor": 3,
            "configs": {"retention.ms": "7000"},
        },
        changes={"topics": [{"name": "new"}, {"name": TOPIC}]},
    ),
    Row(
        verb="create_topic",
        command="topic create new --assignment 2,3 --assignment 3,1 --config retention.ms=7000",
        given={
            "name": "new",
            "assignments": [[2, 3], [3, 1]],
            "configs": {"retention.ms": "7000"},
        },
        answers={"name": "new", "partitions": 2, "replication_factor": 2},
        changes={"topics": [{"name": "new", "configs": {"retention.ms": "7000"}}, {"name": TOPIC}]},
    ),
    Row(
        verb="create_topic",
        command="topic create t --partitions 2",
        given={"name": TOPIC, "partitions": 2},
        refused="TOPIC_ALREADY_EXISTS",
    ),
    Row(
        verb="delete_topic",
        command="topic delete t",
        given={"topic": TOPIC},
        changes={"topics": []},
    ),
    Row(
        verb="elect",
        command="elect t 0 --leader 2",
        given={**PLACE, "leader": 2},
        answers={"leader": 2, "leader_epoch": 1},
        changes=partition(leader=2, leader_epoch=1),
    ),
    Row(
        verb="elect",
        command="elect t 0 --leader 3",
        given={**PLACE, "leader": 3},
        before=(NEW_TOPIC, HOLD_THIRD),
        refused="ELIGIBLE_LEADERS_NOT_AVAILABLE",
        changes=partition(leader=1, isr=[1, 2]),
    ),
    Row(
        verb="elect",
        command="elect t 0 --leader 3 --unclean",
        given={**PLACE, "leader": 3, "unclean": True},
        before=(NEW_TOPIC, HOLD_THIRD, PRODUCE),
        answers={"leader": 3, "lost": {"broker": 1, "start_offset": 0, "records": 1}},
        changes=partition(leader=3, high_watermark=0),
    ),
    Row(
        verb="roll",
        command="roll t 0",
        given=PLACE,
        before=(NEW_TOPIC, PRODUCE),
        changes=partition(replicas=[{"segments": [{"records": 1}, {"records": 0}]}, {}, {}]),
    ),
    Row(
        verb="compact",
        command="compact t 0",
        given=PLACE,
        before=(_COMPACTED, *(3 * (_PRODUCE_KEY,)), ("roll", PLACE)),
        answers={"replicas": [{"broker": b, "dropped": 2} for b in (1, 2, 3)]},
        changes=partition(replicas=[{"segments": [{"records": 1}, {}]}, {}, {}]),
    ),
    Row(
        verb="compact",
        command="compact t 0",
        given=PLACE,
        refused="INVALID_REQUEST",
    ),
)

REPLICAS: Final = (
    Row(
        verb="hold",
        command="hold t 0 3 --leave-isr",
        given={**THIRD, "leave_isr": True},
        answers={"isr": [1, 2]},
        changes=partition(replicas=[{}, {}, {"held": True, "held_at": None}]),
    ),
    Row(
        verb="hold",
        command="hold t 0 3 --at 7",
        given={**THIRD, "at": 7},
        answers={"isr": [1, 2, 3]},
        changes=partition(replicas=[{}, {}, {"held": True, "held_at": 7}]),
    ),
    Row(
        verb="release",
        command="release t 0 3",
        given=THIRD,
        before=(NEW_TOPIC, HOLD_THIRD, PRODUCE),
        changes=partition(isr=[1, 2, 3], replicas=[{}, {}, {"held": False, "log_end_offset": 1}]),
    ),
    Row(
        verb="step",
        command="step t 0 3 --fetches 2",
        given={**THIRD, "fetches": 2},
        before=(NEW_TOPIC, HOLD_THIRD, PRODUCE),
        answers={"fetches": [{"api": "Fetch", "appended": 1}, {"appended": 0}]},
        changes=partition(replicas=[{}, {}, {"held": True, "log_end_offset": 1}]),
    ),
    Row(
        verb="wipe",
        command="wipe t 0 3",
        given=THIRD,
        before=(NEW_TOPIC, HOLD_THIRD, PRODUCE, ("release", THIRD), HOLD_THIRD),
        answers={"isr": [1, 2]},
        changes=partition(replicas=[{}, {}, {"log_end_offset": 0}]),
    ),
)
