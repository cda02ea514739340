"""The ISRs that leaders propose (KIP-497, AlterPartition), and why the controller refuses one."""

from dataclasses import dataclass
from uuid import UUID

from fencepost.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage
from fencepost.protocol.errors import ErrorCode

_ANY_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
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
        if broker_id in partition.failed or not is_eligible(image.brokers[broker_id], broker_epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return None


def is_eligible(broker: BrokerImage, broker_epoch: int) -> bool:
    """Whether a broker may be in an ISR that it fetched for in this registration (KIP-903)."""
    return not broker.fenced and broker_epoch in (_ANY_BROKER_EPOCH, broker.epoch)
