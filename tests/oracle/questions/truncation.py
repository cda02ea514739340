"""An unclean election (KIP-320): acknowledged records are lost, and the old leader truncates.

Two replicas. The late one falls out of the ISR, the other appends alone and dies, the late one is
elected all the same, appends something else, and then the other is back.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import (
    Row,
    T,
    epoch_end,
    error_text,
    fetch,
    fetch_text,
    list_offsets,
    offset_text,
    produce_text,
    records,
    send_records,
)
from tests.oracle.questions.elections import PREFERRED, UNCLEAN
from tests.oracle.steering import Steering


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Brokers by what they do in the story."""

    first: int
    late: int
    bystander: int

    def name(self, broker: int) -> str:
        """Which one it is: the ids differ between runs."""
        names = {self.first: "first", self.late: "late", self.bystander: "bystander"}
        return names.get(broker, str(broker))


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers, which has three again in the end."""
    asker = Asker(cluster, steering)
    try:
        late = max(asker.freezable())
        first, bystander = sorted(asker.alive - {late})
        roles = Roles(first=first, late=late, bystander=bystander)
        topic, _ = asker.create("truncated", RETAINED, [first, late])
        _lose(asker, topic, roles)
        _elect_uncleanly(asker, topic, roles)
        _look(asker, topic, "after the unclean election", roles)
        _produce(asker, topic, "after the unclean election", records(10))
        _look(asker, topic, "after one record", roles)
        _come_back(asker, topic, roles)
    finally:
        asker.close()
    return asker.rows


def _lose(asker: Asker, topic: str, roles: Roles) -> None:
    """Leave the only copy of two acknowledged records on a broker that is dead."""
    _produce(asker, topic, "to both", records(0, 1))
    asker.freeze(roles.late)
    wait_until("it is out of the ISR", lambda: _in_sync(asker, topic) == [roles.first])
    _produce(asker, topic, "to the first alone", records(2, 3))
    _look(asker, topic, "before", roles)
    asker.facing = roles.bystander
    asker.kill(roles.first)
    asker.thaw(roles.late)
    wait_until("no leader", lambda: _leader(asker, topic) == -1)
    _show(asker, topic, "no leader", roles)


def _elect_uncleanly(asker: Asker, topic: str, roles: Roles) -> None:
    # The late one may not be counted among the living yet.
    no_candidate = 83
    _elect(asker, topic, "preferred, which is dead", PREFERRED)
    found = wait_until(
        "a replica can be elected",
        lambda: _try_to_elect(asker, topic, UNCLEAN, unless=no_candidate),
    )
    asker.row("ElectLeaders", "unclean", str(found))
    asker.facing = asker.wait_until_served(topic, roles.late)
    _elect(asker, topic, "unclean again", UNCLEAN)


def _come_back(asker: Asker, topic: str, roles: Roles) -> None:
    asker.start(roles.first)
    wait_until("both are in sync", lambda: len(_in_sync(asker, topic)) == 2, 60)
    asker.wait_until_followed(topic, 3, [roles.first])
    _look(asker, topic, "when the first is back", roles)
    answer = fetch_text(fetch(asker.to(roles.first), topic, 0))
    asker.row("Fetch", "from the first, which truncated", answer)
    _elect(asker, topic, "preferred, which is back", PREFERRED)
    asker.facing = asker.wait_until_served(topic, roles.first)
    _look(asker, topic, "at the first again", roles)


# -- requests -----------------------------------------------------------------------------------


def _produce(asker: Asker, topic: str, request: str, data: bytes) -> None:
    asker.row("Produce", request, produce_text(send_records(asker.connection, topic, data)))


def _elect(asker: Asker, topic: str, request: str, kind: int) -> None:
    asker.row("ElectLeaders", request, str(_try_to_elect(asker, topic, kind)))


def _try_to_elect(asker: Asker, topic: str, kind: int, unless: int = 0) -> Body | None:
    """The partition's result, or None for this error."""
    asked = [{"Topic": topic, "Partitions": [0]}]
    body: Body = {"ElectionType": kind, "TopicPartitions": asked}
    answer = asker.connection.call("ElectLeaders", 2, body)
    result: Body = answer["ReplicaElectionResults"][0]["PartitionResult"][0]
    return None if unless and result["ErrorCode"] == unless else result


def _leader(asker: Asker, topic: str) -> int | None:
    found = asker.partition(topic)
    return None if found is None else int(found["LeaderId"])


def _in_sync(asker: Asker, topic: str) -> list[int]:
    found = asker.partition(topic)
    return [] if found is None else list(found["IsrNodes"])


def _show(asker: Asker, topic: str, when: str, roles: Roles) -> None:
    found = asker.partition(topic)
    assert found is not None
    text = f"err={error_text(found['ErrorCode'])} leader={roles.name(found['LeaderId'])}"
    text += f" epoch={found['LeaderEpoch']}"
    for key in ("ReplicaNodes", "IsrNodes", "OfflineReplicas"):
        text += f" {key}={sorted(map(roles.name, found[key]))}"
    asker.row("Metadata", when, text)


def _look(asker: Asker, topic: str, when: str, roles: Roles) -> None:
    """Everything that tells of offsets and epochs, at the leader."""
    _show(asker, topic, when, roles)
    for timestamp in (-1, -2, -3, T + 1, T + 2, T + 10):
        shown = timestamp if timestamp < 0 else f"T+{timestamp - T}"
        answer = offset_text(list_offsets(asker.connection, topic, timestamp))
        asker.row("ListOffsets", f"{when}: ts={shown}", answer)
    for epoch in range(5):
        text = epoch_end(asker.connection, topic, epoch)
        asker.row("OffsetForLE", f"{when}: LeaderEpoch={epoch}", text)
    for offset, last in ((0, -1), (2, 0), (3, 0), (4, 0), (4, -1), (2, 2), (3, 2), (3, 1), (3, 3)):
        fetched = fetch(asker.connection, topic, offset, last_fetched_epoch=last)
        request = f"{when}: offset {offset} LastFetchedEpoch={last}"
        asker.row("Fetch", request, fetch_text(fetched))
