"""Every kind of fault of requests."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import (
    CLIENT_ID,
    LATE_MS,
    TOPIC,
    Meeting,
    fetch,
    late,
    list_offsets,
    metadata,
    produce,
    produce_in_vain,
    produce_key,
    produce_to_silence,
)
from tests.four_ways.row import (
    ADD_FAULT,
    FAULT_ID,
    LIST_OFFSETS,
    NEW_TOPIC,
    PLACE,
    PRODUCE,
    Given,
    Json,
    Row,
    Step,
)


def _fault(
    action: Given,
    option: str,
    meets: Meeting,
    told: Json,
    *,
    api: str = "Produce",
    stored: int = 0,
    before: tuple[Step, ...] = (NEW_TOPIC,),
    left: int | None = 1,
) -> Row:
    return Row(
        verb="add_fault",
        command=f"fault add {api} {option}",
        given={"api": api, "action": action},
        before=before,
        answers={"api": api, "action": action, "hits": 0, "left": left},
        changes={"faults": [{"action": action}]},
        meets=meets,
        told={"log_end": stored, "hits": 1, **told},
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
        {"delay": LATE_MS},
        f"--delay {LATE_MS}",
        late(produce),
        {"told": "NONE", "late": True},
        stored=1,
    ),
    _fault({"disconnect": "before"}, "--disconnect before", produce, {"told": "goodbye"}),
    _fault({"disconnect": "after"}, "--disconnect after", produce, {"told": "goodbye"}, stored=1),
    _fault({"throttle": 70}, "--throttle 70", produce, {"told": "NONE", "throttled": 70}, stored=1),
    _fault({"drop": True}, "--drop", produce_in_vain, {"told": "nothing"}, stored=1),
    _fault({"corrupt": True}, "--corrupt", produce, {"told": "CORRUPT_MESSAGE"}),
    _fault(
        {"corrupt": True},
        "--corrupt",
        fetch,
        {"told": "NONE, corrupt"},
        api="Fetch",
        stored=1,
        before=(NEW_TOPIC, PRODUCE),
    ),
    _fault(
        {"stale_metadata": 0},
        "--stale-metadata 0",
        metadata,
        {"told": "1 in epoch 0"},
        api="Metadata",
        before=(NEW_TOPIC, ("elect", {**PLACE, "leader": 2})),
    ),
    _fault(
        {"bandwidth": 1000},
        "--bandwidth 1000",
        late(produce),
        {"told": "NONE", "late": True},
        stored=1,
    ),
    _fault({"pieces": 5}, "--pieces 5", produce, {"told": "NONE"}, stored=1),
    _fault({"silent": True}, "--silent", produce_to_silence, {"told": "nothing"}, api="*"),
    _fault(
        {"refuse": True}, "--refuse", produce, {"told": "refused", "hits": 0}, api="*", left=None
    ),
    _fault({"observe": True}, "--observe", produce, {"told": "NONE"}, stored=1, left=None),
    _fault({"pass": True}, "--pass", produce, {"told": "NONE"}, stored=1),
    Row(
        verb="add_fault",
        command="fault add Produce,ListOffsets --sequence pass,error=NOT_ENOUGH_REPLICAS,delay=5",
        given={
            "api": ["Produce", "ListOffsets"],
            "sequence": ["pass", {"error": "NOT_ENOUGH_REPLICAS"}, {"delay": 5}],
        },
        before=(NEW_TOPIC, PRODUCE),
        answers={
            "api": ["Produce", "ListOffsets"],
            "action": None,
            "sequence": [{"pass": True}, {"error": "NOT_ENOUGH_REPLICAS"}, {"delay": 5}],
            "left": 3,
        },
        meets=produce,
        told={"told": "NONE", "hits": 1},
    ),
    Row(
        verb="add_fault",
        command="fault add Produce --key k --error NOT_ENOUGH_REPLICAS",
        given={
            "api": "Produce",
            "record": {"key": "k"},
            "action": {"error": "NOT_ENOUGH_REPLICAS"},
        },
        changes={"faults": [{"record": {"key": "k"}}]},
        meets=produce_key,
        told={"told": "NOT_ENOUGH_REPLICAS", "hits": 1},
    ),
    Row(
        verb="add_fault",
        command="fault add Fetch --value a=b --header type=order --drop",
        given={
            "api": "Fetch",
            "record": {"value": "a=b", "header": ["type", "order"]},
            "action": "drop",
        },
        changes={"faults": [{"record": {"value": "a=b", "header": ["type", "order"]}}]},
    ),
    Row(
        verb="add_fault",
        command="fault add * --header trace --drop",
        given={"api": "*", "record": {"header": ["trace", None]}, "action": "drop"},
        changes={"faults": [{"api": "*", "record": {"header": ["trace", None]}}]},
    ),
    Row(
        verb="add_fault",
        command="fault add Fetch --refuse",
        given={"api": "Fetch", "action": "refuse"},
        refused="INVALID_REQUEST",
        changes={"faults": []},
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
        before=(NEW_TOPIC, ADD_FAULT, ADD_FAULT),
        answers=[{"api": "ListOffsets"}, {"api": "ListOffsets"}],
    ),
    Row(
        verb="fault",
        command="fault show ID",
        given={"id": FAULT_ID},
        before=(NEW_TOPIC, ADD_FAULT, LIST_OFFSETS),
        answers={"api": "ListOffsets", "hits": 1, "left": 0},
    ),
    Row(
        verb="wait_for_fault",
        command="fault wait ID --hits 1 --timeout-ms 5000",
        given={"id": FAULT_ID, "hits": 1, "timeout_ms": 5000},
        before=(NEW_TOPIC, ADD_FAULT, LIST_OFFSETS),
        answers={"hits": 1},
    ),
    Row(
        verb="wait_for_fault",
        command="fault wait ID --hits 2 --timeout-ms 1",
        given={"id": FAULT_ID, "hits": 2, "timeout_ms": 1},
        before=(NEW_TOPIC, ADD_FAULT),
        refused="REQUEST_TIMED_OUT",
    ),
    Row(
        verb="remove_fault",
        command="fault remove ID",
        given={"id": FAULT_ID},
        before=(NEW_TOPIC, ADD_FAULT, LIST_OFFSETS),
        answers={"hits": 1},
        changes={"faults": []},
        meets=list_offsets,
        told={"told": "NONE 0"},
    ),
    Row(
        verb="remove_faults",
        command="fault clear",
        before=(NEW_TOPIC, ADD_FAULT, ADD_FAULT),
        changes={"faults": []},
    ),
)
