"""What becomes of a position whose log was truncated (KIP-320, Consumer Handling).

The leader's answer, of OffsetForLeaderEpoch or a Fetch's DivergingEpoch, is the largest epoch that
is not above the position's, and where that ends in its log:

    the answer                            means
    no epoch, no end                      truncated; where is not known
    an end before the position            truncated; the logs differ from that end on
    a smaller epoch than that of the      truncated, by several unclean elections in a row: that
    record that this consumer read last,  record is not in the log, so its offset is the first that
    and a later end                       is known to differ
    else                                  valid

Kafka's consumer takes the third for valid, and misses records. The offset may be larger than the
first that differs, which only KIP-320's earlier draft finds, by its cache of epochs.
"""

from msgspec import Struct

from fencepost.client.consumer.cluster_metadata import NO_EPOCH
from fencepost.client.consumer.model import OffsetAndMetadata, Truncation
from fencepost.client.consumer.position import AssignedPartition, Position
from fencepost.client.consumer.reset_policy import ResetPolicy, Situation


class Valid(Struct, frozen=True):
    """The position is in the log."""

    epoch: int
    """The largest epoch of the log up to the position, at most."""


class Diverged(Struct, frozen=True):
    """The log was truncated below the position."""

    at: OffsetAndMetadata | None
    """The first offset that is known to differ; None where it could not be found."""


def compare(position: Position, epoch: int, end_offset: int) -> Valid | Diverged:
    """What the leader's answer says of a position with an epoch."""
    if epoch < 0 or end_offset < 0:
        return Diverged(None)
    if end_offset < position.offset:
        return Diverged(OffsetAndMetadata(offset=end_offset, leader_epoch=epoch))
    if position.is_read and epoch < position.epoch:
        return Diverged(OffsetAndMetadata(offset=position.offset - 1, leader_epoch=epoch))
    return Valid(min(epoch, position.epoch))


def handle_truncation(
    partition: AssignedPartition, diverged: Diverged, policy: ResetPolicy
) -> Truncation:
    """Move the position as the policy says; without one it stays, and the application is told."""
    position = partition.position
    assert position is not None
    truncation = Truncation(
        partition=partition.partition,
        position=position.to_commit(),
        divergent_offset=diverged.at,
    )
    if not policy.resets:
        partition.problem = truncation
    elif diverged.at is None:
        partition.await_reset(policy.target(Situation.TRUNCATED))
    else:
        epoch = diverged.at.leader_epoch
        partition.move(diverged.at.offset, NO_EPOCH if epoch is None else epoch, position.leader)
    return truncation
