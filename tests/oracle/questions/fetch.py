"""Fetch: waiting, every version, offsets, epochs, ids, sizes and sessions."""

from __future__ import annotations

from tests.harness import batches
from tests.harness.wire import ZERO_UUID
from tests.oracle.asking import (
    NO_SUCH_ID,
    Broker,
    T,
    fetch,
    fetch_text,
    seconds_blocked,
    send_records,
)

SECTION = "Fetch"


def ask(broker: Broker) -> None:
    topic, topic_id = broker.create("f", {"retention.ms": "-1"})
    _empty(broker, topic)
    for i in range(3):
        data = batches.build([(T + i, b"k", b"v" * 50), (T + i, b"k", b"w" * 50)])
        send_records(broker.connection, topic, data)
    for version in range(4, 19):
        _row(broker, f"v{version} offset 0", topic, 0, version=version, topic_id=topic_id)
    for offset in (1, 2, 5, 6, 7, 100, -1, -2, 2**62):
        _row(broker, f"v12 offset {offset} (LEO 6)", topic, offset)
    _epochs(broker, topic, topic_id)
    _unknown(broker, topic, topic_id)
    _sizes(broker, topic)
    _sessions(broker, topic)


def _row(
    broker: Broker,
    request: str,
    topic: str,
    offset: int,
    *,
    topic_id: str = ZERO_UUID,
    **options: int,
) -> None:
    answer = fetch(broker.connection, topic, offset, topic_id=topic_id, **options)
    broker.row(SECTION, request, fetch_text(answer))


def _empty(broker: Broker, topic: str) -> None:
    for offset in (0, 1, -1):
        _row(broker, f"EMPTY v12 offset {offset}", topic, offset)
    for request, offset, min_bytes in (
        ("EMPTY MaxWait=700 MinBytes=1: seconds blocked", 0, 1),
        ("EMPTY MaxWait=700 MinBytes=0: seconds blocked", 0, 0),
        ("out-of-range MaxWait=700 MinBytes=1: seconds blocked", 9, 1),
    ):
        taken = seconds_blocked(broker.connection, topic, offset, min_bytes=min_bytes)
        broker.row(SECTION, request, taken)


def _epochs(broker: Broker, topic: str, topic_id: str) -> None:
    current = broker.leader_epoch(topic)
    epochs = {"-1": -1, "cur": current, "cur-1": current - 1, "cur+1": current + 1}
    for name, epoch in epochs.items():
        for version in (9, 12, 17):
            request = f"v{version} CurrentLeaderEpoch={name} (cur={current})"
            _row(broker, request, topic, 0, topic_id=topic_id, epoch=epoch, version=version)
    for epoch in (0, 1, current, current + 1, 5):
        request = f"v12 LastFetchedEpoch={epoch} offset=3"
        _row(broker, request, topic, 3, last_fetched_epoch=epoch)
    request = "v12 LastFetchedEpoch=0 offset=50 (beyond)"
    _row(broker, request, topic, 50, last_fetched_epoch=0)


def _unknown(broker: Broker, topic: str, topic_id: str) -> None:
    _row(broker, "v12 unknown topic", "nope", 0)
    _row(broker, "v12 partition 5", topic, 0, partition=5)
    _row(broker, "v13 unknown topic id", topic, 0, version=13, topic_id=NO_SUCH_ID)
    _row(broker, "v17 unknown topic id", topic, 0, version=17, topic_id=NO_SUCH_ID)
    _row(broker, "v13 zero topic id", topic, 0, version=13)
    _row(broker, "v13 partition 5", topic, 0, version=13, topic_id=topic_id, partition=5)


def _sizes(broker: Broker, topic: str) -> None:
    for size in (0, 1, 70, 200, 400):
        request = f"v12 PartitionMaxBytes={size} MaxBytes=1M"
        _row(broker, request, topic, 0, partition_max_bytes=size)
    for size in (1, 200, 400):
        request = f"v12 MaxBytes={size}"
        _row(broker, request, topic, 0, max_bytes=size, partition_max_bytes=1 << 20)


def _sessions(broker: Broker, topic: str) -> None:
    created = fetch(broker.connection, topic, 6, session_epoch=0)
    broker.row(SECTION, "session: sid=0 epoch=0 (create)", fetch_text(created))
    session = created["SessionId"]
    for request, session_id, session_epoch in (
        ("session: incremental epoch=1, no change", session, 1),
        ("session: epoch=5 (wrong)", session, 5),
        ("session: unknown sid", 12345, 1),
        ("session: close (epoch -1)", session, -1),
        ("session: use after close", session, 2),
        ("sid=0 epoch=3", 0, 3),
    ):
        body = {
            "MaxWaitMs": 50,
            "MinBytes": 1,
            "MaxBytes": 1 << 20,
            "SessionId": session_id,
            "SessionEpoch": session_epoch,
        }
        broker.row(SECTION, request, fetch_text(broker.connection.call("Fetch", 12, body)))
