"""A broker dies without a word: before the cluster notices, after that, and when it is back.

Three topics: the dead broker leads the first, follows in the second, whose records need all three
replicas, and is alone in the third.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.harness import batches
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Value
from tests.oracle.asker import Asker
from tests.oracle.asking import (
    Row,
    T,
    epoch_end,
    fetch,
    fetch_text,
    list_offsets,
    named,
    offset_text,
    produce_text,
    send_records,
)
from tests.oracle.steering import Steering

SECTION = "Failover"
DYING = 3
SEQUENCE = "LATEST on new leader (sequence of distinct answers)"
"""A row that is a list: what a client that asks again and again is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    led: str
    followed: str
    alone: str


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers, which has three again in the end."""
    asker = Asker(cluster, steering)
    try:
        _ask(asker)
    finally:
        asker.close()
    return asker.rows


def _ask(asker: Asker) -> None:
    topics = Topics(
        alone=asker.create("rf1", replicas=[DYING])[0],
        followed=asker.create("min3", {"min.insync.replicas": "3"}, [1, 2, DYING])[0],
        led=asker.create("fo", {"min.insync.replicas": "2"}, [DYING, 1, 2])[0],
    )
    for _ in range(5):
        asker.produce(topics.led, one(b"x"))
    before = f"{asker.facing}, {asker.leader_epoch(topics.led)}"
    asker.row(SECTION, "before: leader, epoch", before)
    asker.facing = 1
    killed = time.monotonic()
    asker.kill(DYING)
    _unnoticed(asker, topics)
    _led(asker, topics.led, killed)
    _followed(asker, topics.followed, killed)
    _alone(asker, topics.alone)
    _back(asker, topics.followed)


def one(value: bytes) -> bytes:
    return batches.build([(T, None, value)])


def seconds_since(moment: float) -> str:
    return f"{time.monotonic() - moment:.2f}s"


def _offset_row(asker: Asker, request: str, topic: str, timestamp: int, **options: int) -> None:
    answer = list_offsets(asker.connection, topic, timestamp, **options)
    asker.row(SECTION, request, offset_text(answer))


def _produce(
    asker: Asker, topic: str, *, version: int = 9, acks: int = -1, timeout_ms: int = 5000
) -> str:
    answer = send_records(
        asker.connection, topic, one(b"x"), version=version, acks=acks, timeout_ms=timeout_ms
    )
    return produce_text(answer)


def _unnoticed(asker: Asker, topics: Topics) -> None:
    """While the dead broker still counts as in sync."""
    start = time.monotonic()
    answer = f"{_produce(asker, topics.followed, timeout_ms=300)} after {seconds_since(start)}"
    request = "acks=-1 timeoutMs=300, a follower just died, still in ISR"
    asker.row(SECTION, request, answer)
    request = "LATEST on that topic (record appended, not below HW)"
    _offset_row(asker, request, topics.followed, -1)
    asker.row(SECTION, "acks=1 meanwhile", _produce(asker, topics.followed, acks=1))


def _led(asker: Asker, topic: str, killed: float) -> None:
    """The topic that gets a new leader."""

    def elected() -> Body | None:
        found = asker.partition(topic)
        return found if found and found["LeaderId"] not in (DYING, -1) else None

    found = wait_until("a new leader", elected)
    text = f"{seconds_since(killed)} leader={found['LeaderId']} epoch={found['LeaderEpoch']}"
    text += f" isr={found['IsrNodes']} offline={found.get('OfflineReplicas')}"
    asker.row(SECTION, "kill -9 leader: new leader in metadata after", text)
    asker.facing = found["LeaderId"]
    asker.row(SECTION, SEQUENCE, _until_available(asker, topic))
    for timestamp in (-2, -3):
        _offset_row(asker, f"ListOffsets {timestamp} on new leader", topic, timestamp)
    for epoch in range(3):
        answer = epoch_end(asker.connection, topic, epoch)
        asker.row(SECTION, f"OffsetForLeaderEpoch {epoch}", answer)
    asker.row(SECTION, "produce acks=-1, ISR 2, min 2", _produce(asker, topic))
    asker.facing = 1


def _until_available(asker: Asker, topic: str) -> Value:
    """What LATEST answers until there is no error, repeated answers left out."""
    seen: list[str] = []

    def available() -> bool:
        answer = offset_text(list_offsets(asker.connection, topic, -1))
        if answer not in seen[-1:]:
            seen.append(answer)
        return answer.startswith("err=0 ")

    wait_until("the latest offset", available)
    return seen


def _followed(asker: Asker, topic: str, killed: float) -> None:
    """The topic whose records need more replicas than are in sync."""
    wait_until("the ISR shrinks", lambda: _in_sync(asker, topic) == 2)
    after = seconds_since(killed)
    request = f"min.insync=3 topic, ISR shrunk to 2 after {after}: produce acks=-1"
    asker.row(SECTION, request, _produce(asker, topic))
    asker.row(SECTION, "same with v12", _produce(asker, topic, version=12))
    asker.row(SECTION, "same, acks=1", _produce(asker, topic, acks=1))
    _offset_row(asker, "LATEST (ISR<min: ELR feature stops HW)", topic, -1)
    _offset_row(asker, "LATEST with ReplicaId=-2 (debug)", topic, -1, replica_id=-2)
    _offset_row(asker, "LATEST with ReplicaId=2 (follower)", topic, -1, replica_id=2)
    _offset_row(asker, "LATEST isolation=1", topic, -1, isolation=1)
    _offset_row(asker, "MAX_TIMESTAMP", topic, -3)
    for request, offset in (("Fetch offset 0", 0), ("Fetch offset HW+1 (< LEO)", 1)):
        asker.row(SECTION, request, fetch_text(fetch(asker.connection, topic, offset)))


def _in_sync(asker: Asker, topic: str) -> int:
    found = asker.partition(topic)
    return len(found["IsrNodes"]) if found else 0


def _alone(asker: Asker, topic: str) -> None:
    """The topic whose only replica is gone."""
    for version in (1, 8, 12):
        entry = asker.metadata(version, named(topic))["Topics"][0]
        request = f"Metadata v{version} of RF1 topic whose broker is dead"
        asker.row(SECTION, request, str(entry))
    asker.row(SECTION, "Metadata brokers now", len(asker.metadata(12)["Brokers"]))
    _offset_row(asker, "ListOffsets RF1 topic on another broker", topic, -1)


def _back(asker: Asker, topic: str) -> None:
    """The broker is in sync again, and what waited for it is below the high watermark."""
    started = time.monotonic()
    asker.start(DYING)
    wait_until("it is in sync again", lambda: _in_sync(asker, topic) == 3, 60)
    after = seconds_since(started)

    def latest() -> Body | None:
        found = list_offsets(asker.connection, topic, -1)
        return found if found["Offset"] > 0 else None

    answer = offset_text(wait_until("the high watermark rises", latest))
    asker.row(SECTION, "restart of broker 3: back in ISR after", f"{after}; LATEST now {answer}")
