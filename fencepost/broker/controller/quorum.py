"""The quorum of the controllers, as clients are shown it (KIP-595, KIP-853).

One controller decides. It is the leader of the quorum and its first voter; what else
``--controller-ids`` names votes as well and has no other effect. Each node has the id of the
directory for the metadata log, as a Kafka's has, which depends on the cluster and the node alone.
With ``kraft.version`` 0 the voters are known by their node ids alone, and are not changed.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from msgspec.structs import replace

from fencepost.broker.metadata.features import KRAFT_VERSION
from fencepost.broker.metadata.image import ClusterImage
from fencepost.protocol.byte_utils import format_uuid


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: a node and its directory."""

    node_id: int
    directory_id: UUID | None
    """None is that of a replica that has none."""

    @property
    def is_voter(self) -> bool:
        """Whether it may be a voter's: those have an id, and a directory."""
        return self.node_id >= 0 and self.directory_id is not None

    def __str__(self) -> str:
        """As Kafka's messages have it."""
        directory = "<undefined>" if self.directory_id is None else format_uuid(self.directory_id)
        return f"ReplicaKey(id={self.node_id}, directoryId={directory})"


def replica_key(image: ClusterImage, node_id: int) -> ReplicaKey:
    """The key of a node of this cluster."""
    return ReplicaKey(node_id, uuid5(NAMESPACE_OID, f"{image.cluster_id}/{node_id}"))


def voters(image: ClusterImage) -> tuple[ReplicaKey, ...]:
    """Those who elect the leader of the quorum, the leader first."""
    if not image.features[KRAFT_VERSION]:
        return tuple(ReplicaKey(node_id, None) for node_id in image.voters)
    return tuple(replica_key(image, node_id) for node_id in image.voters)


def voter_change_problem(image: ClusterImage, change: str) -> str | None:
    """Why voters are not changed in Kafka's words, where ``kraft.version`` is too low.

    :param change: ``adding`` or ``removing``.
    """
    level = image.features[KRAFT_VERSION]
    if level:
        return None
    return f"Cluster doesn't support {change} voter because the {KRAFT_VERSION} feature is {level}"


def in_java(keys: Iterable[ReplicaKey]) -> str:
    """A set of keys as Kafka's messages have it."""
    return f"[{', '.join(map(str, keys))}]"


def cluster_id_problem(image: ClusterImage, cluster_id: str | None) -> str | None:
    """Why a request is not for this cluster; None where it is, or does not say."""
    if cluster_id is None or cluster_id == image.cluster_id:
        return None
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{image.cluster_id}"'


def without_voter(image: ClusterImage, node_id: int) -> ClusterImage:
    """The cluster without one of several voters, which observes from then on.

    Where it led the quorum, the next one leads it, in the next epoch.
    """
    moved = node_id == image.voters[0]
    return replace(
        image,
        controller_ids=tuple(voter for voter in image.voters if voter != node_id),
        former_voters=(*image.former_voters, node_id),
        quorum_epoch=image.quorum_epoch + moved,
    )
