"""The table: every verb of the catalogue and every kind of fault, and what it changes.

A row is done in four ways; its words on the command line stand here as a person types them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.four_ways.meeting import (
    CLIENT_ID,
    LATE_MS,
    TOPIC,
    Meeting,
    fetch,
    list_offsets,
    metadata,
    produce,
)

Json: TypeAlias = Any
Given: TypeAlias = Mapping[str, Any]
Step: TypeAlias = tuple[str, Given]
"""A verb, or what a client asks, by its name in a scenario; and what it is given."""

FAULT_ID: Final = "ID"
"""Stands for the id of the fault that was added before, in what is given and in commands."""
TIERED: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "2147483647",
}
"""Broker configs of a cluster with a tier that is left alone unless a verb says otherwise."""
SINCE: Final = "SINCE"
"""Stands for the number of the event before the one that `WATCH` has seen."""
WATCH: Final[Step] = ("watch", {})
"""The topic is created, and the event of it is watched for."""

_PLACE: Final = {"topic": TOPIC, "partition": 0}
_THIRD: Final = {**_PLACE, "broker": 3}
_TOPIC: Final[Step] = ("create_topic", {"name": TOPIC, "assignments": [[1, 2, 3]]})
_COMPACTED: Final[Step] = (
    "create_topic",
    {
        "name": TOPIC,
        "assignments": [[1, 2, 3]],
        # It is never dirty enough to be compacted unless somebody says so.
        "configs": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"},
    },
)
_PRODUCE: Final[Step] = ("produce", {})
_PRODUCE_KEY: Final[Step] = ("produce_key", {})
_LIST_OFFSETS: Final[Step] = ("list_offsets", {})
_HOLD: Final[Step] = ("hold", {**_THIRD, "leave_isr": True})
_FAULT: Final[Step] = ("add_fault", {"api": "ListOffsets", "action": {"delay": 0}})
_ASKED: Final = {"api": "ListOffsets", "client_id": CLIENT_ID, "version": 7, "broker": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that is done, and what comes of it in each way."""

    verb: str
    command: str
    """Without ``fencepost``."""
    given: Given = field(default_factory=dict)
    """Parameters by their names in JSON."""
    before: tuple[Step, ...] = (_TOPIC,)
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


def _partition(**part: Json) -> Given:
    return {"partition": part}


def _brokers(**second: Json) -> Given:
    return {"cluster": {"brokers": [{}, second, {}]}}


def _fault(
    action: Given,
    option: str,
    meets: Meeting,
    told: Json,
    *,
    api: str = "Produce",
    stored: int = 0,
    before: tuple[Step, ...] = (_TOPIC,),
) -> Row:
    return Row(
        verb="add_fault",
        command=f"fault add {api} {option}",
        given={"api": api, "action": action},
        before=before,
        answers={"api": api, "action": action, "hits": 0, "left": 1},
        changes={"faults": [{"action": action}]},
        meets=meets,
        told={"log_end": stored, "hits": 1, **told},
    )


LOOKING: Final = (
    Row(verb="healthz", command="healthcheck", before=(), answers={"status": "ok"}),
    Row(verb="cluster", command="cluster", answers={"brokers": [{"id": 1}, {"id": 2}, {"id": 3}]}),
    Row(verb="topics", command="topics", answers=[{"name": TOPIC, "replication_factor": 3}]),
    Row(
        verb="partition",
        command="partition t 0",
        given=_PLACE,
        before=(_TOPIC, _PRODUCE),
        answers={"leader": 1, "isr": [1, 2, 3], "high_watermark": 1},
    ),
    Row(
        verb="trace",
        command=f"trace list --api ListOffsets --client-id {CLIENT_ID} --limit 1",
        given={"api": "ListOffsets", "client_id": CLIENT_ID, "limit": 1},
        before=(_TOPIC, _LIST_OFFSETS, _LIST_OFFSETS),
        answers=[_ASKED],
    ),
    Row(
        verb="wait_for_trace",
        command="trace wait --api ListOffsets --topic t --timeout-ms 5000",
        given={"api": "ListOffsets", "topic": TOPIC, "timeout_ms": 5000},
        before=(_TOPIC, _LIST_OFFSETS),
        answers=_ASKED,
    ),
    Row(
        verb="wait_for_trace",
        command="trace wait --api Heartbeat --timeout-ms 1",
        given={"api": "Heartbeat", "timeout_ms": 1},
        refused="REQUEST_TIMED_OUT",
    ),
    Row(
        verb="events",
        command="events --since SINCE --count 1",
        given={"since": SINCE},
        before=(WATCH,),
        answers={"kind": "topic_created", "topic": TOPIC},
    ),
)

