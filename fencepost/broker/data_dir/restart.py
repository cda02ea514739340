"""Who leads a partition when a process starts on the files of an earlier one.

Every partition begins in a leader epoch that it never had. All replicas' logs are open by then, so
that the election knows what no election in a running cluster can: which log has most, and which
logs miss records that they had.

- The former leader goes on leading where no other log of the ISR has more: with a later leader
  epoch, or in the same one further. Records that only it had are not lost. Where another log of the
  ISR has more, files of the former leader are gone, and the other one leads.
- A replica that misses records, or ends before the leader, leaves the ISR and follows.
- Where the logs know of a later epoch than the controller, or of later images, the controller's
  metadata are an old copy: then the most complete of all logs leads, alone.
- Where every log of the ISR misses records the partition stays offline, unless the loss is
  accepted: then the most complete log leads, alone.
"""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.controller.elections import (
    ElectionRules,
    ElectionType,
    change_partition,
    elect_leader,
)
from fencepost.broker.data_dir.log_opening import LogDamage, Repair
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage


class ReplicaState(Struct, frozen=True, kw_only=True):
    """What was found of one replica's log; the defaults are those of a log that is new."""

    epoch: int = -1
    """The newest leader epoch that it knows; of a log that is not open: that it knew."""
    end: int = 0
    """Its end (exclusive), where it is open."""
    recorded_end: int = 0
    """Its end when that was last written down."""
    high_watermark: int = 0
    """When that was last written down."""
    damage: LogDamage | None = None
    """Why it is not open, where it could be opened without some of its records."""
    failure: str | None = None
    """Why it can't be opened at all."""

    @property
    def is_usable(self) -> bool:
        """Whether the log is open, or new."""
        return self.damage is None and self.failure is None

    @property
    def completeness(self) -> tuple[int, int]:
        """Of two logs the one with the higher value has all that the other has.

        Of a log that is not open: up to where records are missing.
        """
        if self.damage is None:
            return (self.epoch, self.end)
        missing = self.damage.missing
        return (self.epoch, missing[0].start if missing else 0)


def repair_alone(partition: PartitionImage, broker_id: int) -> Repair:
    """What a broker that starts alone may do: follow, where no other counts on its records."""
    counted = {*partition.isr, *partition.elr, *partition.last_known_elr}
    if partition.leader in (NO_LEADER, broker_id) or broker_id in counted:
        return Repair.REFUSE
    return Repair.FOLLOW


class RestartedPartition(NamedTuple):
    """A partition in the new process, and what its damaged logs are to do.

    :ivar repairs: By broker id, of the replicas that are damaged, and of a leader that is to accept
        the loss of records that it never had.
    :ivar end_at_least: With ACCEPT: no offset below it may be given out again.
    """

    image: PartitionImage
    repairs: Mapping[int, Repair]
    end_at_least: int = 0


def restart_partition(
    before: PartitionImage,
    rules: ElectionRules,
    states: Mapping[int, ReplicaState],
    *,
    is_outdated: bool = False,
    accept_loss: bool = False,
) -> RestartedPartition:
    """A partition in the process that comes after.

    :param rules: As all brokers are online.
    :param states: What was found of its replicas' logs, by broker id.
    :param is_outdated: Whether ``before`` is older than the logs.
    :param accept_loss: Whether records may be lost, where no log has them.
    """
    found = {b: states.get(b, ReplicaState()) for b in before.replicas}
    latest = max((each.epoch for each in found.values()), default=-1)
    usable = [b for b in before.replicas if found[b].is_usable]
    damaged = [b for b in before.replicas if found[b].damage is not None]
    is_outdated = is_outdated or latest > before.leader_epoch
    leader, end = _complete_leader(before, found, latest, is_outdated=is_outdated), 0
    if leader is None and rules.unclean and usable:
        leader = max(usable, key=lambda b: found[b].completeness)
    is_loss = leader is None and accept_loss and bool(usable or damaged)
    if is_loss:
        leader = max([*usable, *damaged], key=lambda b: found[b].completeness)
        end = max(each.recorded_end for each in found.values())
    if leader is None:
        after, repair = _without_leader(before, found), Repair.REFUSE
    else:
        after = _with_leader(before, found, rules, leader, is_outdated=is_outdated)
        repair = Repair.FOLLOW
    repairs = dict.fromkeys(damaged, repair)
    if is_loss and leader is not None and (leader in repairs or found[leader].end < end):
        repairs[leader] = Repair.ACCEPT
    image = replace(
        after,
        leader_epoch=max(before.leader_epoch, latest) + 1,
        partition_epoch=before.partition_epoch + 1,
    )
    return RestartedPartition(image, repairs, end)


def _complete_leader(
    before: PartitionImage,
    found: Mapping[int, ReplicaState],
    latest: int,
    *,
    is_outdated: bool,
) -> int | None:
    """The replica that has all records that were committed; None where no log is sure to."""
    if is_outdated:
        counted = [b for b in before.replicas if found[b].epoch == latest]
    else:
        known = before.isr or before.elr or before.last_known_elr or (before.leader,)
        counted = [b for b in known if b in found]
    candidates = [b for b in counted if found[b].is_usable]
    if not candidates:
        return None
    best = max(found[b].completeness for b in candidates)
    if best[1] < max(found[b].high_watermark for b in counted):
        return None
    if before.leader in candidates and found[before.leader].completeness == best:
        return before.leader
    return next(b for b in candidates if found[b].completeness == best)


def _with_leader(
    before: PartitionImage,
    found: Mapping[int, ReplicaState],
    rules: ElectionRules,
    leader: int,
    *,
    is_outdated: bool,
) -> PartitionImage:
    most = found[leader].completeness
    behind = {b for b in before.replicas if not found[b].is_usable or found[b].completeness < most}
    failed = tuple(b for b in before.replicas if found[b].failure is not None)
    isr = [b for b in before.isr if b not in behind]
    if leader not in isr or (is_outdated and before.leader in behind):
        isr = [leader]
    draft = replace(before, failed=failed)
    if set(isr) != set(before.isr):
        draft = change_partition(draft, rules, isr=isr, lost=behind)
    if leader != draft.leader:
        return elect_leader(draft, leader, rules)
    election = ElectionType.UNCLEAN if rules.unclean else ElectionType.ANY
    return change_partition(draft, rules, election=election)


def _without_leader(before: PartitionImage, found: Mapping[int, ReplicaState]) -> PartitionImage:
    """Offline: its ISR stays, so that a log whose files are restored may lead again."""
    return replace(
        before,
        failed=tuple(b for b in before.replicas if not found[b].is_usable),
        leader=NO_LEADER,
        last_known_elr=before.last_known_elr if before.leader == NO_LEADER else (before.leader,),
    )
