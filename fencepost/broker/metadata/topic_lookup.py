"""How requests name topics, by name in older versions, by id in newer ones (KIP-516), and what
answers tell of their partitions.
"""

from typing import Final
from uuid import UUID

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.metadata.image import ClusterImage, PartitionImage
from fencepost.protocol.errors import ErrorCode

_NO_EPOCH: Final = -1


def resolve_name(
    view: ClusterImage, name: str, topic_id: UUID | None, *, by_id: bool
) -> str | ErrorCode:
    """The topic's name, or the error to answer for an id that nobody has."""
    if not by_id:
        return name
    found = view.names.get(topic_id) if topic_id is not None else None
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else found


def client_leader_epoch(configs: BrokerConfigs, topic: str, epoch: int) -> int:
    """A leader epoch as clients are told: -1 in the old message format (KIP-320)."""
    return epoch if configs.log_config(topic).keeps_leader_epochs else _NO_EPOCH


def online_brokers(view: ClusterImage) -> frozenset[int]:
    """The brokers that the controller believes in: registered, and not fenced."""
    return frozenset(b.broker_id for b in view.brokers.values() if not b.fenced)


def offline_replicas(partition: PartitionImage, online: frozenset[int]) -> tuple[int, ...]:
    """The replicas that are on other brokers than those that are online, or whose log failed."""
    replicas, failed = partition.replicas, partition.failed
    if not failed and online.issuperset(replicas):
        return ()
    return tuple(b for b in replicas if b not in online or b in failed)