TOPICS: Final = (
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
        given={**_PLACE, "leader": 2},
        answers={"leader": 2, "leader_epoch": 1},
        changes=_partition(leader=2, leader_epoch=1),
    ),
    Row(
        verb="elect",
        command="elect t 0 --leader 3",
        given={**_PLACE, "leader": 3},
        before=(_TOPIC, _HOLD),
        refused="ELIGIBLE_LEADERS_NOT_AVAILABLE",
        changes=_partition(leader=1, isr=[1, 2]),
    ),
    Row(
        verb="elect",
        command="elect t 0 --leader 3 --unclean",
        given={**_PLACE, "leader": 3, "unclean": True},
        before=(_TOPIC, _HOLD, _PRODUCE),
        answers={"leader": 3},
        changes=_partition(leader=3, high_watermark=0),
    ),
    Row(
        verb="roll",
        command="roll t 0",
        given=_PLACE,
        before=(_TOPIC, _PRODUCE),
        changes=_partition(replicas=[{"segments": [{"records": 1}, {"records": 0}]}, {}, {}]),
    ),
    Row(
        verb="compact",
        command="compact t 0",
        given=_PLACE,
        before=(_COMPACTED, *(3 * (_PRODUCE_KEY,)), ("roll", _PLACE)),
        answers={"replicas": [{"broker": b, "dropped": 2} for b in (1, 2, 3)]},
        changes=_partition(replicas=[{"segments": [{"records": 1}, {}]}, {}, {}]),
    ),
    Row(
        verb="compact",
        command="compact t 0",
        given=_PLACE,
        refused="INVALID_REQUEST",
    ),
)

REPLICAS: Final = (
    Row(
        verb="hold",
        command="hold t 0 3 --leave-isr",
        given={**_THIRD, "leave_isr": True},
        answers={"isr": [1, 2]},
        changes=_partition(replicas=[{}, {}, {"held": True, "held_at": None}]),
    ),
    Row(
        verb="hold",
        command="hold t 0 3 --at 7",
        given={**_THIRD, "at": 7},
        answers={"isr": [1, 2, 3]},
        changes=_partition(replicas=[{}, {}, {"held": True, "held_at": 7}]),
    ),
    Row(
        verb="release",
        command="release t 0 3",
        given=_THIRD,
        before=(_TOPIC, _HOLD, _PRODUCE),
        changes=_partition(isr=[1, 2, 3], replicas=[{}, {}, {"held": False, "log_end_offset": 1}]),
    ),
    Row(
        verb="step",
        command="step t 0 3 --fetches 2",
        given={**_THIRD, "fetches": 2},
        before=(_TOPIC, _HOLD, _PRODUCE),
        answers={"fetches": [{"api": "Fetch", "appended": 1}, {"appended": 0}]},
        changes=_partition(replicas=[{}, {}, {"held": True, "log_end_offset": 1}]),
    ),
    Row(
        verb="wipe",
        command="wipe t 0 3",
        given=_THIRD,
        before=(_TOPIC, _HOLD, _PRODUCE, ("release", _THIRD), _HOLD),
        answers={"isr": [1, 2]},
        changes=_partition(replicas=[{}, {}, {"log_end_offset": 0}]),
    ),
)

