from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fencepost.client.consumer.epoch_cache import MAX_EPOCHS, Divergence, EpochCache, NextEpoch


def cache(*starts: tuple[int, int]) -> EpochCache:
    made = EpochCache()
    for epoch, offset in starts:
        made.add(epoch, offset)
    return made


def test_the_end_of_an_epoch_that_was_fetched_is_where_the_logs_differ() -> None:
    fetched = cache((0, 0), (3, 10))
    assert fetched.compare(3, 15, 20) == Divergence(15)
    assert fetched.compare(0, 15, 20) == Divergence(10)
    assert fetched.compare(0, 7, 20) == Divergence(7)


def test_logs_that_do_not_differ_show_the_position() -> None:
    assert cache((0, 0)).compare(0, 30, 20) == Divergence(20)


def test_an_epoch_that_was_not_fetched_leads_to_the_next_smaller_one() -> None:
    assert cache((0, 0), (3, 10)).compare(2, 9, 20) == NextEpoch(0)


def test_nothing_is_found_where_no_smaller_epoch_was_fetched() -> None:
    assert cache((3, 10)).compare(2, 9, 20) == Divergence(None)
    assert cache((3, 10)).compare(-1, -1, 20) == Divergence(None)
    assert cache().compare(3, 9, 20) == Divergence(None)


def test_after_a_seek_only_the_epoch_of_the_record_before_it_is_known() -> None:
    fetched = cache((0, 0), (3, 10))
    fetched.restart(2, 8)
    assert (fetched.last, fetched.before(8), fetched.before(7)) == (2, 2, None)
    assert fetched.compare(2, 5, 8) == Divergence(5)
    fetched.restart(-1, 8)
    assert fetched.last is None


def test_the_oldest_epochs_are_forgotten() -> None:
    fetched = cache(*((epoch, 10 * epoch) for epoch in range(MAX_EPOCHS + 1)))
    assert fetched.compare(0, 10, 500) == Divergence(None)
    assert fetched.compare(1, 20, 500) == Divergence(20)


def test_epochs_behind_a_truncation_are_forgotten() -> None:
    fetched = cache((0, 0), (3, 10), (5, 20))
    fetched.truncate(15)
    assert fetched.last == 3
    fetched.truncate(10)
    assert fetched.last == 0


def test_what_a_deposed_leader_served_after_its_successor_differs() -> None:
    fetched = cache((5, 0), (4, 3))
    assert (fetched.last, fetched.before(3), fetched.before(6)) == (5, 5, 4)
    assert fetched.compare(5, 6, 6) == Divergence(3)
    assert fetched.compare(4, 6, 6) == Divergence(0)
    again = cache((4, 0), (5, 3), (4, 6))
    assert again.compare(5, 8, 9) == Divergence(6)
    assert again.compare(4, 8, 9) == Divergence(3)


# A log is the epochs of its records. Two logs that share an epoch have its records in common up to
# the end of it in one of them, as each epoch has one leader.
_RUNS = st.lists(st.integers(1, 4), min_size=1, max_size=6)


@given(
    shared=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=5),
    own=st.lists(st.integers(1, 4), max_size=4),
    other=st.lists(st.integers(1, 4), max_size=4),
    data=st.data(),
)
def test_it_finds_exactly_where_two_logs_part(
    shared: list[tuple[int, int]], own: list[int], other: list[int], data: st.DataObject
) -> None:
    common, epoch = [], -1
    for step, length in shared:
        epoch += step
        common += [epoch] * length
    if common:  # one of the logs may have been cut within the last epoch that they share
        cut = data.draw(st.integers(0, 3))
        longer = common + [epoch] * cut
    else:
        longer = common
    mine, theirs = (longer, common) if data.draw(st.booleans()) else (common, longer)
    mine, theirs = list(mine), list(theirs)
    for length in own:  # odd epochs are led by one side, even ones by the other
        epoch += 2 - (epoch % 2 == 0)
        mine += [epoch] * length
    last = max([*mine, -1])
    later = last + 1 + (last % 2 == 0)
    for length in other:
        later += 2
        theirs += [later] * length
    fetched = EpochCache()
    for offset, each in enumerate(mine):
        fetched.add(each, offset)
    truth = next(
        (at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b),
        min(len(mine), len(theirs)),
    )
    found = _find(fetched, theirs, len(mine))
    if found.offset is None:
        assert truth == 0
    else:
        assert found.offset == truth


def _find(fetched: EpochCache, log: list[int], position: int) -> Divergence:
    """Ask the leader of a log, as a consumer does."""
    asked = fetched.last
    if asked is None:
        return Divergence(None)
    while True:
        floor = max((each for each in log if each <= asked), default=None)
        if floor is None:
            # A leader that knows only larger epochs answers where the first of them begins.
            answer = fetched.compare(asked, 0, position)
        else:
            end = next((at for at, each in enumerate(log) if each > floor), len(log))
            answer = fetched.compare(floor, end, position)
        if isinstance(answer, Divergence):
            return answer
        asked = answer.epoch
