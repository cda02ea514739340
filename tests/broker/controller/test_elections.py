"""Who leads, who is in sync and who is eligible, as replicas come and go."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.controller.elections import (
    ElectionRules,
    ElectionType,
    change_partition,
    elect_leader,
    is_clean_leader,
)
from fencepost.broker.controller.reassignment import Assignment, begin, is_in_progress, revert
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage

BROKERS: Final = (1, 2, 3, 4, 5)


def partition(
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    *,
    elr: Sequence[int] = (),
    known: Sequence[int] = (),
    adding: Sequence[int] = (),
    removing: Sequence[int] = (),
) -> PartitionImage:
    in_sync = tuple(replicas if isr is None else isr)
    chosen = in_sync[0] if in_sync else NO_LEADER
    return PartitionImage(
        replicas=tuple(replicas),
        isr=in_sync,
        leader=chosen if leader is None else leader,
        leader_epoch=5,
        partition_epoch=9,
        elr=tuple(elr),
        last_known_elr=tuple(known),
        adding=tuple(adding),
        removing=tuple(removing),
    )


def rules(*, offline: Collection[int] = (), least: int = 1) -> ElectionRules:
    return ElectionRules(
        is_online=lambda b: b in BROKERS and b not in offline, min_insync_replicas=least
    )


def leaves(
    before: PartitionImage,
    *gone: int,
    least: int = 1,
    offline: Collection[int] = (),
    election: ElectionType = ElectionType.ANY,
) -> PartitionImage:
    """Brokers go offline, and with that out of the ISR."""
    isr = [b for b in before.isr if b not in gone]
    cluster = rules(offline={*gone, *offline}, least=least)
    return change_partition(before, cluster, isr=isr, election=election)


def epochs(after: PartitionImage) -> tuple[int, int]:
    return after.leader_epoch, after.partition_epoch


# -- clean elections ----------------------------------------------------------------------------


def test_nothing_changes_where_nothing_has_to() -> None:
    before = partition(leader=2)
    assert change_partition(before, rules()) is before
    assert change_partition(before, rules(), isr=[1, 2, 3]) is before


def test_the_leader_stays_while_it_is_in_sync_and_online() -> None:
    after = leaves(partition(leader=2), 1)
    assert (after.leader, after.isr) == (2, (2, 3))
    assert epochs(after) == (5, 10), "a change of the ISR alone is no new leader epoch"


def test_the_first_in_sync_replica_of_the_assignment_succeeds() -> None:
    after = leaves(partition((3, 1, 2), isr=(2, 1, 3), leader=3), 3)
    assert (after.leader, after.isr) == (1, (2, 1))
    assert epochs(after) == (6, 10)


def test_a_successor_is_online() -> None:
    after = leaves(partition(), 1, offline=[2])
    assert after.leader == 3


def test_who_is_out_of_sync_does_not_succeed() -> None:
    after = leaves(partition(isr=(1,)), 1)
    assert (after.leader, after.isr) == (NO_LEADER, ())
    assert epochs(after) == (6, 10), "to have no leader is a leader epoch too"


def test_the_isr_grows_without_an_election() -> None:
    after = change_partition(partition(isr=(2,), leader=2), rules(), isr=[2, 1])
    assert (after.leader, after.isr) == (2, (2, 1))
    assert epochs(after) == (5, 10)


# -- preferred elections ------------------------------------------------------------------------


def test_the_preferred_replica_takes_over() -> None:
    after = change_partition(partition(leader=2), rules(), election=ElectionType.PREFERRED)
    assert after.leader == 1
    assert epochs(after) == (6, 10)


@pytest.mark.parametrize(
    ("isr", "offline"), [((2, 3), ()), ((1, 2, 3), (1,))], ids=["out of sync", "offline"]
)
def test_the_leader_stays_where_the_preferred_replica_cannot_lead(
    isr: tuple[int, ...], offline: tuple[int, ...]
) -> None:
    before = partition(isr=isr, leader=2)
    assert (
        change_partition(before, rules(offline=offline), election=ElectionType.PREFERRED) is before
    )


def test_an_eligible_preferred_replica_does_not_depose_a_leader_in_sync() -> None:
    before = partition(isr=(2,), leader=2, elr=(1, 3))
    assert change_partition(before, rules(least=2), election=ElectionType.PREFERRED) is before


def test_a_preferred_election_finds_a_leader_for_who_has_none() -> None:
    before = partition(isr=(), elr=(2, 3))
    after = change_partition(
        before, rules(offline=[1, 2], least=2), election=ElectionType.PREFERRED
    )
    assert (after.leader, after.isr, after.elr) == (3, (3,), (2,))


# -- eligible leader replicas (KIP-966) ---------------------------------------------------------


def test_who_leaves_a_large_isr_is_not_eligible() -> None:
    assert leaves(partition(), 3, least=2).elr == ()


def test_who_leaves_an_isr_of_the_least_size_is_eligible() -> None:
    once = leaves(partition(isr=(1, 2)), 2, least=2)
    assert (once.leader, once.isr, once.elr) == (1, (1,), (2,))
    twice = leaves(once, 1, least=2, offline=[2])
    assert (twice.leader, twice.isr, twice.elr) == (NO_LEADER, (), (1, 2))


def test_an_eligible_replica_leads_as_soon_as_it_is_back() -> None:
    before = partition(isr=(), elr=(1, 2), known=(1,))
    after = change_partition(before, rules(offline=[1], least=2))
    assert (after.leader, after.isr, after.elr) == (2, (2,), (1,))
    assert after.last_known_elr == ()
    assert epochs(after) == (6, 10)


def test_nobody_is_eligible_besides_a_large_isr() -> None:
    before = partition(isr=(1,), elr=(2, 3))
    assert change_partition(before, rules(least=2), isr=[1, 3]).elr == ()
    assert change_partition(before, rules(least=3), isr=[1, 3]).elr == (2,)


def test_who_was_out_of_sync_while_the_isr_was_large_is_not_eligible() -> None:
    before = partition(isr=(), elr=(2,))
    assert change_partition(before, rules(offline=[2], least=2)) is before, (
        "1 and 3 are online, in vain"
    )


def test_no_more_replicas_have_to_be_in_sync_than_there_are() -> None:
    assert leaves(partition((1, 2), isr=(1, 2)), 2, least=3).elr == (2,)
    assert change_partition(partition((1,)), rules(least=3), isr=[1]).elr == ()


def test_who_lost_its_records_is_eligible_no_more() -> None:
    before = partition(isr=(1,), elr=(2, 3))
    assert change_partition(before, rules(least=3), lost=[2]).elr == (3,)
    after = change_partition(before, rules(offline=[1], least=3), isr=[], lost=[1])
    assert (after.leader, after.isr, after.elr) == (2, (2,), (3,))


def test_the_leader_of_an_empty_isr_that_is_eligible_is_the_isr() -> None:
    after = change_partition(partition(isr=(1,)), rules(), isr=[])
    assert (after.leader, after.isr, after.elr) == (1, (1,), ())


# -- the last leader ----------------------------------------------------------------------------


def test_who_led_last_is_known_while_nobody_leads() -> None:
    after = leaves(partition((1,)), 1)
    assert (after.leader, after.elr, after.last_known_elr) == (NO_LEADER, (1,), (1,))
    again = change_partition(after, rules())
    assert (again.leader, again.isr, again.elr, again.last_known_elr) == (1, (1,), (), ())


def test_who_led_last_leads_again_where_nobody_is_eligible() -> None:
    before = partition(isr=(), known=(3,))
    assert change_partition(before, rules(offline=[3])) is before
    after = change_partition(before, rules())
    assert (after.leader, after.isr, after.last_known_elr) == (3, (3,), ())
    assert epochs(after) == (6, 10)


def test_who_led_last_and_lost_its_records_leads_again_where_nobody_else_can() -> None:
    after = change_partition(partition(isr=(1,)), rules(), isr=[], lost=[1])
    assert (after.leader, after.isr, after.elr) == (1, (1,), ())


def test_who_led_last_does_not_lead_while_another_is_eligible() -> None:
    before = partition(isr=(), elr=(2,), known=(1,))
    assert change_partition(before, rules(offline=[2], least=2)) is before, (
        "1 may have lost its records"
    )


@pytest.mark.parametrize("known", [(2, 3), (4,)], ids=["several", "no replica"])
def test_who_led_last_must_be_certain_and_have_a_replica(known: tuple[int, ...]) -> None:
    before = partition(isr=(), known=known)
    assert change_partition(before, rules()) is before


# -- unclean elections --------------------------------------------------------------------------


def test_an_unclean_election_takes_the_first_that_is_online() -> None:
    after = leaves(partition(isr=(1,)), 1, offline=[2], election=ElectionType.UNCLEAN)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (3, (3,), (), ())
    assert epochs(after) == (6, 10)


def test_an_unclean_election_prefers_a_clean_leader() -> None:
    cluster = rules(offline=[1], least=2)
    in_sync = partition(isr=(1, 3))
    assert change_partition(in_sync, cluster, isr=[3], election=ElectionType.UNCLEAN).leader == 3
    eligible = partition(isr=(), elr=(1, 3))
    assert change_partition(eligible, cluster, election=ElectionType.UNCLEAN).leader == 3
    known = partition(isr=(), known=(3,))
    assert change_partition(known, cluster, election=ElectionType.UNCLEAN).leader == 3


def test_an_unclean_election_leaves_nobody_eligible() -> None:
    before = partition(isr=(), elr=(1,), known=(1,))
    after = change_partition(before, rules(offline=[1], least=2), election=ElectionType.UNCLEAN)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (2, (2,), (), ())


def test_an_unclean_election_needs_somebody_online() -> None:
    before = partition(isr=(), elr=(1,), known=(1,))
    cluster = rules(offline=BROKERS, least=2)
    assert change_partition(before, cluster, election=ElectionType.UNCLEAN) is before


# -- appointments -------------------------------------------------------------------------------


def test_an_appointed_leader_has_a_new_epoch_even_where_it_led() -> None:
    for leader in (1, 2):
        after = elect_leader(partition(), leader, rules())
        assert (after.leader, after.isr) == (leader, (1, 2, 3))
        assert epochs(after) == (6, 10)


def test_an_appointed_leader_from_the_isr_leaves_the_rest_eligible() -> None:
    after = elect_leader(partition(isr=(1, 2), elr=(3,)), 2, rules(least=3))
    assert (after.leader, after.isr, after.elr) == (2, (1, 2), (3,))


def test_an_appointed_leader_that_is_eligible_is_the_isr_and_others_stay_eligible() -> None:
    after = elect_leader(partition(isr=(), elr=(1, 2), known=(1,)), 2, rules(least=2))
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (2, (2,), (1,), ())


@pytest.mark.parametrize(("isr", "elr"), [((1,), (2,)), ((1,), ()), ((), (1,))])
def test_any_other_appointed_leader_is_alone(isr: tuple[int, ...], elr: tuple[int, ...]) -> None:
    before = partition(isr=isr, elr=elr)
    assert not is_clean_leader(before, 2)
    after = elect_leader(before, 2, rules(least=2))
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())


def test_clean_leaders_are_in_sync_or_eligible_while_nobody_is_in_sync() -> None:
    assert is_clean_leader(partition(isr=(1, 2)), 2)
    assert is_clean_leader(partition(isr=(), elr=(2,)), 2)
    assert not is_clean_leader(partition(isr=(1,), elr=(2,)), 2)
    assert not is_clean_leader(partition(isr=(), known=(2,)), 2)


# -- reassignments (KIP-455) --------------------------------------------------------------------


def test_a_reassignment_waits_for_those_who_come() -> None:
    before = partition((1, 2))
    after = change_partition(before, rules(), assignment=begin(before, [2, 3]))
    assert (after.replicas, after.adding, after.removing) == ((2, 3, 1), (3,), (1,))
    assert (after.leader, after.isr) == (1, (1, 2))
    assert epochs(after) == (5, 10)


def test_a_reassignment_is_complete_with_the_isr_and_the_leader_that_goes_is_replaced() -> None:
    before = partition((2, 3, 1), isr=(1, 2), leader=1, adding=(3,), removing=(1,))
    after = change_partition(before, rules(), isr=[1, 2, 3])
    assert after == replace(
        before,
        replicas=(2, 3),
        isr=(2, 3),
        leader=2,
        adding=(),
        removing=(),
        leader_epoch=6,
        partition_epoch=10,
    )


def test_a_leader_that_stays_has_a_new_epoch_when_others_went() -> None:
    before = partition((1, 3, 2), isr=(1, 2), adding=(3,), removing=(2,))
    after = change_partition(before, rules(), isr=[1, 2, 3])
    assert (after.replicas, after.isr, after.leader) == ((1, 3), (1, 3), 1)
    assert epochs(after) == (6, 10)


def test_an_assignment_that_only_grew_is_complete_without_a_new_epoch() -> None:
    before = partition((1, 2), isr=(1,), adding=(2,))
    after = change_partition(before, rules(), isr=[1, 2])
    assert (after.replicas, after.adding) == ((1, 2), ())
    assert epochs(after) == (5, 10)


def test_an_assignment_in_another_order_is_complete_at_once_and_elects_nobody() -> None:
    before = partition()
    after = change_partition(before, rules(), assignment=begin(before, [2, 1, 3]))
    assert after == replace(before, replicas=(2, 1, 3), partition_epoch=10)


def test_a_reassignment_to_what_there_is_changes_nothing() -> None:
    before = partition()
    assert change_partition(before, rules(), assignment=begin(before, [1, 2, 3])) is before


def test_an_assignment_that_shrinks_is_complete_at_once() -> None:
    before = partition()
    after = change_partition(before, rules(), assignment=begin(before, [3]))
    assert (after.replicas, after.isr, after.leader, after.removing) == ((3,), (3,), 3, ())
    assert epochs(after) == (6, 10)


def test_who_is_a_replica_no_more_is_not_eligible() -> None:
    before = partition((4, 2, 1), isr=(1,), elr=(2,), adding=(4,), removing=(1,))
    after = change_partition(before, rules(least=2), isr=[1, 4])
    assert (after.replicas, after.isr, after.elr, after.leader) == ((4, 2), (4,), (2,), 4)


def test_a_cancelled_reassignment_ends_the_epoch_of_those_who_came() -> None:
    before = partition((1, 3, 2), isr=(1, 2, 3), leader=3, adding=(3,), removing=(2,))
    back = revert(before)
    after = change_partition(before, rules(), isr=back.isr, assignment=back.assignment)
    assert (after.replicas, after.isr, after.leader) == ((1, 2), (1, 2), 1)
    assert (after.adding, after.removing) == ((), ())
    assert epochs(after) == (6, 10)


# -- whatever happens ---------------------------------------------------------------------------

partial = st.sets(st.sampled_from(BROKERS))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    """Partitions as they come to be by the rules."""
    replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
    members = draw(st.lists(st.sampled_from(replicas), unique=True))
    isr = draw(st.permutations(members))
    elr = [b for b in replicas if b not in isr and draw(st.booleans())]
    leader = draw(st.sampled_from(isr)) if isr else NO_LEADER
    known = () if isr else (draw(st.sampled_from(replicas)),)
    adding = [b for b in replicas[1:] if draw(st.booleans())]
    removing = [b for b in replicas[1:] if b not in adding and draw(st.booleans())]
    return partition(replicas, isr, leader, elr=elr, known=known, adding=adding, removing=removing)


@st.composite
def changes(
    draw: st.DrawFn, before: PartitionImage
) -> tuple[tuple[int, ...] | None, Assignment | None]:
    """A new ISR, a new assignment, or neither."""
    isr = draw(st.none() | st.permutations(before.replicas).map(tuple))
    if isr is not None:
        return isr[: draw(st.integers(0, len(isr)))], None
    target = draw(st.none() | st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
    return None, None if target is None else begin(before, target)


@settings(database=None)
@given(st.data(), partitions(), partial, partial, st.integers(1, 4), st.sampled_from(ElectionType))
def test_every_outcome_is_one_that_can_be(
    data: st.DataObject,
    before: PartitionImage,
    offline: set[int],
    lost: set[int],
    least: int,
    election: ElectionType,
) -> None:
    isr, assignment = data.draw(changes(before))
    cluster = rules(offline=offline, least=least)
    after = change_partition(
        before, cluster, isr=isr, lost=lost, election=election, assignment=assignment
    )
    check(before, after, least)
    if after.leader != NO_LEADER:
        assert after.leader not in offline
    elif election is ElectionType.UNCLEAN:
        assert set(after.replicas) <= offline
    expected = before.isr if isr is None else isr
    assert set(after.isr) <= set(expected) or after.isr == (after.leader,)
    assert set(after.elr) <= {*before.isr, *before.elr} - lost
    if not is_in_progress(after):
        assert change_partition(after, cluster, election=election) is after, (
            "there is no more to change"
        )


@settings(database=None)
@given(st.data(), partitions(), st.integers(1, 4))
def test_every_appointment_is_one_that_can_be(
    data: st.DataObject, before: PartitionImage, least: int
) -> None:
    leader = data.draw(st.sampled_from(before.replicas))
    after = elect_leader(before, leader, rules(least=least))
    check(before, after, least)
    assert after.leader == leader
    assert epochs(after) == (6, 10)
    if is_clean_leader(before, leader):
        assert set(before.isr) <= set(after.isr)
    else:
        assert after.isr == (leader,)


def check(before: PartitionImage, after: PartitionImage, least: int) -> None:
    """What holds after any change."""
    assert after.leader == NO_LEADER or after.leader in after.isr
    assert not set(after.elr) & set(after.isr)
    members = {*after.isr, *after.elr, *after.adding, *after.removing}
    assert members <= set(after.replicas)
    assert len(set(after.replicas)) == len(after.replicas) > 0
    if len(after.isr) >= min(least, len(after.replicas)):
        assert after.elr == ()
    if after.leader != NO_LEADER:
        assert after.last_known_elr == ()
    if after is before:
        return
    assert after.partition_epoch == before.partition_epoch + 1
    gone = set(before.replicas) - set(after.replicas)
    moved = after.leader != before.leader or bool(gone)
    assert after.leader_epoch - before.leader_epoch in ((1,) if moved else (0, 1))
