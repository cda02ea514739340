"""ListOffsets by every target, version, epoch, replica and isolation; then after DeleteRecords."""

from __future__ import annotations

from tests.harness.wire import Body, Value
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    SPECIAL_TIMESTAMPS,
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

SECTION = "ListOffsets"
FAR = 2**62
TIMES = (0, *(T + each for each in (-1, 0, 1, 20, 21, 26, 30, 35, 40, 41, 45, 50, 51)), FAR)
REPLICAS = {
    -1: "consumer",
    -2: "debug",
    -3: "undefined",
    1: "broker id 1",
    2: "broker id 2",
    77: "unknown broker",
}


def ask(asker: Asker) -> None:
    _empty(asker)
    topic = _fill(asker)
    _targets(asker, topic)
    _epochs(asker, topic)
    _askers(asker, topic)
    _unknown_partitions(asker, topic)
    if asker.others:
        _elsewhere(asker, topic)
    _shapes(asker, topic)
    _after_delete_records(asker, topic)


def _row(
    asker: Asker,
    request: str,
    topic: str,
    timestamp: int,
    *,
    broker: int | None = None,
    **options: int,
) -> None:
    connection = asker.to(broker or asker.facing)
    answer = list_offsets(connection, topic, timestamp, **options)
    asker.row(SECTION, request, offset_text(answer))


def _empty(asker: Asker) -> None:
    topic, _ = asker.create("empty", RETAINED)
    asker.row(SECTION, "EMPTY topic: current leader epoch", asker.leader_epoch(topic))
    for timestamp, name in SPECIAL_TIMESTAMPS.items():
        _row(asker, f"EMPTY v11 ts={timestamp} ({name})", topic, timestamp)
    for timestamp in (0, 1, T, FAR):
        _row(asker, f"EMPTY v11 ts={timestamp}", topic, timestamp)


def _fill(asker: Asker) -> str:
    topic, _ = asker.create("data", RETAINED)
    asker.row(SECTION, "DATA topic: epoch before", asker.leader_epoch(topic))
    _produce(asker, "DATA produce A ts T+0,T+10,T+20", topic, records(0, 10, 20))
    _produce(asker, "DATA produce B ts T+30,T+50,T+40", topic, records(30, 50, 40))
    third = records(25, 45)
    if not asker.others:
        asker.produce(topic, third)
        return topic
    first, second = asker.others[:2]
    asker.move_leader(topic, first)
    epoch = asker.leader_epoch(topic)
    asker.row(SECTION, "DATA leader moved (preferred election): epoch", epoch)
    _produce(asker, "DATA produce C ts T+25,T+45", topic, third)
    asker.move_leader(topic, second)
    epoch = asker.leader_epoch(topic)
    asker.row(SECTION, "DATA leader moved again, nothing produced: epoch", epoch)
    return topic


def _produce(asker: Asker, request: str, topic: str, data: bytes) -> None:
    asker.row(SECTION, request, produce_text(send_records(asker.connection, topic, data)))


def _targets(asker: Asker, topic: str) -> None:
    for timestamp, name in SPECIAL_TIMESTAMPS.items():
        _row(asker, f"DATA v11 ts={timestamp} ({name})", topic, timestamp)
    for timestamp in (*TIMES, 2**63 - 1):
        shown = f"T{timestamp - T:+d}" if abs(timestamp - T) < 1000 else timestamp
        _row(asker, f"DATA v11 ts={shown}", topic, timestamp)
    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, T + 35):
            shown = "T+35" if timestamp > 0 else timestamp
            _row(asker, f"DATA v{version} ts={shown}", topic, timestamp, version=version)
    for version in (1, 11):
        answer = _ask(asker, version, [_topic(topic, (0, -1))], timeout_ms=5000)
        asker.row(SECTION, f"raw decoded response v{version}", str(answer))


def _epochs(asker: Asker, topic: str) -> None:
    current = asker.leader_epoch(topic)
    epochs = {
        "-1": -1,
        "cur": current,
        "cur-1": current - 1,
        "0": 0,
        "cur+1": current + 1,
        "1000000": 10**6,
        "-2": -2,
    }
    for name, epoch in epochs.items():
        for version in (4, 11):
            request = f"DATA v{version} ts=-1 CurrentLeaderEpoch={name}"
            _row(asker, request, topic, -1, version=version, epoch=epoch)
    request = "DATA v11 ts=-7 (bad ts) AND CurrentLeaderEpoch=cur+1"
    _row(asker, request, topic, -7, epoch=current + 1)


def _askers(asker: Asker, topic: str) -> None:
    for replica_id, name in REPLICAS.items():
        request = f"DATA v11 ts=-1 ReplicaId={replica_id} ({name})"
        _row(asker, request, topic, -1, replica_id=replica_id)
    for isolation in (0, 1, 2, -1):
        request = f"DATA v11 ts=-1 isolation={isolation}"
        try:
            _row(asker, request, topic, -1, isolation=isolation)
        except ConnectionError as closed:
            asker.row(SECTION, request, repr(closed))
            asker.reconnect()


