"""Fetch: waiting, every version, offsets, epochs, ids, sizes and sessions."""

from __future__ import annotations

from tests.harness import batches
from tests.harness.wire import ZERO_UUID
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    NO_SUCH_ID,
    T,
    fetch,
    fetch_text,
    seconds_blocked,
)

SECTION = "Fetch"


def ask(asker: Asker) -> None:
    topic, topic_id = asker.create("f", RETAINED)
    _empty(asker, topic)
    for broker in (*asker.others[:1], asker.facing) if asker.others else ():
        asker.move_leader(topic, broker)
    for i in range(3):
        data = batches.build([(T + i, b"k", b"v" * 50), (T + i, b"k", b"w" * 50)])
        asker.produce(topic, data)
    asker.wait_until_followed(topic, 6)
    for version in range(4, 19):
        _row(asker, f"v{version} offset 0", topic, 0, version=version, topic_id=topic_id)
    for offset in (1, 2, 5, 6, 7, 100, -1, -2, 2**62):
        _row(asker, f"v12 offset {offset} (LEO 6)", topic, offset)
    _epochs(asker, topic, topic_id)
    _unknown(asker, topic, topic_id)
    if asker.others:
        _elsewhere(asker, topic, topic_id)
    _sizes(asker, topic)
    _sessions(asker, topic)


def _row(
    asker: Asker,
    request: str,
    topic: str,
    offset: int,
    *,
    topic_id: str = ZERO_UUID,
    broker: int | None = None,
    **options: int,
) -> None:
    connection = asker.to(broker or asker.facing)
    answer = fetch(connection, topic, offset, topic_id=topic_id, rack="", **options)
    asker.row(SECTION, request, fetch_text(answer))


def _empty(asker: Asker, topic: str) -> None:
    for offset in (0, 1, -1):
        _row(asker, f"EMPTY v12 offset {offset}", topic, offset)
    for request, offset, min_bytes in (
        ("EMPTY MaxWait=700 MinBytes=1: seconds blocked", 0, 1),
        ("EMPTY MaxWait=700 MinBytes=0: seconds blocked", 0, 0),
        ("out-of-range MaxWait=700 MinBytes=1: seconds blocked", 9, 1),
    ):
        taken = seconds_blocked(asker.connection, topic, offset, min_bytes=min_bytes)
        asker.row(SECTION, request, taken)


def _epochs(asker: Asker, topic: str, topic_id: str) -> None:
    current = asker.leader_epoch(topic)
    epochs = {"-1": -1, "cur": current, "cur-1": current - 1, "cur+1": current + 1}
    for name, epoch in epochs.items():
        for version in (9, 12, 17):
            request = f"v{version} CurrentLeaderEpoch={name} (cur={current})"
            _row(asker, request, topic, 0, topic_id=topic_id, epoch=epoch, version=version)
    for epoch in (0, 1, current, current + 1, 5):
        request = f"v12 LastFetchedEpoch={epoch} offset=3"
        _row(asker, request, topic, 3, last_fetched_epoch=epoch)
    request = "v12 LastFetchedEpoch=0 offset=50 (beyond)"
    _row(asker, request, topic, 50, last_fetched_epoch=0)


def _unknown(asker: Asker, topic: str, topic_id: str) -> None:
    _row(asker, "v12 unknown topic", "nope", 0)
    _row(asker, "v12 partition 5", topic, 0, partition=5)
    _row(asker, "v13 unknown topic id", topic, 0, version=13, topic_id=NO_SUCH_ID)
    _row(asker, "v17 unknown topic id", topic, 0, version=17, topic_id=NO_SUCH_ID)
    _row(asker, "v13 zero topic id", topic, 0, version=13)
    _row(asker, "v13 partition 5", topic, 0, version=13, topic_id=topic_id, partition=5)


def _elsewhere(asker: Asker, topic: str, topic_id: str) -> None:
    """A broker that follows, and one that has no replica."""
    leader, current = asker.facing, asker.leader_epoch(topic)
    other = asker.others[0]
    for version in (11, 12, 17):
        request = f"NON-LEADER replica v{version} (no rack)"
        _row(asker, request, topic, 0, broker=other, version=version, topic_id=topic_id)
    _row(asker, "NON-LEADER replica v4", topic, 0, broker=other, version=4)
    for name, epoch in (("cur", current), ("cur+1", current + 1)):
        request = f"NON-LEADER v12 CurrentLeaderEpoch={name}"
        _row(asker, request, topic, 0, broker=other, epoch=epoch)
    _row(asker, "NON-LEADER v12 out of range", topic, 99, broker=other)
    single, single_id = asker.create("frf1", replicas=[leader])
    _row(asker, "no replica here v12", single, 0, broker=other)
    request = "no replica here v17"
    _row(asker, request, single, 0, broker=other, version=17, topic_id=single_id)


def _sizes(asker: Asker, topic: str) -> None:
    for size in (0, 1, 70, 200, 400):
        request = f"v12 PartitionMaxBytes={size} MaxBytes=1M"
        _row(asker, request, topic, 0, partition_max_bytes=size)
    for size in (1, 200, 400):
        request = f"v12 MaxBytes={size}"
        _row(asker, request, topic, 0, max_bytes=size, partition_max_bytes=1 << 20)


def _sessions(asker: Asker, topic: str) -> None:
    created = fetch(asker.connection, topic, 6, session_epoch=0)
    asker.row(SECTION, "session: sid=0 epoch=0 (create)", fetch_text(created))
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
        asker.row(SECTION, request, fetch_text(asker.connection.call("Fetch", 12, body)))
