"""Actions on the remote tier, and its faults."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import LATE_MS, TOPIC, fetch, late
from tests.four_ways.row import (
    FAULT_ID,
    NEW_TOPIC,
    PLACE,
    PRODUCE,
    Given,
    Json,
    Row,
    Step,
    partition,
)

TIERED: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "2147483647",
}
"""Broker configs of a cluster with a tier that is left alone unless a verb says otherwise."""
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
_CLOSED: Final = (_NEW_TIERED, PRODUCE, ("roll", PLACE))
"""A segment of one record that may be uploaded."""
_UPLOAD: Final[Step] = ("tier", {**PLACE, "action": "upload"})
_DELETE_LOCAL: Final[Step] = ("tier", {**PLACE, "action": "delete-local"})
_TIER_FAULT: Final[Step] = ("add_tier_fault", {"operation": "delete", "delay_ms": 5})
_FIRST: Final = {"start_offset": 0, "end_offset": 0, "epochs": [{"epoch": 0, "start_offset": 0}]}
_HAS_FIRST: Final = {"last_tiered_offset": 0, "pending_upload_offset": 1, "segments": [_FIRST]}
_HAS_NOTHING: Final = {"last_tiered_offset": -1, "pending_upload_offset": -1, "segments": []}


def _tier(action: str, *before: Step, clock: str = "real", **came: Json) -> Row:
    return Row(
        verb="tier",
        command=f"tier {action} t 0",
        given={**PLACE, "action": action},
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
        changes=partition(remote=_HAS_FIRST),
    ),
    _tier(
        "delete-local",
        *(*_CLOSED, _UPLOAD),
        answers={
            "deleted_locally": [
                {"broker": b, "segments": 1, "local_log_start_offset": 1} for b in (1, 2, 3)
            ]
        },
        changes=partition(
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
        changes=partition(log_start_offset=1, remote={"segments": []}),
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
    _tier("upload", NEW_TOPIC, refused="INVALID_REQUEST", changes=partition(remote=None)),
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
        after=("tier", {**PLACE, "action": "expire"}),
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
        meets=late(fetch),
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
