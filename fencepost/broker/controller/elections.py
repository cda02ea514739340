"""Elections: the leader, ISR and ELR of a partition when its replicas come and go.

Pure: a partition in, the next one out. The rules are Kafka's since KIP-966. A clean leader comes
from the ISR, or from the eligible leader replicas (ELR), who left the ISR when it was already
smaller than ``min.insync.replicas`` and so have all that was ever acknowledged to acks=all. Where
neither is left, the last leader may lead again, alone; any other replica only uncleanly.

A new leader is a new leader epoch. A partition without a leader has an epoch of its own too, and a
replica that holds the partition no more ends one, so that it can't be taken for a follower.
"""

from collections.abc import Callable, Collection
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.controller.reassignment import Assignment, maybe_complete
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage


class ElectionType(Enum):
    """Which replicas an election prefers."""

    ANY = "any"
    """The leader stays while it may; else the first of the assignment that may."""
    PREFERRED = "preferred"
    """The first of the assignment, if it may."""
    UNCLEAN = "unclean"
    """As ``ANY``, and a replica that is out of sync where no other is left."""


class ElectionRules(Struct, frozen=True, kw_only=True):
    """The state of the cluster on which a partition's election depends."""

    is_online: Callable[[int], bool]
    """Whether a broker is registered and not fenced."""
    min_insync_replicas: int
    unclean: bool = False
    """Whether the topic allows unclean elections (``unclean.leader.election.enable``)."""
    keeps_eligible: bool = True
    """Whether there is an ELR (``eligible.leader.replicas.version``); without it the last replica
    in sync stays in the ISR."""


def change_partition(
    before: PartitionImage,
    rules: ElectionRules,
    *,
    isr: Collection[int] | None = None,
    lost: Collection[int] = (),
    election: ElectionType = ElectionType.ANY,
    assignment: Assignment | None = None,
) -> PartitionImage:
    """The partition after a change of its ISR, of its assignment or of who is online.

    A reassignment whose replicas are all in this ISR is complete with it (KIP-455).

    :param isr: The new ISR, None where it stays.
    :param lost: Replicas that came back without their records: they are not eligible any more.
    :param assignment: Who is to hold it from now on, None where that stays.
    :returns: ``before`` itself where nothing changes; else with the next partition epoch, and the
        next leader epoch where the leader is another, or a replica is one no more.
    """
    draft = maybe_complete(_assigned(before, isr, assignment))
    if draft.failed:
        draft = replace(draft, failed=tuple(b for b in draft.failed if b in draft.replicas))
    draft = _with_eligible(draft, before, frozenset(lost), rules)
    draft = _elected(draft, rules, election)
    if draft is before or draft == before:
        return before
    moved = draft.leader != before.leader or not set(before.replicas) <= set(draft.replicas)
    return replace(
        draft,
        leader_epoch=before.leader_epoch + moved,
        partition_epoch=before.partition_epoch + 1,
    )


def elect_leader(before: PartitionImage, leader: int, rules: ElectionRules) -> PartitionImage:
    """The partition with this very leader, in a new leader epoch even where it led before.

    A leader from the ISR, or from the ELR while the ISR is empty, is a clean one; any other is the
    whole ISR afterwards, and no other is eligible.

    :param leader: A broker that is online and among the replicas.
    """
    cleanly = is_clean_leader(before, leader)
    draft = _with_leader(before, leader, rules) if cleanly else _with_unclean_leader(before, leader)
    return replace(
        draft,
        leader_epoch=before.leader_epoch + 1,
        partition_epoch=before.partition_epoch + 1,
    )


def is_clean_leader(partition: PartitionImage, broker_id: int) -> bool:
    """Whether no acknowledged record is lost with this leader."""
    return broker_id in partition.isr or (not partition.isr and broker_id in partition.elr)


def without_failed(partition: PartitionImage, broker_id: int) -> PartitionImage:
    """The partition, where a broker's log has not failed, or does not any more."""
    if broker_id not in partition.failed:
        return partition
    return replace(partition, failed=tuple(b for b in partition.failed if b != broker_id))


def _assigned(
    before: PartitionImage, isr: Collection[int] | None, assignment: Assignment | None
) -> PartitionImage:
    draft = before
    if assignment is not None:
        draft = replace(
            before,
            replicas=assignment.replicas,
            adding=assignment.adding,
            removing=assignment.removing,
        )
    asked = before.isr if isr is None else isr
    held = tuple(b for b in asked if b in draft.replicas)
    return draft if held == draft.isr else replace(draft, isr=held)


def _with_eligible(
    draft: PartitionImage, before: PartitionImage, lost: frozenset[int], rules: ElectionRules
) -> PartitionImage:
    """Replicas that left the ISR since it was large enough are still eligible (KIP-966)."""
    if not rules.keeps_eligible:
        in_sync = draft.isr or tuple(b for b in before.isr if b in draft.replicas)
        return replace(draft, isr=in_sync, elr=(), last_known_elr=())
    if _is_large_enough(draft, rules):
        return _without_eligible(draft)
    eligible = {*before.elr, *before.isr} & set(draft.replicas)
    return replace(draft, elr=tuple(sorted(eligible - set(draft.isr) - lost)))


def _without_eligible(draft: PartitionImage) -> PartitionImage:
    return replace(draft, elr=()) if draft.elr else draft


def _is_large_enough(partition: PartitionImage, rules: ElectionRules) -> bool:
    return len(partition.isr) >= min(rules.min_insync_replicas, len(partition.replicas))


def _elected(draft: PartitionImage, rules: ElectionRules, election: ElectionType) -> PartitionImage:
    online = [b for b in draft.replicas if rules.is_online(b) and b not in draft.failed]
    clean = [b for b in online if is_clean_leader(draft, b)]
    if election is ElectionType.PREFERRED and clean[:1] == list(draft.replicas[:1]):
        return _with_leader(draft, clean[0], rules)
    if clean:
        return _with_leader(draft, draft.leader if draft.leader in clean else clean[0], rules)
    known = _last_known_leader(draft)
    fallback = known if known in online else None
    if fallback is None and election is ElectionType.UNCLEAN:
        fallback = next(iter(online), None)
    if fallback is not None:
        return _with_unclean_leader(draft, fallback)
    last = draft.last_known_elr if draft.leader == NO_LEADER else (draft.leader,)
    last = last if rules.keeps_eligible else ()
    return replace(draft, leader=NO_LEADER, last_known_elr=last)


def _last_known_leader(draft: PartitionImage) -> int | None:
    """The last leader where no replica is in sync or eligible: no other log has more."""
    if draft.isr or draft.elr:
        return None
    known = draft.last_known_elr or (draft.leader,)
    return known[0] if len(known) == 1 and known[0] in draft.replicas else None


def _with_leader(draft: PartitionImage, leader: int, rules: ElectionRules) -> PartitionImage:
    if leader not in draft.isr:
        elr = tuple(b for b in draft.elr if b != leader)
        draft = replace(draft, isr=(leader,), elr=elr)
    if _is_large_enough(draft, rules):
        draft = _without_eligible(draft)
    if leader == draft.leader and not draft.last_known_elr:
        return draft  # as for most of the thousands of partitions of a broker
    return replace(draft, leader=leader, last_known_elr=())


def _with_unclean_leader(draft: PartitionImage, leader: int) -> PartitionImage:
    """Uncleanly: records that this leader lacks are lost, and no other replica is eligible."""
    return replace(draft, leader=leader, isr=(leader,), elr=(), last_known_elr=())