def _unknown_partitions(asker: Asker, topic: str) -> None:
    _row(asker, "unknown topic", "nope", -1)
    _row(asker, "known topic, partition 5 of 1", topic, -1, partition=5)
    _row(asker, "known topic, partition -1", topic, -1, partition=-1)
    _row(asker, 'invalid topic name "a b"', "a b", -1)
    _row(asker, "empty topic name", "", -1)
    _row(asker, "unknown topic + CurrentLeaderEpoch=5", "nope", -1, epoch=5)


def _elsewhere(asker: Asker, topic: str) -> None:
    """A broker that follows, and one that has no replica."""
    leader, current = asker.facing, asker.leader_epoch(topic)
    other = asker.others[0]
    for timestamp in (-1, -2, -3, -4, -5, -6, T):
        shown = timestamp if timestamp < 0 else "T"
        request = f"NON-LEADER replica v11 ts={shown}"
        _row(asker, request, topic, timestamp, broker=other)
    for request, options in (
        ("CurrentLeaderEpoch=cur", {"epoch": current}),
        ("CurrentLeaderEpoch=cur-1", {"epoch": current - 1}),
        ("CurrentLeaderEpoch=cur+1", {"epoch": current + 1}),
        ("ReplicaId=-2 (debug)", {"replica_id": -2}),
        ("ReplicaId=leader id", {"replica_id": leader}),
    ):
        _row(asker, f"NON-LEADER v11 {request}", topic, -1, broker=other, **options)
    single, _ = asker.create("rf1", replicas=[leader])
    request = "broker that is NO replica (RF1 elsewhere)"
    _row(asker, request, single, -1, broker=other)
    request = "broker that is NO replica, CurrentLeaderEpoch=cur"
    _row(asker, request, single, -1, broker=other, epoch=0)


def _shapes(asker: Asker, topic: str) -> None:
    for request, topics in (
        ("v11 same partition twice, ts -1 and -2", [_topic(topic, (0, -1), (0, -2))]),
        ("v11 no partitions", [_topic(topic)]),
        ("v11 no topics", []),
        (
            "v11 known + unknown partition + unknown topic",
            [_topic(topic, (3, -1), (0, -1)), _topic("nope", (0, -1))],
        ),
        ("v11 same topic listed twice", [_topic(topic, (0, -1)), _topic(topic, (0, -2))]),
    ):
        asker.row(SECTION, request, str(_ask(asker, 11, topics)))
    _row(asker, "v11 ReplicaId=-1, TimeoutMs=-1", topic, -1, timeout_ms=-1)
    _row(asker, "v11 TimeoutMs=0", topic, -1, timeout_ms=0)


def _topic(name: str, *partitions: tuple[int, int]) -> Body:
    """A topic of a request, its partitions as (index, timestamp)."""
    asked = [{"PartitionIndex": index, "Timestamp": timestamp} for index, timestamp in partitions]
    return {"Name": name, "Partitions": asked}


def _ask(asker: Asker, version: int, topics: list[Body], timeout_ms: int = 1) -> Value:
    body = {"ReplicaId": -1, "Topics": topics, "TimeoutMs": timeout_ms}
    return asker.connection.call("ListOffsets", version, body)


def _after_delete_records(asker: Asker, topic: str) -> None:
    _delete(asker, topic, 4, "DATA to offset 4 (inside batch B)")
    when = "DATA after DeleteRecords(4)"
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, T, T + 30, T + 50):
        shown = f"T+{timestamp - T}" if timestamp > 9 else timestamp
        _row(asker, f"{when}: ts={shown}", topic, timestamp)
    _epoch_rows(asker, topic, when)
    for request, offset in ((f"{when}: offset 0", 0), (f"{when}: offset 4 (mid batch)", 4)):
        asker.row("Fetch", request, fetch_text(fetch(asker.connection, topic, offset)))
    _delete(asker, topic, -1, "DATA to -1 (= high watermark)")
    when = "DATA fully deleted"
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, T):
        shown = timestamp if timestamp < 9 else "T"
        _row(asker, f"{when} (log start=8): ts={shown}", topic, timestamp)
    _epoch_rows(asker, topic, when)


def _epoch_rows(asker: Asker, topic: str, when: str) -> None:
    for epoch in range(asker.leader_epoch(topic) + 2):
        answer = epoch_end(asker.connection, topic, epoch)
        asker.row("OffsetForLE", f"{when}: LeaderEpoch={epoch}", answer)


def _delete(asker: Asker, topic: str, offset: int, request: str) -> None:
    asked = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": offset}]}
    answer = asker.connection.call("DeleteRecords", 2, {"Topics": [asked], "TimeoutMs": 5000})
    asker.row("DeleteRecords", request, str(answer["Topics"]))
