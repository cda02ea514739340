"""The model of a log: what it holds, forgets and is compared by."""

from fencepost.simulation.history import Batch, BatchLog, PartitionHistory


def log_of(*ends: int, epoch: int = 0) -> BatchLog:
    """A log of batches that end at these offsets, from 0 on."""
    history, log = PartitionHistory(0), BatchLog()
    for end in ends:
        log.append(history.record(epoch, log.end, end, crc=end, log=log))
    return log


def ends(log: BatchLog) -> list[int]:
    return [batch.next_offset for batch in log.all]


def test_each_batch_knows_the_one_before_it() -> None:
    log = log_of(2, 3, 7)
    assert [batch.before for batch in log.all] == [None, log.all[0], log.all[1]]
    assert log.tip is log.all[2]
    assert log.end == 7


def test_truncating_within_a_batch_drops_it() -> None:
    log = log_of(2, 3, 7)
    log.truncate(6)
    assert ends(log) == [2, 3]
    log.truncate(1)
    assert (ends(log), log.end, log.tip) == ([], 0, None)


def test_what_was_deleted_is_forgotten_and_still_held() -> None:
    log = log_of(2, 3, 7)
    second, third = log.all[1:]
    log.delete_before(3)
    assert (ends(log), log.start) == ([7], 3)
    assert log.holds(second)
    log.delete_before(7)
    assert (ends(log), log.start, log.end) == ([], 7, 7)
    assert log.tip is third, "what comes next follows it"


def test_a_log_that_begins_anew_holds_what_lies_before() -> None:
    log = log_of(2, 3)
    first, second = log.all
    log.reset_to(3)
    assert log.holds(first)
    assert log.holds(second)
    assert log.tip is None
    log.reset_to(2)
    assert not log.holds(second)


def test_looking_up_by_offset() -> None:
    log = log_of(2, 3, 7)
    first, second, third = log.all
    assert [log.until(offset) for offset in (0, 1, 2, 3, 6, 7)] == [
        None,
        None,
        first,
        second,
        second,
        third,
    ]
    assert [log.at(offset) for offset in (0, 1, 2, 6, 7)] == [first, first, second, third, None]
    assert log.between(2, 7) == [second, third]


def test_the_same_place_is_not_the_same_batch() -> None:
    log, other = log_of(2, 3), log_of(2, 3)
    assert log.holds(log.all[1])
    assert not log.holds(other.all[1])


def test_what_may_follow_what() -> None:
    log = log_of(2, 3)
    first, second = log.all
    assert second.may_follow(first)
    assert second.may_follow(None)
    assert not second.may_follow(second)
    assert not first.may_follow(second)
    after_deletion = Batch(epoch=4, base_offset=3, next_offset=5, crc=0, before=None)
    assert after_deletion.may_follow(second)


def test_commits_and_acknowledgements_are_known_by_epoch() -> None:
    history, log = PartitionHistory(0), BatchLog()
    for end in (2, 3, 7):
        log.append(history.record(1, log.end, end, crc=end, log=log))
    first, second, third = log.all
    assert history.commit(1, log, 3)
    assert not history.commit(1, log, 3)
    assert history.commit(4, log, 7)
    assert history.committed.all == [first, second, third]
    assert [history.committed_before(epoch) for epoch in (1, 2, 4, 5)] == [
        None,
        second,
        second,
        third,
    ]
    history.acknowledge(1, second)
    history.acknowledge(4, first)
    assert [history.acknowledged_before(epoch) for epoch in (1, 2, 5)] == [None, second, second]


def test_the_first_taint_counts() -> None:
    history = PartitionHistory(0)
    history.taint("one")
    history.taint("two")
    assert history.tainted == "one"