_SECOND: Final = {"broker": 2}
BROKERS: Final = (
    Row(
        verb="stop_broker",
        command="broker stop 2",
        given=_SECOND,
        answers={"id": 2, "state": "stopped", "fenced": True},
        changes=_brokers(state="stopped"),
    ),
    Row(
        verb="kill_broker",
        command="broker kill 2 --fence never",
        given={**_SECOND, "fence": "never"},
        answers={"id": 2, "state": "killed", "fenced": False},
        changes=_brokers(state="killed", fenced=False),
    ),
    Row(
        verb="start_broker",
        command="broker start 2",
        given=_SECOND,
        before=(_TOPIC, ("kill_broker", _SECOND)),
        answers={"id": 2, "state": "running"},
        changes={**_brokers(state="running"), **_partition(offline=[])},
    ),
    Row(
        verb="isolate_broker",
        command="broker isolate 2 --from 1 --from 3",
        given={**_SECOND, "from": [1, 3]},
        answers={"id": 2, "isolated_from": [1, 3]},
        changes=_brokers(isolated_from=[1, 3]),
    ),
    Row(
        verb="isolate_broker",
        command="broker isolate 2 --from controller --fence never",
        given={**_SECOND, "from": "controller", "fence": "never"},
        answers={"id": 2, "isolated_from": ["controller"], "fenced": False},
        changes=_brokers(isolated_from=["controller"], fenced=False),
    ),
    Row(
        verb="rejoin_broker",
        command="broker rejoin 2",
        given=_SECOND,
        before=(_TOPIC, ("isolate_broker", {**_SECOND, "from": "controller"})),
        answers={"id": 2, "isolated_from": [], "fenced": False},
        changes={**_brokers(isolated_from=[]), **_partition(offline=[])},
    ),
    Row(
        verb="advance_clock",
        command="clock advance 500",
        given={"ms": 500},
        answers={"mode": "manual"},
        changes={"elapsed_ms": 500},
        clock="manual",
    ),
    Row(
        verb="advance_clock",
        command="clock advance 500",
        given={"ms": 500},
        refused="INVALID_REQUEST",
    ),
    Row(
        verb="reset",
        command="reset",
        before=(_TOPIC, _FAULT),
        changes={"topics": [], "faults": []},
    ),
)

