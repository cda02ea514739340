"""Who leads a partition, of what several brokers believe."""

from dataclasses import dataclass
from uuid import UUID

from fencepost.client.client import Client
from fencepost.client.cluster import ClusterMetadata
from fencepost.client.errors import NoLeader
from fencepost.client.model import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A leader of a partition."""

    broker: int
    epoch: int
    """-1 where brokers are too old to tell."""
    topic_id: UUID | None
    """None where brokers are too old to tell."""


async def find_leader(
    client: Client, partition: Partition, *, last: Leader | None, timeout_s: float
) -> Leader:
    """Who leads in the newest epoch that any broker knows of.

    A broker that lost touch with the controller goes on naming a leader who was deposed. By its
    epoch it is told from the one who leads.

    :param last: The last leader that was found: what is older is not believed, and another
        topic of the same name is not the same topic.
    :raises NoLeader: When nobody knows of one.
    :raises KafkaClientError: When nobody answers.
    """
    answers = await client.ask_all(partition.topic, timeout_s=timeout_s)
    found = [leader for each in answers if (leader := _leader(each, partition)) is not None]
    if last is not None:
        found = [each for each in found if each.epoch >= last.epoch and _same_topic(each, last)]
    if not found:
        raise NoLeader(f"no broker knows of a leader of {partition.topic}-{partition.index}")
    return max(found, key=lambda each: each.epoch)


def _leader(seen: ClusterMetadata, partition: Partition) -> Leader | None:
    found = seen.partition(partition.topic, partition.index)
    if found is None or found.leader < 0:
        return None
    topic_id = seen.topics[partition.topic].topic_id
    return Leader(broker=found.leader, epoch=found.leader_epoch, topic_id=topic_id)


def _same_topic(one: Leader, other: Leader) -> bool:
    return one.topic_id is None or other.topic_id is None or one.topic_id == other.topic_id
