"""A broker is away, and the others know: what is elected, moved and created, and after it is back.

Three topics: the absent broker is the preferred leader of the first and alone in the second; the
records of the third need all three replicas.
"""

from __future__ import annotations

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
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
from tests.oracle.questions.elections import UNCLEAN, elect, list_moves, reassign, show
from tests.oracle.steering import Steering

ABSENT = 3


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers, which has three again in the end."""
    asker = Asker(cluster, steering)
    try:
        alone, _ = asker.create("alone", replicas=[ABSENT])
        led, _ = asker.create("led", RETAINED, [ABSENT, 1, 2])
        asker.produce(led, records(0, 1))
        short, _ = asker.create("short", {**RETAINED, "min.insync.replicas": "3"}, [1, 2, ABSENT])
        asker.facing = 1
        asker.freeze(ABSENT)
        wait_until("it is given up", lambda: _is_led_by(asker, alone, -1))
        wait_until("another leads", lambda: _is_led_by(asker, led, 1))
        wait_until("the new leader is ready", lambda: _is_available(asker, led))
        _show_all(asker, "while it is away", led, alone)
        _short_of_replicas(asker, short)
        _elections(asker, led, alone)
        _moves(asker, led)
        _create(asker)
        _add_partition(asker, alone)
        asker.produce(led, records(2, 3))
        asker.thaw(ABSENT)
        wait_until("it is in sync again", lambda: _all_in_sync(asker, led), 60)
        wait_until("it leads again", lambda: _is_led_by(asker, alone, ABSENT))
        _show_all(asker, "when it is back", led, alone)
        _back(asker, led)
    finally:
        asker.close()
    return asker.rows


def _is_led_by(asker: Asker, topic: str, broker: int) -> bool:
    # A topic without a leader has an error in its partition alone.
    found = asker.partition(topic)
    return found is not None and bool(found["LeaderId"] == broker)


def _is_available(asker: Asker, topic: str) -> bool:
    return bool(list_offsets(asker.connection, topic, -1)["ErrorCode"] == 0)


def _all_in_sync(asker: Asker, topic: str) -> bool:
    found = asker.partition(topic)
    return found is not None and len(found["IsrNodes"]) == 3


def _show_all(asker: Asker, when: str, led: str, alone: str) -> None:
    show(asker, f"its topic, {when}", led)
    show(asker, f"its own topic, {when}", alone)


def _short_of_replicas(asker: Asker, topic: str) -> None:
    """Records that never come below the high watermark, and who sees them."""
    send_records(asker.connection, topic, records(0, 1), acks=1)
    send_records(asker.connection, topic, records(2, 3), acks=1)
    for replica_id in (-1, -2, -3, 2):
        for offset in (0, 1, 2, 4, 5):
            answer = fetch(asker.connection, topic, offset, replica_id=replica_id)
            request = f"above the high watermark, ReplicaId={replica_id} offset {offset}"
            asker.row("Fetch", request, fetch_text(answer))
        for timestamp in (-1, -3, T, T + 3):
            when = timestamp if timestamp < 0 else f"T+{timestamp - T}"
            found = list_offsets(asker.connection, topic, timestamp, replica_id=replica_id)
            request = f"above the high watermark, ReplicaId={replica_id} ts={when}"
            asker.row("ListOffsets", request, offset_text(found))
    for epoch in (0, 1):
        request = f"above the high watermark, LeaderEpoch={epoch}"
        asker.row("OffsetForLE", request, epoch_end(asker.connection, topic, epoch))


def _elections(asker: Asker, led: str, alone: str) -> None:
    elect(asker, "preferred, and it is away", [(led, [0])])
    elect(asker, "unclean, and another leads", [(led, [0])], kind=UNCLEAN)
    elect(asker, "preferred, and no broker leads", [(alone, [0])])
    elect(asker, "unclean, and no replica is there", [(alone, [0])], kind=UNCLEAN)
    elect(asker, "unclean, v0 knows preferred alone", [(alone, [0])], version=0)
    answer = send_records(asker.connection, alone, records(0))
    asker.row("Produce", "to its own topic, at another", produce_text(answer))


def _moves(asker: Asker, led: str) -> None:
    moved, _ = asker.create("moved", replicas=[1, 2])
    asker.facing = 1
    reassign(asker, "to the absent broker", moved, [1, ABSENT])
    wait_until("it is being moved", lambda: _replicas(asker, moved) == 3)
    show(asker, "while it is moved", moved)
    list_moves(asker, "all in progress", None)
    list_moves(asker, "of another topic", [(led, [0])])
    elect(asker, "preferred, while it is moved", [(moved, [0])])
    reassign(asker, "to another place meanwhile", moved, [2, ABSENT])
    list_moves(asker, "after another place", None)
    reassign(asker, "cancelled", moved, None)
    wait_until("it is as it was", lambda: _replicas(asker, moved) == 2)
    show(asker, "after it was cancelled", moved)
    list_moves(asker, "after it was cancelled", None)
    reassign(asker, "cancelled again", moved, None)


def _replicas(asker: Asker, topic: str) -> int:
    found = asker.partition(topic)
    return len(found["ReplicaNodes"]) if found else 0


def _create(asker: Asker) -> None:
    """Topics for which there are not enough brokers."""
    for request, count, replicas in (
        ("three replicas", 3, None),
        ("two replicas, one of them on it", -1, [ABSENT, 2]),
        ("one replica, on it", -1, [ABSENT]),
        ("one replica, on a broker that never was", -1, [9]),
    ):
        placed = [] if replicas is None else [{"PartitionIndex": 0, "BrokerIds": replicas}]
        topic: Body = {
            "Name": f"{asker.prefix}-{request.replace(' ', '.').replace(',', '')}",
            "NumPartitions": 1 if replicas is None else -1,
            "ReplicationFactor": count,
            "Assignments": placed,
        }
        answer = asker.connection.call("CreateTopics", 4, {"Topics": [topic], "timeoutMs": 5000})
        asker.row("CreateTopics", request, str(answer["Topics"]))


def _add_partition(asker: Asker, alone: str) -> None:
    for request, replicas in (
        ("where the cluster likes", None),
        ("on it", [{"BrokerIds": [ABSENT]}]),
    ):
        wanted = {"Name": alone, "Count": 2, "Assignments": replicas}
        body: Body = {"Topics": [wanted], "TimeoutMs": 5000, "ValidateOnly": True}
        answer = asker.connection.call("CreatePartitions", 3, body)
        asker.row("CreatePartitions", request, str(answer["Results"]))


def _back(asker: Asker, led: str) -> None:
    elect(asker, "preferred, and it is back", [(led, [0])])
    asker.facing = asker.wait_until_served(led, ABSENT)
    show(asker, "after the preferred election", led)
    for timestamp in (-1, -2, -3):
        answer = offset_text(list_offsets(asker.connection, led, timestamp))
        asker.row("ListOffsets", f"after the preferred election: {timestamp}", answer)
    for epoch in range(4):
        request = f"after the preferred election: {epoch}"
        asker.row("OffsetForLE", request, epoch_end(asker.connection, led, epoch))
