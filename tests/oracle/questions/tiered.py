"""A tiered topic (KIP-405): before its segments move, when they have, and after DeleteRecords.

Two topics of 251 records of some 10,000 bytes in segments of 1 MiB: of ``td`` the closed segments
are in the tier only, of ``tk`` they are here as well. Kafka's tier is a folder, looked at twice a
second.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from tests.harness import batches
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asker import Asker
from tests.oracle.asking import (
    Row,
    T,
    epoch_end,
    fetch,
    fetch_text,
    list_offsets,
    offset_text,
    tiered_offset,
)
from tests.oracle.steering import Steering

SECTION: Final = "Tiered"
TRANSITIONS: Final = "td transitions"
TIERED: Final = {"remote.storage.enable": "true"}
SEGMENTS: Final = {**TIERED, "segment.bytes": "1048576", "retention.ms": "-1"}
SPECIAL: Final = (-1, -2, -3, -4, -5, -6)
STATE: Final = (-1, -2, -4, -5, -6)
RECORDS: Final = 251
LARGE: Final = b"x" * 10_000
_MOVED_S: Final = 12.0

History = list[tuple[float, tuple[str, ...]]]


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of one broker with a tier."""
    asker = Asker(cluster, steering)
    try:
        _empty(asker)
        _small_segments(asker)
        moving, _ = asker.create("td", {**SEGMENTS, "local.retention.bytes": "1"})
        staying, _ = asker.create("tk", SEGMENTS)
        _fill(asker, moving, staying)
        _look(asker, moving, staying)
        _versions(asker, moving)
        _fetch(asker, moving)
        _delete_records(asker, moving)
    finally:
        asker.close()
    return asker.rows


def _dump(asker: Asker, topic: str, label: str, times: tuple[int, ...] = ()) -> None:
    for timestamp in (*SPECIAL, *times):
        shown = f"T+{timestamp - T}" if timestamp > 9 else timestamp
        answer = tiered_offset(asker.connection, topic, timestamp)
        asker.row(SECTION, f"{label}: ts={shown}", offset_text(answer))


def _empty(asker: Asker) -> None:
    plain, _ = asker.create("plain")
    _dump(asker, plain, "non-tiered topic on tiered-enabled broker, EMPTY")
    empty, _ = asker.create("tempty", TIERED)
    _dump(asker, empty, "tiered topic, EMPTY", (T,))


def _small_segments(asker: Asker) -> None:
    refused = _create(asker, "seg", {"segment.bytes": "1000"})
    asker.row(SECTION, "CreateTopics segment.bytes=1000", str(refused))
    created = _create(asker, "seg2", {"internal.segment.bytes": "2000"})
    text = str(created) if created["ErrorCode"] else "accepted"
    asker.row(SECTION, "CreateTopics internal.segment.bytes=2000", text)


def _create(asker: Asker, suffix: str, configs: Mapping[str, str]) -> Body:
    topic = {
        "Name": f"{asker.prefix}-{suffix}",
        "NumPartitions": 1,
        "ReplicationFactor": 1,
        "Configs": [{"Name": key, "Value": value} for key, value in configs.items()],
    }
    answer = asker.connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 20_000})
    entry: Body = answer["Topics"][0]
    return entry


def _fill(asker: Asker, moving: str, staying: str) -> None:
    for topic in (moving, staying):
        asker.produce(topic, batches.build([(T, None, b"small")]))
    label = "tiered, 1 record in the active segment, nothing uploaded"
    _dump(asker, moving, label, (T, T + 1))
    for topic in (moving, staying):
        for number in range(1, RECORDS):
            asker.produce(topic, batches.build([(T + number, None, LARGE)]))
    asker.row(SECTION, TRANSITIONS, _follow(asker, moving))
    wait_until(
        f"{staying} is tiered", lambda: list_offsets(asker.connection, staying, -5)["Offset"] == 208
    )


def _follow(asker: Asker, topic: str) -> History:
    """What was answered when, until everything that may move has."""
    history: History = []
    start = time.monotonic()

    def has_moved() -> bool:
        answers = [list_offsets(asker.connection, topic, each) for each in STATE]
        state = tuple(offset_text(each).replace("err=0 NONE ", "") for each in answers)
        if not history or history[-1][1] != state:
            history.append((round(time.monotonic() - start, 2), state))
        return [each["Offset"] for each in answers] == [RECORDS, 0, 209, 208, 209]

    wait_until(f"{topic} is in the tier", has_moved, _MOVED_S)
    return history


def _look(asker: Asker, moving: str, staying: str) -> None:
    label = "tiered topic td (local.retention.bytes=1), 251 records, after upload+local delete"
    _dump(asker, moving, label, (0, T, T + 50, T + 249, T + 250, T + 251))
    label = "tiered topic tk (keeps local), 251 records, after upload"
    _dump(asker, staying, label, (0, T, T + 50, T + 251))


def _versions(asker: Asker, topic: str) -> None:
    for version in (1, 7, 8, 9, 10, 11):
        for timestamp in (-2, -4, -5, -6, T + 50):
            shown = "T+50" if timestamp > 0 else timestamp
            answer = list_offsets(asker.connection, topic, timestamp, version=version)
            asker.row(SECTION, f"td v{version} ts={shown}", offset_text(answer))
    for timeout_ms in (0, 1, 30_000):
        answer = list_offsets(asker.connection, topic, T + 50, timeout_ms=timeout_ms)
        request = f"td v11 ts=T+50 (remote lookup) TimeoutMs={timeout_ms}"
        asker.row(SECTION, request, offset_text(answer))


def _fetch(asker: Asker, topic: str) -> None:
    for epoch in (-1, 0, 1):
        answer = epoch_end(asker.connection, topic, epoch)
        asker.row(SECTION, f"OffsetForLeaderEpoch td LeaderEpoch={epoch}", answer)
    for offset in (0, 50):
        for version in (4, 12):
            found = fetch(
                asker.connection,
                topic,
                offset,
                version=version,
                max_bytes=25_000,
                max_wait_ms=3000,
            )
            request = f"Fetch td v{version} offset {offset} (remote)"
            asker.row(SECTION, request, fetch_text(found))
    refused = fetch(asker.connection, topic, 0, replica_id=2)
    request = "Fetch td v12 offset 0 as follower (ReplicaId=2)"
    asker.row(SECTION, request, fetch_text(refused))


def _delete_records(asker: Asker, topic: str) -> None:
    asker.row(SECTION, "DeleteRecords td to 60 (inside remote)", _delete(asker, topic, 60))
    _dump(asker, topic, "td after DeleteRecords(60)", (0, T))
    asker.row(SECTION, "DeleteRecords td to HW", _delete(asker, topic, -1))
    # Kafka's tier has nothing of it any more then.
    time.sleep(3)
    _dump(asker, topic, "td after DeleteRecords(HW) + 3 s", (0, T))


def _delete(asker: Asker, topic: str, offset: int) -> str:
    partition = {"PartitionIndex": 0, "Offset": offset}
    body = {"Topics": [{"Name": topic, "Partitions": [partition]}], "TimeoutMs": 5000}
    return str(asker.connection.call("DeleteRecords", 2, body)["Topics"])