FAULTS: Final = (
    _fault(
        {"error": "NOT_ENOUGH_REPLICAS"},
        "--error NOT_ENOUGH_REPLICAS",
        produce,
        {"told": "NOT_ENOUGH_REPLICAS"},
    ),
    _fault(
        {"error": "REQUEST_TIMED_OUT"},
        "--error REQUEST_TIMED_OUT",
        produce,
        {"told": "REQUEST_TIMED_OUT"},
        stored=1,
    ),
    _fault(
        {"delay": LATE_MS}, f"--delay {LATE_MS}", produce, {"told": "NONE", "late": True}, stored=1
    ),
    _fault({"disconnect": "before"}, "--disconnect before", produce, {"told": "goodbye"}),
    _fault({"disconnect": "after"}, "--disconnect after", produce, {"told": "goodbye"}, stored=1),
    _fault({"throttle": 70}, "--throttle 70", produce, {"told": "NONE", "throttled": 70}, stored=1),
    _fault({"drop": True}, "--drop", produce, {"told": "nothing"}, stored=1),
    _fault({"corrupt": True}, "--corrupt", produce, {"told": "CORRUPT_MESSAGE"}),
    _fault(
        {"corrupt": True},
        "--corrupt",
        fetch,
        {"told": "NONE, corrupt"},
        api="Fetch",
        stored=1,
        before=(_TOPIC, _PRODUCE),
    ),
    _fault(
        {"stale_metadata": 0},
        "--stale-metadata 0",
        metadata,
        {"told": "1 in epoch 0"},
        api="Metadata",
        before=(_TOPIC, ("elect", {**_PLACE, "leader": 2})),
    ),
    Row(
        verb="add_fault",
        command=(
            "fault add Produce --versions 9- --broker 1 --source clients --topic t --partition 0"
            f" --client-id {CLIENT_ID} --count always --after 1 --probability 1 --error 87"
        ),
        given={
            "api": "Produce",
            "versions": "9-",
            "broker": 1,
            "source": "clients",
            "topic": TOPIC,
            "partition": 0,
            "client_id": CLIENT_ID,
            "count": None,
            "after": 1,
            "probability": 1,
            "action": {"error": 87},
        },
        answers={"left": None, "action": {"error": "INVALID_RECORD"}},
        changes={"faults": [{"versions": "9-", "broker": 1, "partition": 0, "after": 1}]},
        meets=produce,
        told={"told": "NONE", "log_end": 1, "hits": 0},
    ),
    Row(
        verb="add_fault",
        command="fault add Heartbeat --group g --error UNKNOWN_MEMBER_ID",
        given={"api": "Heartbeat", "group": "g", "action": {"error": "UNKNOWN_MEMBER_ID"}},
        changes={"faults": [{"api": "Heartbeat", "group": "g"}]},
    ),
    Row(
        verb="add_fault",
        command="fault add InitProducerId --transactional-id x --delay 5",
        given={"api": "InitProducerId", "transactional_id": "x", "action": {"delay": 5}},
        changes={"faults": [{"transactional_id": "x"}]},
    ),
    Row(
        verb="add_fault",
        command="fault add Heartbeat --corrupt",
        given={"api": "Heartbeat", "action": {"corrupt": True}},
        refused="INVALID_REQUEST",
        changes={"faults": []},
    ),
    Row(
        verb="faults",
        command="fault list",
        before=(_TOPIC, _FAULT, _FAULT),
        answers=[{"api": "ListOffsets"}, {"api": "ListOffsets"}],
    ),
    Row(
        verb="fault",
        command="fault show ID",
        given={"id": FAULT_ID},
        before=(_TOPIC, _FAULT, _LIST_OFFSETS),
        answers={"api": "ListOffsets", "hits": 1, "left": 0},
    ),
    Row(
        verb="wait_for_fault",
        command="fault wait ID --hits 1 --timeout-ms 5000",
        given={"id": FAULT_ID, "hits": 1, "timeout_ms": 5000},
        before=(_TOPIC, _FAULT, _LIST_OFFSETS),
        answers={"hits": 1},
    ),
    Row(
        verb="wait_for_fault",
        command="fault wait ID --hits 2 --timeout-ms 1",
        given={"id": FAULT_ID, "hits": 2, "timeout_ms": 1},
        before=(_TOPIC, _FAULT),
        refused="REQUEST_TIMED_OUT",
    ),
    Row(
        verb="remove_fault",
        command="fault remove ID",
        given={"id": FAULT_ID},
        before=(_TOPIC, _FAULT, _LIST_OFFSETS),
        answers={"hits": 1},
        changes={"faults": []},
        meets=list_offsets,
        told={"told": "NONE 0"},
    ),
    Row(
        verb="remove_faults",
        command="fault clear",
        before=(_TOPIC, _FAULT, _FAULT),
        changes={"faults": []},
    ),
)

_HOUR_MS: Final = 3_600_000
_NEW_TIERED: Final[Step] = (
    "create_topic",
    {
        "name": TOPIC,
        "assignments": [[1, 2, 3]],
        "configs": {
            "remote.storage.enable": "true",
            "retention.ms": str(_HOUR_MS),
            "message.timestamp.type": "LogAppendTime",  # a manual clock goes on from way to way
        },
    },
)
_CLOSED: Final = (_NEW_TIERED, _PRODUCE, ("roll", _PLACE))
"""A segment of one record that may be uploaded."""
_UPLOAD: Final[Step] = ("tier", {**_PLACE, "action": "upload"})
_DELETE_LOCAL: Final[Step] = ("tier", {**_PLACE, "action": "delete-local"})
_TIER_FAULT: Final[Step] = ("add_tier_fault", {"operation": "delete", "delay_ms": 5})
_FIRST: Final = {"start_offset": 0, "end_offset": 0, "epochs": [{"epoch": 0, "start_offset": 0}]}
_HAS_FIRST: Final = {"last_tiered_offset": 0, "pending_upload_offset": 1, "segments": [_FIRST]}
_HAS_NOTHING: Final = {"last_tiered_offset": -1, "pending_upload_offset": -1, "segments": []}


def _tier(action: str, *before: Step, clock: str = "real", **came: Json) -> Row:
    return Row(
        verb="tier",
        command=f"tier {action} t 0",
        given={**_PLACE, "action": action},
        before=before,
        configs=TIERED,
        clock=clock,
        **came,
    )


