"""Who leads a partition in the next process, by what was found of its replicas' logs."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fencepost.broker.controller.elections import ElectionRules
from fencepost.broker.data_dir.log_opening import LogDamage, Repair
from fencepost.broker.data_dir.restart import ReplicaState, RestartedPartition, restart_partition
from fencepost.broker.metadata.image import PartitionImage
from fencepost.storage.files.inventory import MissingRecords

RULES: Final = ElectionRules(is_online=lambda _: True, min_insync_replicas=2)
BEFORE: Final = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=4)
WHOLE: Final = ReplicaState(epoch=4, end=20, recorded_end=20, high_watermark=20)


def lost(start: int, end: int = 20) -> ReplicaState:
    """A log whose files miss records."""
    missing = (MissingRecords(start, end, "a file is not there"),)
    return replace(WHOLE, end=0, damage=LogDamage("missing", missing))


def restart(
    before: PartitionImage = BEFORE,
    rules: ElectionRules = RULES,
    *,
    is_outdated: bool = False,
    accept_loss: bool = False,
    **states: ReplicaState,
) -> RestartedPartition:
    """States by ``b1`` to ``b3``."""
    found = {int(name[1:]): state for name, state in states.items()}
    return restart_partition(before, rules, found, is_outdated=is_outdated, accept_loss=accept_loss)


def test_where_nothing_is_wrong_only_the_epochs_are_new() -> None:
    after, repairs, _ = restart(b1=WHOLE, b2=WHOLE, b3=WHOLE)
    assert after == replace(BEFORE, leader_epoch=5, partition_epoch=1)
    assert not repairs


def test_a_follower_that_misses_records_leaves_the_isr_and_fetches_them() -> None:
    after, repairs, _ = restart(b1=WHOLE, b2=lost(10), b3=WHOLE)
    assert (after.leader, after.isr, after.elr) == (1, (1, 3), ())
    assert repairs == {2: Repair.FOLLOW}


def test_a_leader_that_misses_records_follows_one_that_has_them() -> None:
    after, repairs, _ = restart(b1=lost(10), b2=WHOLE, b3=WHOLE)
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 5)
    assert repairs == {1: Repair.FOLLOW}


def test_the_log_that_has_most_leads_whatever_was_written_down() -> None:
    short = replace(WHOLE, end=18, recorded_end=15, high_watermark=15)
    after, repairs, _ = restart(b1=short, b2=WHOLE, b3=WHOLE)
    assert (after.leader, after.isr) == (2, (2, 3))
    assert not repairs


def test_records_that_only_the_leader_has_are_kept() -> None:
    behind = replace(WHOLE, end=18, recorded_end=18, high_watermark=18)
    after, _, _ = restart(b1=replace(WHOLE, high_watermark=18), b2=behind, b3=behind)
    assert (after.leader, after.isr) == (1, (1,))


def test_the_only_replica_stays_offline_and_in_the_isr_until_its_files_are_back() -> None:
    before = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=4)
    after, repairs, _ = restart(before, b1=lost(10))
    assert (after.leader, after.isr, after.failed, after.last_known_elr) == (-1, (1,), (1,), (1,))
    assert repairs == {1: Repair.REFUSE}
    again, repairs, _ = restart(replace(after, failed=()), b1=WHOLE)
    assert (again.leader, again.isr) == (1, (1,))
    assert not repairs


def test_a_replica_that_was_not_in_sync_does_not_lead_for_one_that_misses_records() -> None:
    before = replace(BEFORE, isr=(1,))
    behind = replace(WHOLE, end=5, recorded_end=5, high_watermark=5)
    after, repairs, _ = restart(before, b1=lost(10), b2=behind, b3=behind)
    assert (after.leader, after.isr) == (-1, (1,))
    assert repairs == {1: Repair.REFUSE}


def test_logs_that_all_end_before_what_was_committed_stay_offline() -> None:
    short = replace(WHOLE, end=18)
    after, _, _ = restart(b1=short, b2=short, b3=short)
    assert after.leader == -1


def test_an_accepted_loss_takes_the_log_with_most_and_gives_no_offset_twice() -> None:
    after, repairs, end = restart(b1=lost(5), b2=lost(15), b3=lost(10), accept_loss=True)
    assert (after.leader, after.isr) == (2, (2,))
    assert repairs == {1: Repair.FOLLOW, 2: Repair.ACCEPT, 3: Repair.FOLLOW}
    assert end == 20


def test_an_accepted_loss_loses_nothing_that_is_there() -> None:
    after, repairs, _ = restart(b1=lost(5), b2=WHOLE, b3=WHOLE, accept_loss=True)
    assert after.leader == 2
    assert repairs == {1: Repair.FOLLOW}


def test_an_unclean_election_is_as_allowed_as_ever() -> None:
    rules = replace(RULES, unclean=True)
    before = replace(BEFORE, isr=(1,))
    behind = replace(WHOLE, end=5, recorded_end=5, high_watermark=5)
    after, repairs, _ = restart(before, rules, b1=lost(10), b2=behind, b3=behind)
    assert (after.leader, after.isr) == (2, (2,))
    assert repairs == {1: Repair.FOLLOW}


def test_logs_that_know_a_later_epoch_than_the_controller_lead_alone() -> None:
    later = replace(WHOLE, epoch=7)
    after, _, _ = restart(b1=WHOLE, b2=later, b3=WHOLE)
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2,), 8)


def test_with_an_outdated_image_the_most_complete_of_all_logs_leads() -> None:
    before = replace(BEFORE, isr=(1,))
    short = replace(WHOLE, end=10, recorded_end=10, high_watermark=10)
    after, _, _ = restart(before, b1=short, b2=WHOLE, b3=short, is_outdated=True)
    assert (after.leader, after.isr) == (2, (2,))


def test_a_log_that_cannot_be_read_is_no_candidate() -> None:
    broken = ReplicaState(failure="an I/O error")
    after, repairs, _ = restart(b1=broken, b2=WHOLE, b3=WHOLE)
    assert (after.leader, after.isr, after.failed) == (2, (2, 3), (1,))
    assert not repairs


def test_an_accepted_loss_gives_no_offset_twice_under_a_leader_whose_files_are_whole() -> None:
    before = replace(BEFORE, isr=(1,))
    behind = replace(WHOLE, end=12, recorded_end=12, high_watermark=12)
    after, repairs, end = restart(before, b1=lost(10), b2=behind, b3=behind, accept_loss=True)
    assert (after.leader, after.isr) == (2, (2,))
    assert repairs == {1: Repair.FOLLOW, 2: Repair.ACCEPT}
    assert end == 20
