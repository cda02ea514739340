"""A new leader whose high watermark lags (KIP-207): what it tells until a replica has caught up."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    Row,
    T,
    epoch_end,
    fetch,
    fetch_text,
    list_offsets,
    offset_text,
    produce_text,
    records,
    send_records,
)
from tests.oracle.steering import Steering

DEBUGGER = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Brokers by what they do in the story."""

    old: int
    new: int
    late: int


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers."""
    asker = Asker(cluster, steering)
    try:
        roles = _choose(asker)
        asker.in_time(lambda attempt: _ask_all(asker, f"gated{attempt}", roles))
    finally:
        asker.close()
    return asker.rows


def _ask_all(asker: Asker, suffix: str, roles: Roles) -> bool:
    """Whether everything was asked in time, before the cluster gave up the one that is late."""
    topic, _ = asker.create(suffix, RETAINED, [roles.old, roles.new, roles.late])
    _lag(asker, topic, roles)
    for when in ("gate closed", "gate closed, more is appended"):
        _list_offsets(asker, topic, when, roles)
        _fetch(asker, topic, when)
        answer = send_records(asker.connection, topic, records(4, 5), acks=1)
        asker.row("Produce", f"{when}, acks=1", produce_text(answer))
    in_time = _in_sync(asker, topic) == 3
    asker.thaw(roles.late)
    wait_until("all are in sync", lambda: _in_sync(asker, topic) == 3)
    wait_until("the gate is open", lambda: _latest(asker, topic) == 8)
    _list_offsets(asker, topic, "gate open again", roles)
    _fetch(asker, topic, "gate open again")
    return in_time


def _choose(asker: Asker) -> Roles:
    late = max(asker.freezable())
    old, new = sorted(asker.alive - {late})
    return Roles(old=old, new=new, late=late)


def _lag(asker: Asker, topic: str, roles: Roles) -> None:
    """Elect a leader with two records that are not below the high watermark."""
    asker.produce(topic, records(0, 1))
    asker.prefer(topic, roles.new)
    asker.wait_until_followed(topic, 2)
    asker.freeze(roles.late)
    send_records(asker.connection, topic, records(2, 3), acks=1)
    new = asker.to(roles.new)
    wait_until(
        "the next leader has them",
        lambda: list_offsets(new, topic, -1, replica_id=DEBUGGER)["Offset"] == 4,
    )
    asker.elect(topic, roles.new)


def _in_sync(asker: Asker, topic: str) -> int:
    found = asker.partition(topic)
    return 0 if found is None else len(found["IsrNodes"])


def _latest(asker: Asker, topic: str) -> int:
    offset: int = list_offsets(asker.connection, topic, -1)["Offset"]
    return offset


def _list_offsets(asker: Asker, topic: str, when: str, roles: Roles) -> None:
    def row(request: str, timestamp: int, **options: int) -> None:
        shown = timestamp if timestamp < T else f"T+{timestamp - T}"
        answer = list_offsets(asker.connection, topic, timestamp, **options)
        asker.row("ListOffsets", f"{when}: ts={shown} {request}", offset_text(answer))

    for version in range(1, 12):
        row(f"v{version}", -1, version=version)
    for version in (4, 5, 11):
        for timestamp in (-2, 0, T, T + 1, T + 2, T + 3, T + 9):
            row(f"v{version}", timestamp, version=version)
    for timestamp in (-3, -4, -5, -6, -7):
        row("v11", timestamp)
    current = asker.leader_epoch(topic)
    for name, epoch in (("cur", current), ("cur-1", current - 1), ("cur+1", current + 1)):
        row(f"v11 CurrentLeaderEpoch={name}", -1, epoch=epoch)
    row("v11 isolation=1", -1, isolation=1)
    for name, replica_id in (
        ("-2", DEBUGGER),
        ("-3", -3),
        ("of a follower", roles.old),
        ("77", 77),
    ):
        for timestamp in (-1, -3, T + 3):
            row(f"v11 ReplicaId={name}", timestamp, replica_id=replica_id)


def _fetch(asker: Asker, topic: str, when: str) -> None:
    for offset in (0, 2, 3, 4, 9):
        answer = fetch(asker.connection, topic, offset)
        asker.row("Fetch", f"{when}: offset {offset}", fetch_text(answer))
    for epoch in range(3):
        answer_text = epoch_end(asker.connection, topic, epoch)
        asker.row("OffsetForLE", f"{when}: LeaderEpoch={epoch}", answer_text)
