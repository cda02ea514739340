"""Other replicas for a partition: how a reassignment begins, ends, or is taken back (KIP-455).

Pure, and each step is one change of the partition. At its beginning a partition gets the replicas
that it is to have and keeps those that it has: the new ones catch up and enter the ISR, the old
ones serve on. It is complete with the first ISR that holds all added replicas: then the removed
ones are no replicas any more, and where one of them leads, another is elected in the same change
(`elections.change_partition`).

The rules are those of Kafka 4.3, with its one oddity: a reassignment on top of another starts from
all replicas that there are by then. Where it adds (or removes) no replica, those that were being
added (removed) stay marked so; where one is both added and removed, only a cancellation ends it.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.metadata.image import PartitionImage


class Assignment(Struct, frozen=True, kw_only=True):
    """The replicas of a partition, with those that it has during a reassignment."""

    replicas: tuple[int, ...]
    """Broker ids: the preferred leader first, those that are to go last."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class RevertedReassignment(Struct, frozen=True, kw_only=True):
    """What a cancellation goes back to."""

    assignment: Assignment
    isr: tuple[int, ...]
    unclean: bool
    """Whether all of the ISR would go, so that a replica out of sync takes over."""


def is_in_progress(partition: PartitionImage) -> bool:
    """Whether replicas come or go."""
    return bool(partition.adding or partition.removing)


def replication_factor(partition: PartitionImage) -> int:
    """How many replicas the partition has, or will have once its reassignment is complete."""
    return len(set(partition.replicas) - set(partition.removing))


def begin(partition: PartitionImage, target: Sequence[int]) -> Assignment:
    """The assignment from which ``target`` is reached.

    :param target: Broker ids, at least one and none twice, the preferred leader first.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return Assignment(
        replicas=(*target, *removing),
        adding=adding or partition.adding,
        removing=removing or partition.removing,
    )


def revert(partition: PartitionImage) -> RevertedReassignment:
    """What there was before the reassignment in progress, as far as it can be had."""
    replicas = tuple(b for b in partition.replicas if b not in partition.adding)
    isr = tuple(b for b in partition.isr if b not in partition.adding)
    return RevertedReassignment(
        assignment=Assignment(replicas=replicas),
        isr=isr or replicas[:1],
        unclean=not isr,
    )


def maybe_complete(partition: PartitionImage) -> PartitionImage:
    """The partition with its reassignment complete if its ISR allows it; else itself.

    All who come have to be in sync; where more go than come, all who stay. Epochs are left to the
    caller.
    """
    if not is_in_progress(partition):
        return partition
    replicas = tuple(b for b in partition.replicas if b not in partition.removing)
    isr = tuple(b for b in partition.isr if b not in partition.removing)
    if not set(partition.adding) <= set(isr):
        return partition
    shrinks = len(partition.adding) < len(partition.removing)
    if shrinks and not set(replicas) <= set(isr):
        return partition
    return replace(partition, replicas=replicas, isr=isr, adding=(), removing=())
