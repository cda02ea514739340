"""The requests of brokers to the controller, as data: each is a message on the link to it. A
proposal of an ISR (KIP-497, AlterPartition) comes with the reasons for which the controller refuses
one.

Kafka has an API for each but `CreateTopics`, for which a broker forwards a CreateTopics of its own.
The type parameter is the type of the answer.
"""

from uuid import UUID

from msgspec import Struct

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Peer
from fencepost.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage
from fencepost.broker.network.links import ControllerRequest
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode

_ANY_BROKER_EPOCH = -1


class IsrProposal(Struct, frozen=True, kw_only=True):
    """A leader's proposal of another ISR for its partition."""

    topic: str
    topic_id: UUID
    index: int
    leader: int
    broker_epoch: int
    """The leader's registration."""
    leader_epoch: int
    partition_epoch: int
    """Of the partition as the leader sees it; another change may have come first."""
    isr: tuple[tuple[int, int], ...]
    """Broker ids, each with the registration in which it fetched; -1 where it did not say."""


def proposal_error(
    image: ClusterImage, proposal: IsrProposal, partition: PartitionImage
) -> ErrorCode | None:
    """Why the partition keeps the ISR that it has; None where the proposal is accepted."""
    leader = image.brokers.get(proposal.leader)
    if leader is None or leader.epoch != proposal.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    if proposal.leader_epoch < partition.leader_epoch or proposal.leader != partition.leader:
        return ErrorCode.FENCED_LEADER_EPOCH
    if proposal.partition_epoch != partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if any(broker_id not in partition.replicas for broker_id, _ in proposal.isr):
        return ErrorCode.INVALID_REQUEST
    for broker_id, broker_epoch in proposal.isr:
        if broker_id in partition.failed or not is_eligible(
            image.brokers.get(broker_id), broker_epoch
        ):
            return ErrorCode.INELIGIBLE_REPLICA
    return None


def is_eligible(broker: BrokerImage | None, broker_epoch: int) -> bool:
    """Whether a broker may be in an ISR that it fetched for in this registration (KIP-903).

    :param broker: None where it is not registered.
    """
    if broker is None or broker.fenced:
        return False
    return broker_epoch in (_ANY_BROKER_EPOCH, broker.epoch)


class Envelope(ControllerRequest[object], frozen=True, kw_only=True):
    """A client's request that a broker forwards (KIP-590), or that reaches the controller's own
    listener. The answer is the API's response.
    """

    broker_id: int
    """The node that the client sent it to."""
    to_controller: bool = False
    """Whether that is the controller."""
    api: Api
    version: int
    client_id: str | None
    peer: Peer
    request: object


class AlterPartitions(
    ControllerRequest[list[PartitionImage | ErrorCode]], frozen=True, kw_only=True
):
    """ISRs that a leader proposes, each of another partition (KIP-497, AlterPartition).

    The answer has for each the partition as it is then, or why it is as it was.
    """

    proposals: tuple[IsrProposal, ...]


class FailReplicas(ControllerRequest[None], frozen=True, kw_only=True):
    """Replicas whose logs a broker can't use, by topic, topic id and index."""

    broker_id: int
    replicas: tuple[tuple[str, UUID, int], ...]


class RestoreReplicas(ControllerRequest[None], frozen=True, kw_only=True):
    """Replicas that failed and whose logs a broker can use again, by topic, topic id and index."""

    broker_id: int
    replicas: tuple[tuple[str, UUID, int], ...]


class AllocateProducerIds(ControllerRequest[range], frozen=True, kw_only=True):
    """A block of producer ids (KIP-730)."""

    count: int


class CreateTopics(ControllerRequest[list[ErrorCode]], frozen=True, kw_only=True):
    """Topics that a broker creates because a client needs them. The answer has for each NONE or the
    error.
    """

    topics: tuple[NewTopic, ...]
