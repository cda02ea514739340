"""OffsetForLeaderEpoch: on an empty log and a filled one, by version, epoch and asker."""

from __future__ import annotations

from tests.harness import batches
from tests.oracle.asking import Broker, T, epoch_end, list_offsets, offset_text, send_records

SECTION = "OffsetForLE"


def ask(broker: Broker) -> None:
    filled, _ = broker.create("ep", {"retention.ms": "-1"})
    _empty(broker)
    send_records(broker.connection, filled, batches.build([(T + i, None, b"v") for i in range(3)]))
    current = broker.leader_epoch(filled)
    history = f"{[(current, 3)]}; {current}"
    broker.row(SECTION, "DATA history (epoch, records produced); current epoch", history)
    for version in (2, 3, 4):
        for epoch in (-2, -1, *range(current + 3), 10**6):
            answer = epoch_end(broker.connection, filled, epoch, version=version)
            broker.row(SECTION, f"DATA v{version} LeaderEpoch={epoch}", answer)
    _fencing(broker, filled, current)
    _askers(broker, filled)
    for timestamp in (-1, -2, -3, T, T + 1, T + 3):
        shown = timestamp if timestamp < 0 else f"T+{timestamp - T}"
        answer = offset_text(list_offsets(broker.connection, filled, timestamp))
        broker.row("ListOffsets", f"EPOCHS topic v11 ts={shown}", answer)


def _empty(broker: Broker) -> None:
    topic, _ = broker.create("epe")
    current = broker.leader_epoch(topic)
    for epoch in (-2, -1, 0, 1, 5):
        answer = epoch_end(broker.connection, topic, epoch)
        broker.row(SECTION, f"EMPTY (epoch {current}) LeaderEpoch={epoch}", answer)


def _fencing(broker: Broker, topic: str, current: int) -> None:
    epochs = {"-1": -1, "cur": current, "cur-1": current - 1, "cur+1": current + 1}
    for name, epoch in epochs.items():
        answer = epoch_end(broker.connection, topic, 0, epoch=epoch)
        broker.row(SECTION, f"DATA v4 LeaderEpoch=0 CurrentLeaderEpoch={name}", answer)


def _askers(broker: Broker, topic: str) -> None:
    broker.row(SECTION, "unknown topic", epoch_end(broker.connection, "nope", 0))
    missing = epoch_end(broker.connection, topic, 0, partition=5)
    broker.row(SECTION, "partition 5 of 1", missing)
    for replica_id in (-1, -2, 1, 77):
        answer = epoch_end(broker.connection, topic, 0, replica_id=replica_id)
        broker.row(SECTION, f"DATA v4 ReplicaId={replica_id} LeaderEpoch=0", answer)
