import pytest

from fencepost.storage.log.leader_epoch_cache import (
    UNDEFINED_END_OFFSET,
    EpochEndOffset,
    EpochEntry,
    LeaderEpochCache,
    TruncationStep,
    truncation_step,
)


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


HISTORY = [(0, 0), (1, 3), (3, 5), (4, 9)]


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        # Three brokers' answers after epochs 0:0-2, 1:3-4, 3:5-8, and 4 without a record.
        (0, (0, 3)),
        (1, (1, 5)),
        (2, (1, 5)),
        (3, (3, 9)),
        (4, (4, 9)),
        (5, (-1, -1)),
        (1_000_000, (-1, -1)),
        (-1, (-1, -1)),
        (-2, (-2, 0)),
    ],
)
def test_end_offsets_as_kafka_answers_them(epoch: int, answer: tuple[int, int]) -> None:
    assert cache(*HISTORY).end_offset_for(epoch, 9) == answer


def test_an_empty_cache_knows_nothing() -> None:
    empty = cache()
    assert empty.end_offset_for(0, 5) == (-1, -1)
    assert empty.latest is None
    assert empty.epoch_for_offset(0) is None
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("offset", "epoch"), [(0, 0), (2, 0), (3, 1), (4, 1), (5, 3), (8, 3), (9, 4), (100, 4)]
)
def test_epoch_of_an_offset(offset: int, epoch: int) -> None:
    assert cache(*HISTORY).epoch_for_offset(offset) == epoch


def test_an_offset_before_the_first_epoch_has_none() -> None:
    assert cache((2, 5)).epoch_for_offset(4) is None


def test_an_epoch_is_assigned_once() -> None:
    known = cache((3, 5))
    assert not known.assign(3, 5)
    assert not known.assign(3, 8)
    assert known.entries() == ((3, 5),)


def test_an_epoch_that_wrote_nothing_is_replaced() -> None:
    known = cache((0, 0), (1, 5))
    assert known.assign(2, 5)
    assert known.entries() == ((0, 0), (2, 5))


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ((2, 4), ((0, 0), (1, 3), (2, 4))),
        ((4, 3), ((0, 0), (4, 3))),
        ((3, 4), ((0, 0), (1, 3), (3, 4))),
        ((0, 20), ((0, 20),)),
    ],
)
def test_a_new_entry_drops_those_it_contradicts(
    entry: tuple[int, int], left: tuple[tuple[int, int], ...]
) -> None:
    known = cache(*HISTORY)
    assert known.assign(*entry)
    assert known.entries() == left


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_epochs_and_offsets_are_refused(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot begin"):
        cache().assign(*entry)


@pytest.mark.parametrize(
    ("end", "left"), [(10, 4), (9, 3), (6, 3), (5, 2), (4, 2), (3, 1), (1, 1), (0, 0)]
)
def test_truncating_from_the_end(end: int, left: int) -> None:
    known = cache(*HISTORY)
    known.truncate_from_end(end)
    assert known.entries() == tuple(HISTORY[:left])


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, tuple(HISTORY)),
        (2, ((0, 2), (1, 3), (3, 5), (4, 9))),
        (3, ((1, 3), (3, 5), (4, 9))),
        (7, ((3, 7), (4, 9))),
        (50, ((4, 50),)),
    ],
)
def test_truncating_from_the_start(start: int, left: tuple[tuple[int, int], ...]) -> None:
    known = cache(*HISTORY)
    known.truncate_from_start(start)
    assert known.entries() == left


def test_truncating_before_the_first_epoch_changes_nothing() -> None:
    known = cache((2, 5))
    known.truncate_from_start(4)
    assert known.entries() == ((2, 5),)


def test_an_epoch_older_than_all_known_ends_where_they_begin() -> None:
    assert cache((2, 5), (3, 8)).end_offset_for(1, 20) == (1, 5)


def test_clearing() -> None:
    known = cache(*HISTORY)
    known.clear()
    assert known.entries() == ()


@pytest.mark.parametrize(
    ("leader", "own", "step"),
    [
        # Both know the epoch: the log that ends it first decides.
        ((1, 10), (1, 12), (10, True)),
        ((1, 12), (1, 10), (10, True)),
        # The follower does not know it: newer ones go, and it asks again (KIP-279).
        ((2, 25), (1, 20), (20, False)),
        # It knows none that is as old.
        ((2, 25), UNDEFINED_END_OFFSET, (25, True)),
    ],
)
def test_a_follower_truncates_to_where_an_epoch_ends_in_both_logs(
    leader: tuple[int, int], own: tuple[int, int], step: tuple[int, bool]
) -> None:
    found = truncation_step(EpochEndOffset(*leader), EpochEndOffset(*own))
    assert found == TruncationStep(*step)
