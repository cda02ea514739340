"""ListOffsets by every target, version, epoch, replica and isolation; then after DeleteRecords."""

from __future__ import annotations

from tests.harness.wire import Body, Value
from tests.oracle.asking import (
    SPECIAL_TIMESTAMPS,
    Broker,
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
RETAINED = {"retention.ms": "-1"}
"""The records are of 2023; by default they would be deleted."""
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


def ask(broker: Broker) -> None:
    _empty(broker)
    topic = _fill(broker)
    _targets(broker, topic)
    _epochs(broker, topic)
    _askers(broker, topic)
    _unknown_partitions(broker, topic)
    _shapes(broker, topic)
    _after_delete_records(broker, topic)


def _row(broker: Broker, request: str, topic: str, timestamp: int, **options: int) -> None:
    answer = list_offsets(broker.connection, topic, timestamp, **options)
    broker.row(SECTION, request, offset_text(answer))


def _empty(broker: Broker) -> None:
    topic, _ = broker.create("empty", RETAINED)
    broker.row(SECTION, "EMPTY topic: current leader epoch", broker.leader_epoch(topic))
    for timestamp, name in SPECIAL_TIMESTAMPS.items():
        _row(broker, f"EMPTY v11 ts={timestamp} ({name})", topic, timestamp)
    for timestamp in (0, 1, T, FAR):
        _row(broker, f"EMPTY v11 ts={timestamp}", topic, timestamp)


def _fill(broker: Broker) -> str:
    topic, _ = broker.create("data", RETAINED)
    broker.row(SECTION, "DATA topic: epoch before", broker.leader_epoch(topic))
    for request, data in (
        ("DATA produce A ts T+0,T+10,T+20", records(0, 10, 20)),
        ("DATA produce B ts T+30,T+50,T+40", records(30, 50, 40)),
    ):
        answer = send_records(broker.connection, topic, data)
        broker.row(SECTION, request, produce_text(answer))
    send_records(broker.connection, topic, records(25, 45))
    return topic


def _targets(broker: Broker, topic: str) -> None:
    for timestamp, name in SPECIAL_TIMESTAMPS.items():
        _row(broker, f"DATA v11 ts={timestamp} ({name})", topic, timestamp)
    for timestamp in (*TIMES, 2**63 - 1):
        shown = f"T{timestamp - T:+d}" if abs(timestamp - T) < 1000 else timestamp
        _row(broker, f"DATA v11 ts={shown}", topic, timestamp)
    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, T + 35):
            shown = "T+35" if timestamp > 0 else timestamp
            _row(broker, f"DATA v{version} ts={shown}", topic, timestamp, version=version)
    for version in (1, 11):
        answer = _ask(broker, version, [_topic(topic, (0, -1))], timeout_ms=5000)
        broker.row(SECTION, f"raw decoded response v{version}", str(answer))


def _epochs(broker: Broker, topic: str) -> None:
    current = broker.leader_epoch(topic)
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
            _row(broker, request, topic, -1, version=version, epoch=epoch)
    request = "DATA v11 ts=-7 (bad ts) AND CurrentLeaderEpoch=cur+1"
    _row(broker, request, topic, -7, epoch=current + 1)


def _askers(broker: Broker, topic: str) -> None:
    for replica_id, name in REPLICAS.items():
        request = f"DATA v11 ts=-1 ReplicaId={replica_id} ({name})"
        _row(broker, request, topic, -1, replica_id=replica_id)
    for isolation in (0, 1, 2, -1):
        request = f"DATA v11 ts=-1 isolation={isolation}"
        try:
            _row(broker, request, topic, -1, isolation=isolation)
        except ConnectionError as closed:
            broker.row(SECTION, request, repr(closed))
            broker.reconnect()


def _unknown_partitions(broker: Broker, topic: str) -> None:
    _row(broker, "unknown topic", "nope", -1)
    _row(broker, "known topic, partition 5 of 1", topic, -1, partition=5)
    _row(broker, "known topic, partition -1", topic, -1, partition=-1)
    _row(broker, 'invalid topic name "a b"', "a b", -1)
    _row(broker, "empty topic name", "", -1)
    _row(broker, "unknown topic + CurrentLeaderEpoch=5", "nope", -1, epoch=5)


def _shapes(broker: Broker, topic: str) -> None:
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
        broker.row(SECTION, request, str(_ask(broker, 11, topics)))
    _row(broker, "v11 ReplicaId=-1, TimeoutMs=-1", topic, -1, timeout_ms=-1)
    _row(broker, "v11 TimeoutMs=0", topic, -1, timeout_ms=0)


def _topic(name: str, *partitions: tuple[int, int]) -> Body:
    """A topic of a request, its partitions as (index, timestamp)."""
    asked = [{"PartitionIndex": index, "Timestamp": timestamp} for index, timestamp in partitions]
    return {"Name": name, "Partitions": asked}


def _ask(broker: Broker, version: int, topics: list[Body], timeout_ms: int = 1) -> Value:
    body = {"ReplicaId": -1, "Topics": topics, "TimeoutMs": timeout_ms}
    return broker.connection.call("ListOffsets", version, body)


def _after_delete_records(broker: Broker, topic: str) -> None:
    _delete(broker, topic, 4, "DATA to offset 4 (inside batch B)")
    when = "DATA after DeleteRecords(4)"
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, T, T + 30, T + 50):
        shown = f"T+{timestamp - T}" if timestamp > 9 else timestamp
        _row(broker, f"{when}: ts={shown}", topic, timestamp)
    _epoch_rows(broker, topic, when)
    for request, offset in ((f"{when}: offset 0", 0), (f"{when}: offset 4 (mid batch)", 4)):
        broker.row("Fetch", request, fetch_text(fetch(broker.connection, topic, offset)))
    _delete(broker, topic, -1, "DATA to -1 (= high watermark)")
    when = "DATA fully deleted"
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, T):
        shown = timestamp if timestamp < 9 else "T"
        _row(broker, f"{when} (log start=8): ts={shown}", topic, timestamp)
    _epoch_rows(broker, topic, when)


def _epoch_rows(broker: Broker, topic: str, when: str) -> None:
    for epoch in range(broker.leader_epoch(topic) + 2):
        answer = epoch_end(broker.connection, topic, epoch)
        broker.row("OffsetForLE", f"{when}: LeaderEpoch={epoch}", answer)


def _delete(broker: Broker, topic: str, offset: int, request: str) -> None:
    asked = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": offset}]}
    answer = broker.connection.call("DeleteRecords", 2, {"Topics": [asked], "TimeoutMs": 5000})
    broker.row("DeleteRecords", request, str(answer["Topics"]))
