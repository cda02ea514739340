"""What a cluster begins with when it has been before: the same, in leader epochs of its own.

Every partition begins in an epoch that it never had, whichever broker leads it: what a client or a
log has of an earlier process is told from what comes now (KIP-101, KIP-320). Who led goes on
leading, so that not even a record is lost that only the leader had.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from fencepost.broker.controller.elections import (
    ElectionRules,
    ElectionType,
    change_partition,
    elect_leader,
)
from fencepost.broker.metadata.image import PartitionImage

NewestEpochs = Mapping[int, int]
"""The newest leader epoch that each broker's log of a partition knows, by broker id."""


def restart_partition(
    before: PartitionImage, rules: ElectionRules, newest: NewestEpochs
) -> PartitionImage:
    """A partition in the process that comes after.

    :param rules: As all brokers are online.
    :param newest: Where a log knows of a later epoch than ``before``, the controller's knowledge
        did not outlive the machine: then the broker with that log leads, alone.
    """
    latest = max(newest.values(), default=-1)
    if latest > before.leader_epoch:
        has_it = [b for b in before.replicas if newest.get(b) == latest]
        leader = before.leader if before.leader in has_it else has_it[0]
        after = elect_leader(before, leader, rules)
        if before.leader not in has_it:
            after = replace(after, isr=(leader,), elr=())
    else:
        election = ElectionType.UNCLEAN if rules.unclean else ElectionType.ANY
        after = change_partition(before, rules, election=election)
    return replace(
        after,
        leader_epoch=max(before.leader_epoch, latest) + 1,
        partition_epoch=before.partition_epoch + 1,
    )


def newest_epochs_by_partition(
    newest: Iterable[tuple[int, Mapping[tuple[str, int], int]]],
) -> Callable[[str, int], NewestEpochs]:
    """The newest epochs of logs, sorted by partition.

    :param newest: Broker ids, each with the newest epoch of its logs by topic and index.
    """
    found: dict[tuple[str, int], dict[int, int]] = {}
    for broker_id, epochs in newest:
        for key, epoch in epochs.items():
            found.setdefault(key, {})[broker_id] = epoch
    return lambda topic, index: found.get((topic, index), {})
