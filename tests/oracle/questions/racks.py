"""A consumer that says which rack it is in (KIP-392): where it is sent, and where it is served."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import ZERO_UUID
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import Row, fetch, fetch_text, records, send_records
from tests.oracle.steering import Steering

SECTION = "Racks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Brokers, each in a rack of its own, by what they do in the story."""

    leader: int
    follower: int
    bystander: int

    @property
    def racks(self) -> dict[str, str]:
        """Racks by whose they are."""
        return {
            "no rack": "",
            "the leader's rack": f"r{self.leader}",
            "the follower's rack": f"r{self.follower}",
            "a bystander's rack": f"r{self.bystander}",
            "an unknown rack": "nowhere",
        }


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of three brokers with racks r1, r2 and r3."""
    asker = Asker(cluster, steering)
    try:
        follower = max(asker.freezable())
        leader, bystander = sorted(asker.alive - {follower})
        roles = Roles(leader=leader, follower=follower, bystander=bystander)
        topic, topic_id = _fill(asker, "racks", roles)
        _everybody_there(asker, topic, topic_id, roles)
        asker.in_time(lambda attempt: _left_behind(asker, f"late{attempt}", roles))
    finally:
        asker.close()
    return asker.rows


def _fill(asker: Asker, suffix: str, roles: Roles) -> tuple[str, str]:
    """A topic of four records; its name and id."""
    topic, topic_id = asker.create(suffix, RETAINED, [roles.leader, roles.follower])
    asker.produce(topic, records(0, 1))
    asker.produce(topic, records(2, 3))
    asker.wait_until_followed(topic, 4, [roles.follower])
    return topic, topic_id


def _row(
    asker: Asker,
    request: str,
    topic: str,
    roles: Roles,
    rack: str,
    *,
    offset: int = 0,
    broker: int | None = None,
    version: int = 12,
    topic_id: str = ZERO_UUID,
    epoch: int = -1,
    replica_id: int = -1,
) -> None:
    answer = fetch(
        asker.to(broker or roles.leader),
        topic,
        offset,
        version=version,
        topic_id=topic_id,
        epoch=epoch,
        replica_id=replica_id,
        rack=roles.racks[rack],
    )
    text = fetch_text(answer).replace(f"prr={roles.follower}", "prr=the follower")
    asker.row(SECTION, f"{request}, {rack}", text)


def _everybody_there(asker: Asker, topic: str, topic_id: str, roles: Roles) -> None:
    for rack in roles.racks:
        for version in (4, 10, 11, 12, 13, 15, 17, 18):
            request = f"leader, v{version}"
            _row(asker, request, topic, roles, rack, version=version, topic_id=topic_id)
        _row(asker, "follower, v12", topic, roles, rack, broker=roles.follower)
        _row(asker, "bystander, v12", topic, roles, rack, broker=roles.bystander)
    rack = "the follower's rack"
    for offset in (1, 3, 4, 5, 99, -1):
        _row(asker, f"leader, v12, offset {offset}", topic, roles, rack, offset=offset)
    current = asker.leader_epoch(topic)
    for name, epoch in (("cur", current), ("cur+1", current + 1)):
        _row(asker, f"leader, v12, epoch {name}", topic, roles, rack, epoch=epoch)
    for name, replica_id in (("-2", -2), ("the follower's", roles.follower)):
        request = f"leader, v12, ReplicaId={name}"
        _row(asker, request, topic, roles, rack, replica_id=replica_id)


def _left_behind(asker: Asker, suffix: str, roles: Roles) -> bool:
    """The follower stops for a moment; whether it was in the ISR all the time."""
    topic, _ = _fill(asker, suffix, roles)
    asker.freeze(roles.follower)
    send_records(asker.connection, topic, records(4, 5), acks=1)
    rack = "the follower's rack"
    for offset in (0, 4, 5, 6):
        request = f"leader, v12, it lags, offset {offset}"
        _row(asker, request, topic, roles, rack, offset=offset)
    in_time = _in_sync(asker, topic) == 2
    asker.thaw(roles.follower)
    wait_until("it is in the ISR", lambda: _in_sync(asker, topic) == 2)
    asker.wait_until_followed(topic, 6, [roles.follower])
    _row(asker, "leader, v12, it has caught up, offset 5", topic, roles, rack, offset=5)
    return in_time


def _in_sync(asker: Asker, topic: str) -> int:
    found = asker.partition(topic)
    return 0 if found is None else len(found["IsrNodes"])