def _tier_fault(given: Given, options: str, before: tuple[Step, ...], **came: Json) -> Row:
    return Row(
        verb="add_tier_fault",
        command=f"tier add-fault {given['operation']} {options}",
        given=given,
        before=before,
        answers={**given, "hits": 0, "left": given.get("count", 1)},
        configs=TIERED,
        **came,
    )


TIER: Final = (
    _tier(
        "upload",
        *_CLOSED,
        answers={"uploaded": [_FIRST], "remote": _HAS_FIRST},
        changes=_partition(remote=_HAS_FIRST),
    ),
    _tier(
        "delete-local",
        *(*_CLOSED, _UPLOAD),
        answers={
            "deleted_locally": [
                {"broker": b, "segments": 1, "local_log_start_offset": 1} for b in (1, 2, 3)
            ]
        },
        changes=_partition(
            log_start_offset=0, replicas=3 * [{"log_start_offset": 0, "local_log_start_offset": 1}]
        ),
        meets=fetch,
        told={"told": "NONE, whole", "log_end": 1, "hits": 0},
    ),
    _tier(
        "expire",
        *(*_CLOSED, _UPLOAD, ("advance_clock", {"ms": 2 * _HOUR_MS})),
        clock="manual",
        answers={"expired": [_FIRST], "remote": {"segments": []}},
        changes=_partition(log_start_offset=1, remote={"segments": []}),
    ),
    _tier(
        "forget",
        *(*_CLOSED, _UPLOAD),
        answers={"remote": _HAS_NOTHING},
        after=_UPLOAD,
        then={"uploaded": [], "remote": _HAS_FIRST},
    ),
    _tier(
        "lose",
        *(*_CLOSED, _UPLOAD, _DELETE_LOCAL),
        answers={"lost_objects": 6},
        meets=fetch,
        told={"log_end": 1},
    ),
    _tier("upload", _TOPIC, refused="INVALID_REQUEST", changes=_partition(remote=None)),
    _tier_fault(
        {"operation": "upload", "error": "no-space-left"},
        "--error no-space-left",
        _CLOSED,
        changes={"tier_faults": [{"hits": 1, "left": 0}]},
        after=_UPLOAD,
        then="KAFKA_STORAGE_ERROR",
    ),
    _tier_fault(
        {"operation": "list", "error": "no"},
        "--error no",
        _CLOSED,
        after=_UPLOAD,
        then="KAFKA_STORAGE_ERROR",
    ),
    _tier_fault(
        {"operation": "delete", "error": "no", "count": None},
        "--error no --count always",
        (*_CLOSED, _UPLOAD, ("advance_clock", {"ms": 2 * _HOUR_MS})),
        clock="manual",
        after=("tier", {**_PLACE, "action": "expire"}),
        then="KAFKA_STORAGE_ERROR",
    ),
    _tier_fault(
        {"operation": "fetch", "error": "no", "count": None},
        "--error no --count always",
        (*_CLOSED, _UPLOAD, _DELETE_LOCAL),
        meets=fetch,
        told={"told": "UNKNOWN_SERVER_ERROR, whole"},
    ),
    _tier_fault(
        {"operation": "fetch", "delay_ms": LATE_MS},
        f"--delay-ms {LATE_MS}",
        (*_CLOSED, _UPLOAD, _DELETE_LOCAL),
        meets=fetch,
        told={"told": "NONE, whole", "late": True},
    ),
    Row(
        verb="tier_faults",
        command="tier faults",
        before=(_TIER_FAULT, _TIER_FAULT),
        answers=[{"operation": "delete"}, {"operation": "delete"}],
        configs=TIERED,
    ),
    Row(
        verb="remove_tier_fault",
        command="tier remove-fault ID",
        given={"id": FAULT_ID},
        before=(_TIER_FAULT,),
        answers={"operation": "delete", "delay_ms": 5, "hits": 0},
        changes={"tier_faults": []},
        configs=TIERED,
    ),
    Row(
        verb="remove_tier_faults",
        command="tier clear-faults",
        before=(_TIER_FAULT, _TIER_FAULT),
        changes={"tier_faults": []},
        configs=TIERED,
    ),
)

ROWS: Final = (*LOOKING, *TOPICS, *REPLICAS, *BROKERS, *FAULTS, *TIER)
