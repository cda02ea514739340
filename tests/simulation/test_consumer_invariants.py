"""Each invariant of consumers, alone, and what the checker makes of reads and reports."""

import re
from pathlib import Path

import pytest

from fencepost.simulation.consumers import invariants as must
from fencepost.simulation.consumers.admitted import ADMITTED
from fencepost.simulation.consumers.consumed import Consumed, LogView
from fencepost.simulation.history import Batch, BatchLog, PartitionHistory
from tests.simulation.mutants import MUTANTS


def log_of(
    history: PartitionHistory, *batches: tuple[int, int], after: BatchLog | None = None
) -> BatchLog:
    """A log of batches of two records, by epoch and base offset."""
    log = BatchLog()
    for batch in after.all if after else ():
        log.append(batch)
    for epoch, base in batches:
        log.append(history.record(epoch, base, base + 2, crc=base, log=log))
    return log


def view(log: BatchLog) -> LogView:
    return LogView(tip=log.tip, start=0, end=log.end, leader_epoch=9)


@pytest.fixture
def history() -> PartitionHistory:
    return PartitionHistory(0)


@pytest.fixture
def read(history: PartitionHistory) -> BatchLog:
    """What a consumer has read: epoch 1 up to 4, and epoch 2 up to 8."""
    return log_of(history, (1, 0), (1, 2), (2, 4), (2, 6))


@pytest.fixture
def other(history: PartitionHistory, read: BatchLog) -> BatchLog:
    """A log that parts from it at 2, as epoch 3 began there."""
    first = BatchLog()
    first.append(read.all[0])
    return log_of(history, (3, 2), (3, 4), after=first)


def consumed(log: BatchLog) -> Consumed:
    return Consumed(next=log.end, tip=log.tip)


def a_batch(history: PartitionHistory) -> Batch:
    return history.record(1, 0, 2, crc=0, log=BatchLog())


def test_what_each_accepts_and_what_it_calls_broken(history: PartitionHistory) -> None:
    batch = a_batch(history)
    assert must.consumers_get_what_leaders_wrote("a1", batch, 0, 1) is None
    assert must.consumers_get_what_leaders_wrote("a1", None, 0, 1)
    assert must.consumers_skip_and_repeat_nothing("a1", 4, 4) is None
    assert must.consumers_skip_and_repeat_nothing("a1", 4, 5)
    assert must.consumers_skip_and_repeat_nothing("a1", None, 0)
    assert must.consumers_go_where_lookups_say("a1", {3}, 3) is None
    assert must.consumers_go_where_lookups_say("a1", {3}, 4)
    assert must.truncations_are_reported("a1", batch, None, 2)
    assert must.only_truncations_are_reported("a1", batch, 2)
    assert must.truncations_are_reported_where_they_are("a1", 2, 2) is None
    assert must.truncations_are_reported_where_they_are("a1", None, 2)
    assert must.committed_positions_come_back("a1", (4, 2), {(4, 2)}) is None
    assert must.committed_positions_come_back("a1", (4, -1), {(4, 2)})
    assert must.metadata_epochs_never_go_back("a1", 4, 4) is None
    assert must.metadata_epochs_never_go_back("a1", 4, 3)
    assert must.leaders_serve_their_own_epoch("a1", 4, 4) is None
    assert must.leaders_serve_their_own_epoch("a1", -1, 4) is None
    assert must.leaders_serve_their_own_epoch("a1", 3, 4)
    assert must.consumers_come_to_the_end("a1", 4, 4) is None
    assert must.consumers_come_to_the_end("a1", None, 4)


def test_each_has_a_mutant() -> None:
    broken = {name for mutant in MUTANTS if mutant.consumers for name in mutant.breaks}
    assert {each.__name__ for each in must.INVARIANTS} <= broken


def test_an_epoch_ends_where_the_next_larger_one_begins(read: BatchLog, other: BatchLog) -> None:
    assert view(read).epoch_end(1) == (read.all[1], 4)
    assert view(read).epoch_end(2) == (read.all[3], 8)
    assert view(other).epoch_end(2) == (read.all[0], 2)
    assert view(other).epoch_end(0) == (None, 0)


def test_logs_have_in_common_what_lies_before_the_first_batch_that_differs(
    read: BatchLog, other: BatchLog
) -> None:
    assert consumed(read).common_end(view(other)) == 2
    assert consumed(read).common_end(view(read)) == 8
    late = consumed(read)
    late.start = 2
    assert late.common_end(view(other)) is None


def test_what_was_read_may_come_from_logs_with_different_histories(
    history: PartitionHistory, read: BatchLog, other: BatchLog
) -> None:
    reader = consumed(read)
    reader.begin_run(8)
    deposed = log_of(history, (3, 6), (3, 8), after=other)
    reader.tip, reader.next = deposed.tip, deposed.end
    assert reader.common_end(view(read)) == 8
    assert reader.common_end(view(deposed)) == 2
    assert not reader.is_in(view(deposed)), "it has the last records, and not those before"
    assert consumed(deposed).is_in(view(deposed))
    assert reader.remembers_epoch_of(view(other))
    longer = log_of(history, (4, 8), after=read)
    assert reader.go_to(8, view(longer))
    assert (reader.next, reader.tip, reader.start) == (8, read.tip, 0)


def test_a_consumer_remembers_the_epochs_that_it_fetched_since_it_began(
    read: BatchLog, other: BatchLog
) -> None:
    reader = consumed(read)
    assert reader.remembers_epoch_of(view(other))
    reader.memory = 5
    assert not reader.remembers_epoch_of(view(other))


def test_after_a_truncation_what_the_leader_has_is_compared_with_what_comes_next(
    read: BatchLog, other: BatchLog
) -> None:
    reader = consumed(read)
    assert reader.go_to(2, view(other))
    assert (reader.next, reader.tip) == (2, read.all[0])
    reader = consumed(read)
    assert not reader.go_to(4, view(other)), "the record at 2 differs as well"
    assert (reader.next, reader.tip) == (4, None)


def test_the_documentation_names_what_is_admitted() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (yes|no) \|", text, flags=re.MULTILINE)
    assert rows == [(each.name, "yes" if each.is_drafted else "no") for each in ADMITTED]
