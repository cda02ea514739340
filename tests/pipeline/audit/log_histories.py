"""A life of a cluster in which nothing goes wrong that should not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from fencepost.storage.formats.checkpoints import decode_offsets
from tests.harness.wait import wait_until
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, Rig, rig

_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """What it left when it was killed, and when it had been started again and stopped.

    Its topics have one partition on three brokers, the first of which leads at first:

    - ``plain``: three segments;
    - ``compacted``: with gaps, and ``changed`` too, whose policy is another by now;
    - ``shortened``: its log start lies within a batch;
    - ``expired``: retention took its first segments;
    - ``tiered``: its first segments are in the tier alone, the last closed one is here as well;
    - ``truncated``: what its first leader alone had was truncated;
    - ``unclean``: what was committed was lost by an unclean election, and truncated.
    """

    killed: Left
    stopped: Left


def live(place: Path) -> Lived:
    with rig(place) as made:
        _plain(made)
        _compacted(made)
        _shortened(made)
        _expired(made)
        _tiered(made)
        _truncated(made)
        _unclean(made)
        wait_for_high_watermark(made, "plain", 72, 1, 2, 3)
        made.kill()
        killed = made.left("killed")
        made.start()
        for topic in ("plain", "tiered", "truncated", "unclean"):
            made.produce(topic, 9)
        made.stop()
        return Lived(killed=killed, stopped=made.left("stopped"))


def fill(made: Rig, topic: str, segments: int, *, keys: int = 1000) -> None:
    """Write closed segments of 30 records."""
    for _ in range(segments):
        made.produce(topic, 30, keys=keys)
        made.about(topic, "roll")


def _plain(made: Rig) -> None:
    made.create("plain", **SMALL)
    fill(made, "plain", 2)
    made.produce("plain", 12)


def _compacted(made: Rig) -> None:
    for topic in ("compacted", "changed"):
        made.create(topic, cleanup_policy="compact", **SMALL)
        fill(made, topic, 2, keys=4)
        made.about(topic, "compact")
        made.produce(topic, 12, keys=4)
    configure(made, "changed", "cleanup.policy", "delete")


def _shortened(made: Rig) -> None:
    made.create("shortened", **SMALL)
    made.produce("shortened", 30)
    delete_records(made, "shortened", 7)


def _expired(made: Rig) -> None:
    made.create("expired", **SMALL)
    fill(made, "expired", 3)
    delete_records(made, "expired", 60)
    made.produce("expired", 3)


def _tiered(made: Rig) -> None:
    made.create("tiered", **TIERED)
    fill(made, "tiered", 2)
    made.about("tiered", "tier", action="upload")
    made.about("tiered", "elect", leader=2)
    fill(made, "tiered", 1)
    made.about("tiered", "tier", action="upload")
    made.about("tiered", "tier", action="delete-local")
    made.about("tiered", "elect", leader=1)
    made.about("tiered", "tier", action="upload")
    made.about("tiered", "tier", action="delete-local")
    fill(made, "tiered", 1)
    made.about("tiered", "tier", action="upload")
    made.produce("tiered", 6)


def _truncated(made: Rig) -> None:
    diverge(made, "truncated")


def diverge(made: Rig, topic: str) -> None:
    """Let broker 1 alone have what was never committed, and come back to another leader."""
    made.create(topic, **SMALL)
    made.produce(topic, 12)
    for follower in (2, 3):
        made.about(topic, f"replicas/{follower}/hold")
    made.produce(topic, 9, acks="1")
    made.tell("brokers/1/kill")
    for follower in (2, 3):
        made.about(topic, f"replicas/{follower}/release")
    made.produce(topic, 15)
    made.tell("brokers/1/start")
    made.produce(topic, 3)


def _unclean(made: Rig) -> None:
    made.create("unclean", **SMALL)
    lose_uncleanly(made, "unclean")
    made.tell("brokers/1/start")
    made.produce("unclean", 3)


def lose_uncleanly(made: Rig, topic: str) -> None:
    """Commit something that broker 1 alone has, and go on without it."""
    made.produce(topic, 6)
    for follower in (2, 3):
        made.about(topic, f"replicas/{follower}/hold", leave_isr=True)
    made.produce(topic, 9)
    wait_for_high_watermark(made, topic, 15, 1)
    made.tell("brokers/1/kill")
    made.about(topic, "elect", leader=2, unclean=True)
    for follower in (2, 3):
        made.about(topic, f"replicas/{follower}/release")
    made.produce(topic, 21)


def delete_records(made: Rig, topic: str, offset: int) -> None:
    """Let the log begin at an offset."""
    admin = _admin(made)
    (future,) = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    future.result(_WAIT_S)


def configure(made: Rig, topic: str, name: str, value: str) -> None:
    """Set a config of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = _admin(made)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(_WAIT_S)


def _admin(made: Rig) -> AdminClient:
    return AdminClient({"bootstrap.servers": made.served.bootstrap, "log_level": 0})


def wait_for_high_watermark(made: Rig, topic: str, offset: int, *brokers: int) -> None:
    """Until the checkpoints of brokers say so."""

    def is_written() -> bool:
        return all(_checkpointed(made, broker, topic) == offset for broker in brokers)

    wait_until("high watermarks are checkpointed", is_written)


def _checkpointed(made: Rig, broker: int, topic: str) -> int | None:
    file = made.place / "data" / f"broker-{broker}" / "replication-offset-checkpoint"
    return decode_offsets(file.read_bytes()).get((topic, 0)) if file.exists() else None
