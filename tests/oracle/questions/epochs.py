"""OffsetForLeaderEpoch: on an empty log and a filled one, by version, epoch and asker."""

from __future__ import annotations

from tests.harness import batches
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import T, epoch_end, list_offsets, offset_text

SECTION = "OffsetForLE"


def ask(asker: Asker) -> None:
    _empty(asker)
    filled, _ = asker.create("ep", RETAINED)
    produced = _fill(asker, filled)
    current = asker.leader_epoch(filled)
    history = f"{produced}; {current}"
    asker.row(SECTION, "DATA history (epoch, records produced); current epoch", history)
    for version in (2, 3, 4):
        for epoch in (-2, -1, *range(current + 3), 10**6):
            answer = epoch_end(asker.connection, filled, epoch, version=version)
            asker.row(SECTION, f"DATA v{version} LeaderEpoch={epoch}", answer)
    _fencing(asker, filled, current)
    _askers(asker, filled)
    if asker.others:
        _elsewhere(asker, filled)
    for timestamp in (-1, -2, -3, T, T + 1, T + 3):
        shown = timestamp if timestamp < 0 else f"T+{timestamp - T}"
        answer = offset_text(list_offsets(asker.connection, filled, timestamp))
        asker.row("ListOffsets", f"EPOCHS topic v11 ts={shown}", answer)


def _empty(asker: Asker) -> None:
    topic, _ = asker.create("epe")
    current = asker.leader_epoch(topic)
    for epoch in (-2, -1, 0, 1, 5):
        answer = epoch_end(asker.connection, topic, epoch)
        asker.row(SECTION, f"EMPTY (epoch {current}) LeaderEpoch={epoch}", answer)


def _fill(asker: Asker, topic: str) -> list[tuple[int, int]]:
    """Records of several epochs, one of which has none; the epochs and how many each has."""
    produced: list[tuple[int, int]] = []

    def produce(count: int) -> None:
        asker.produce(topic, batches.build([(T + i, None, b"v") for i in range(count)]))
        produced.append((asker.leader_epoch(topic), count))

    produce(3)
    if asker.others:
        leader, (second, third) = asker.facing, asker.others[:2]
        asker.move_leader(topic, second)
        produce(2)
        asker.move_leader(topic, third)
        asker.move_leader(topic, second)
        produce(4)
        asker.move_leader(topic, leader)
    return produced


def _fencing(asker: Asker, topic: str, current: int) -> None:
    epochs = {"-1": -1, "cur": current, "cur-1": current - 1, "cur+1": current + 1}
    for name, epoch in epochs.items():
        answer = epoch_end(asker.connection, topic, 0, epoch=epoch)
        asker.row(SECTION, f"DATA v4 LeaderEpoch=0 CurrentLeaderEpoch={name}", answer)


def _elsewhere(asker: Asker, topic: str) -> None:
    """A broker that follows."""
    current, follower = asker.leader_epoch(topic), asker.to(asker.others[0])
    for name, epoch in (
        ("", -1),
        (" CurrentLeaderEpoch=cur", current),
        (" CurrentLeaderEpoch=cur-1", current - 1),
        (" CurrentLeaderEpoch=cur+1", current + 1),
    ):
        answer = epoch_end(follower, topic, 0, epoch=epoch)
        asker.row(SECTION, f"NON-LEADER LeaderEpoch=0{name}", answer)


def _askers(asker: Asker, topic: str) -> None:
    asker.row(SECTION, "unknown topic", epoch_end(asker.connection, "nope", 0))
    missing = epoch_end(asker.connection, topic, 0, partition=5)
    asker.row(SECTION, "partition 5 of 1", missing)
    for replica_id in (-1, -2, 1, 77):
        answer = epoch_end(asker.connection, topic, 0, replica_id=replica_id)
        asker.row(SECTION, f"DATA v4 ReplicaId={replica_id} LeaderEpoch=0", answer)
