"""What is seen of a cluster, and done to its brokers and its clock."""

from __future__ import annotations

from typing import Final

from tests.four_ways.meeting import CLIENT_ID, TOPIC
from tests.four_ways.row import (
    ADD_FAULT,
    LIST_OFFSETS,
    NEW_TOPIC,
    PLACE,
    PRODUCE,
    SINCE,
    WATCH,
    Given,
    Json,
    Row,
    partition,
)

_ASKED: Final = {"api": "ListOffsets", "client_id": CLIENT_ID, "version": 7, "broker": 1}

LOOKING: Final = (
    Row(verb="healthz", command="healthcheck", before=(), answers={"status": "ok"}),
    Row(verb="cluster", command="cluster", answers={"brokers": [{"id": 1}, {"id": 2}, {"id": 3}]}),
    Row(verb="topics", command="topics", answers=[{"name": TOPIC, "replication_factor": 3}]),
    Row(
        verb="partition",
        command="partition t 0",
        given=PLACE,
        before=(NEW_TOPIC, PRODUCE),
        answers={"leader": 1, "isr": [1, 2, 3], "high_watermark": 1},
    ),
    Row(
        verb="trace",
        command=f"trace list --api ListOffsets --client-id {CLIENT_ID} --limit 1",
        given={"api": "ListOffsets", "client_id": CLIENT_ID, "limit": 1},
        before=(NEW_TOPIC, LIST_OFFSETS, LIST_OFFSETS),
        answers=[_ASKED],
    ),
    Row(
        verb="wait_for_trace",
        command="trace wait --api ListOffsets --topic t --timeout-ms 5000",
        given={"api": "ListOffsets", "topic": TOPIC, "timeout_ms": 5000},
        before=(NEW_TOPIC, LIST_OFFSETS),
        answers=_ASKED,
    ),
    Row(
        verb="wait_for_trace",
        command="trace wait --api Heartbeat --timeout-ms 1",
        given={"api": "Heartbeat", "timeout_ms": 1},
        refused="REQUEST_TIMED_OUT",
    ),
    Row(
        verb="timeline",
        command="timeline --since 99999999 --requests-since 99999999",
        given={"since": 99999999, "requests_since": 99999999},
        answers={"lines": [], "brokers": [], "groups": []},
    ),
    Row(
        verb="verify",
        command="verify ListOffsets --count 2 --topic t",
        given={"api": "ListOffsets", "count": 2, "topic": TOPIC},
        before=(NEW_TOPIC, LIST_OFFSETS, LIST_OFFSETS),
        answers={"matched": 2},
    ),
    Row(
        verb="verify",
        command="verify Produce,Fetch --at-least 1 --at-most 1 --key k --since 1 --source clients",
        given={
            "api": ["Produce", "Fetch"],
            "count": {"at_least": 1, "at_most": 1},
            "record": {"key": "k"},
            "since": 1,
            "source": "clients",
        },
        before=(NEW_TOPIC, LIST_OFFSETS, ("produce_key", {})),
        answers={"matched": 1},
    ),
    Row(
        verb="verify",
        command="verify ListOffsets --count 1 --topic t",
        given={"api": "ListOffsets", "count": 1, "topic": TOPIC},
        before=(NEW_TOPIC, LIST_OFFSETS, LIST_OFFSETS),
        refused="REQUESTS_NOT_VERIFIED",
    ),
    Row(
        verb="events",
        command="events --since SINCE --count 1",
        given={"since": SINCE},
        before=(WATCH,),
        answers={"kind": "verb", "details": {"verb": "create_topic"}},
    ),
)


def _brokers(**second: Json) -> Given:
    return {"cluster": {"brokers": [{}, second, {}]}}


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
        before=(NEW_TOPIC, ("kill_broker", _SECOND)),
        answers={"id": 2, "state": "running"},
        changes={**_brokers(state="running"), **partition(offline=[])},
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
        before=(NEW_TOPIC, ("isolate_broker", {**_SECOND, "from": "controller"})),
        answers={"id": 2, "isolated_from": [], "fenced": False},
        changes={**_brokers(isolated_from=[]), **partition(offline=[])},
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
        before=(NEW_TOPIC, ADD_FAULT),
        changes={"topics": [], "faults": []},
    ),
)
