"""How reassignments begin, end and are taken back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.broker.controller.reassignment import (
    Assignment,
    begin,
    is_in_progress,
    maybe_complete,
    replication_factor,
    revert,
)
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage


def partition(
    replicas: Sequence[int],
    isr: Sequence[int] | None = None,
    *,
    adding: Sequence[int] = (),
    removing: Sequence[int] = (),
) -> PartitionImage:
    in_sync = tuple(replicas if isr is None else isr)
    return PartitionImage(
        replicas=tuple(replicas),
        isr=in_sync,
        leader=in_sync[0] if in_sync else NO_LEADER,
        adding=tuple(adding),
        removing=tuple(removing),
    )


# -- the beginning ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "replicas", "adding", "removing"),
    [
        ((1, 2, 3), (1, 2, 3), (), ()),
        ((3, 1, 2), (3, 1, 2), (), ()),
        ((1, 2, 4), (1, 2, 4, 3), (4,), (3,)),
        ((6, 5, 4), (6, 5, 4, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
        ((2,), (2, 1, 3), (), (1, 3)),
        ((4, 1, 2, 3), (4, 1, 2, 3), (4,), ()),
    ],
)
def test_those_who_are_to_go_stay_last_until_the_end(
    target: tuple[int, ...],
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
) -> None:
    begun = begin(partition((1, 2, 3)), target)
    assert begun == Assignment(replicas=replicas, adding=adding, removing=removing)


def test_another_reassignment_starts_from_all_replicas_there_are() -> None:
    under_way = partition((1, 3, 2), (1, 2), adding=[3], removing=[2])
    begun = begin(under_way, [1, 4])
    assert begun == Assignment(replicas=(1, 4, 2, 3), adding=(4,), removing=(2, 3))


@pytest.mark.parametrize(
    ("target", "adding", "removing"),
    [([3, 1, 2], (3,), (2,)), ([1, 2], (3,), (3,)), ([1, 3], (3,), (2,))],
)
def test_who_comes_or_goes_stays_marked_where_a_new_target_marks_nobody(
    target: list[int], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    begun = begin(partition((1, 3, 2), (1, 2), adding=[3], removing=[2]), target)
    assert (begun.adding, begun.removing) == (adding, removing)


# -- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (partition([2, 3, 1], [1, 3], adding=[2, 3], removing=[1]), None),
        (
            partition([2, 3, 1], [1, 3, 2], adding=[2, 3], removing=[1]),
            ([2, 3], [3, 2]),
        ),
        # One who stays need not be in sync where as many come as go.
        (partition([1, 2, 4, 3], [1, 4, 3], adding=[4], removing=[3]), ([1, 2, 4], [1, 4])),
        # It has to where there are to be fewer.
        (partition([1, 2, 3], [1, 3], removing=[3]), None),
        (partition([1, 2, 3], [2, 3, 1], removing=[3]), ([1, 2], [2, 1])),
        # It need not where there are to be more.
        (partition([1, 2, 3], [1, 3], adding=[3]), ([1, 2, 3], [1, 3])),
        # One replica has to stay.
        (partition([1, 2], [2], removing=[2]), None),
        (partition([1], [], adding=[1]), None),
        (partition([1, 2, 3], [1, 2, 3], adding=[3], removing=[3]), None),
    ],
    ids=[
        "one is missing",
        "all are here",
        "another is missing",
        "fewer and one is missing",
        "fewer",
        "more",
        "only those who go",
        "an empty ISR",
        "come and go",
    ],
)
def test_it_ends_with_the_isr_that_holds_all_it_must(
    before: PartitionImage, after: tuple[list[int], list[int]] | None
) -> None:
    found = maybe_complete(before)
    if after is None:
        assert found is before
        return
    assert (list(found.replicas), list(found.isr)) == after
    assert not is_in_progress(found)
    assert (found.leader, found.leader_epoch) == (before.leader, before.leader_epoch)


def test_what_is_not_being_reassigned_does_not_end() -> None:
    before = partition([1, 2], [1])
    assert maybe_complete(before) is before


# -- the way back -------------------------------------------------------------------------------


def test_who_came_goes_and_who_was_to_go_stays() -> None:
    back = revert(partition([1, 3, 2], [1, 2, 3], adding=[3], removing=[2]))
    assert back.assignment == Assignment(replicas=(1, 2))
    assert (back.isr, back.unclean) == ((1, 2), False)


def test_it_is_unclean_where_only_those_who_came_are_in_sync() -> None:
    back = revert(partition([3, 1, 2], [3], adding=[3], removing=[1, 2]))
    assert back.assignment == Assignment(replicas=(1, 2))
    assert (back.isr, back.unclean) == ((1,), True)


# -- as a whole ---------------------------------------------------------------------------------

assignments = st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True)


@settings(database=None)
@given(assignments, assignments)
def test_it_ends_at_its_target_and_goes_back_to_where_it_came_from(
    replicas: list[int], target: list[int]
) -> None:
    begun = begin(partition(replicas), target)
    under_way = partition(begun.replicas, replicas, adding=begun.adding, removing=begun.removing)
    assert set(under_way.replicas) == {*replicas, *target}
    assert is_in_progress(under_way) == (set(replicas) != set(target))
    assert replication_factor(under_way) == len(target)
    assert set(revert(under_way).assignment.replicas) == set(replicas)
    everybody = partition(begun.replicas, adding=begun.adding, removing=begun.removing)
    assert maybe_complete(everybody).replicas == tuple(target)
