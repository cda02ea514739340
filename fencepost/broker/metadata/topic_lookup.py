"""Lookups in the metadata image: a topic by its id (KIP-516), online brokers, offline replicas."""

from uuid import UUID

from fencepost.broker.metadata.image import ClusterImage, PartitionImage
from fencepost.protocol.errors import ErrorCode


def resolve_name(
    view: ClusterImage, name: str, topic_id: UUID | None, *, by_id: bool
) -> str | ErrorCode:
    """The topic's name, or UNKNOWN_TOPIC_ID where no topic has the id.

    :param by_id: Whether this version of the API identifies topics by id.
    """
    if not by_id:
        return name
    found = view.names.get(topic_id) if topic_id is not None else None
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else found


def online_brokers(view: ClusterImage) -> frozenset[int]:
    """The brokers that are registered and not fenced."""
    return frozenset(b.broker_id for b in view.brokers.values() if not b.fenced)


def offline_replicas(partition: PartitionImage, online: frozenset[int]) -> tuple[int, ...]:
    """The replicas whose broker is not online, or whose log has failed."""
    replicas, failed = partition.replicas, partition.failed
    if not failed and online.issuperset(replicas):
        return ()
    return tuple(b for b in replicas if b not in online or b in failed)
