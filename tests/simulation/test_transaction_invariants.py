"""Each invariant of transactions, with the smallest history that breaks it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.init_producer_id import InitProducerIdRequest
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.invariants import InvariantViolation, require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.coordinator_checker import CoordinatorChecker
from fencepost.simulation.transactions.ledger import (
    GroupPartition,
    Ledger,
    ProducerEpoch,
    SentBatch,
)
from fencepost.simulation.transactions.marker_checker import MarkerChecker
from fencepost.simulation.transactions.workload import TRANSACTION_CONFIGS
from fencepost.storage.log.segmented_log import SegmentedLog
from tests.harness.driver import Driver
from tests.harness.transactions import append_in_transaction, marker, write_markers
from tests.simulation.mutants import MUTANTS

TRANSACTION = 1
"""Of FindCoordinator."""
GROUP = GroupPartition("g", 0)


class History:
    """A cluster of one broker, and what the checkers have seen of it."""

    def __init__(self) -> None:
        topic = NewTopic(name=TOPIC, partitions=1, replication_factor=1, configs={})
        self.driver = Driver(1, TRANSACTION_CONFIGS, topics=(topic,))
        self.ledger = Ledger()
        cluster = self.driver.cluster
        self._watch = ClusterChecker(cluster, enough_replicas=1)
        self._coordinators = CoordinatorChecker(cluster)
        self._markers = MarkerChecker(cluster, self._watch, self._coordinators, self.ledger)

    def check(self) -> None:
        """A step is over."""
        brokers = self.driver.cluster.brokers.values()
        self._watch.check_all()
        self._coordinators.check(brokers)
        self._markers.check(brokers)
        self.ledger.settle()

    def write(self, producer_id: int, epoch: int, sequence: int = 0) -> None:
        append_in_transaction(self.driver, TOPIC, (producer_id, epoch, sequence), b"a")

    def init(self, transactional_id: str) -> None:
        """Give a producer its id and epoch."""
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(transactional_id,))
        self.driver.ask(1, "find_coordinator", 6, request)
        given = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        assert self.driver.ask(1, "init_producer_id", 5, given).error_code == 0


@pytest.fixture
def history() -> History:
    return History()


def broken(history: History) -> str:
    """The invariant that a step breaks."""
    with pytest.raises(InvariantViolation) as found:
        history.check()
    return found.value.invariant


def sent(
    ledger: Ledger, *, acknowledged: int, unknown: int = 0, commits: bool = True
) -> list[SentBatch]:
    """The batches of one transaction."""
    transaction = ledger.begin("x1", "x")
    transaction.asked_to_commit = commits
    for at in range(acknowledged + unknown):
        batch = SentBatch(transaction, at, b"", at, 1, 0, is_acknowledged=at < acknowledged)
        transaction.batches.append(batch)
    return transaction.batches


def test_half_of_a_transaction_is_visible() -> None:
    first, second, unknown = batches = sent(Ledger(), acknowledged=2, unknown=1)
    transaction = first.transaction
    check = must.transactions_are_atomic
    assert check(transaction, dict.fromkeys(batches, 1)) is None
    assert check(transaction, dict.fromkeys(batches, 0)) is None
    assert check(transaction, {first: 1, second: 1, unknown: 0}) is None
    assert check(transaction, {first: 1, second: 0})
    assert check(transaction, {first: 1, second: 2})
    transaction.told = True
    assert check(transaction, {first: 0, second: 0})


def test_a_consumer_gets_a_record_of_an_aborted_or_an_open_transaction() -> None:
    (batch,) = sent(Ledger(), acknowledged=1)
    assert must.transactions_are_isolated("r1", batch) is None
    batch.transaction.told = False
    assert must.transactions_are_isolated("r1", batch)
    (other,) = sent(Ledger(), acknowledged=1, commits=False)
    assert must.transactions_are_isolated("r1", other)


def test_a_consumer_finds_an_offset_of_an_aborted_or_an_open_transaction() -> None:
    ledger = Ledger()
    transaction = ledger.begin("x1", "x")
    offset = ledger.commit_offset(transaction, GROUP)
    assert must.offsets_are_isolated("r1", GROUP, offset)
    transaction.asked_to_commit = True
    assert must.offsets_are_isolated("r1", GROUP, offset) is None
    transaction.told = False
    assert must.offsets_are_isolated("r1", GROUP, offset)
    assert must.offsets_are_isolated("r1", GROUP, None)


def test_an_offset_is_committed_and_the_records_of_its_transaction_are_not() -> None:
    ledger = Ledger()
    (batch,) = sent(ledger, acknowledged=1)
    offset = ledger.commit_offset(batch.transaction, GROUP)
    check = must.offsets_are_atomic
    assert check(GROUP, offset, [offset], {batch}) is None
    assert check(GROUP, offset, [offset], None) is None
    assert check(GROUP, offset, [offset], set())
    assert check(GROUP, None, [offset], {batch})
    ledger.end(batch.transaction, commits=True)
    later = ledger.commit_offset(ledger.begin("x1", "x"), GROUP)
    assert check(GROUP, offset, [offset, later], {batch})
    assert check(GROUP, later, [offset, later], {batch}) is None


def test_an_offset_stays_unstable_when_all_is_well_again() -> None:
    assert must.offsets_become_stable(GROUP, 4) is None
    assert must.offsets_become_stable(GROUP, None)


def test_a_marker_comes_without_a_decision(history: History) -> None:
    history.write(7, 0)
    history.check()
    write_markers(history.driver, marker(7, (TOPIC, [0]), committed=False))
    assert broken(history) == "markers_follow_decisions"


def test_the_last_stable_offset_passes_an_open_transaction(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.write(7, 0)
    history.check()
    monkeypatch.setattr(SegmentedLog, "last_stable_offset", lambda _self, watermark: watermark)
    history.write(7, 0, 1)
    assert broken(history) == "last_stable_offsets_stop_at_open_transactions"


def test_two_producers_of_an_id_get_the_same_epoch() -> None:
    ledger = Ledger()
    ledger.give("x", ProducerEpoch(7, 0), "p1", is_new_flow=True)
    ledger.give("x", ProducerEpoch(7, 1), "p1", is_new_flow=True)
    ledger.give("x", ProducerEpoch(7, 1), "p1", is_new_flow=True, is_repeated=True)
    with pytest.raises(InvariantViolation, match="one_epoch_of_an_id_is_given_once"):
        ledger.give("x", ProducerEpoch(7, 1), "p1", is_new_flow=True)


def test_a_leader_takes_a_record_of_an_epoch_that_has_a_successor(history: History) -> None:
    history.ledger.give("x", ProducerEpoch(7, 0), "p1", is_new_flow=True)
    history.check()
    history.ledger.give("x", ProducerEpoch(7, 1), "p1", is_new_flow=True)
    history.write(7, 0)
    history.check()  # what a step does at once may be in either order
    history.write(7, 0, 1)
    assert broken(history) == "one_epoch_of_an_id_is_alive"


def test_a_coordinator_has_forgotten_what_its_log_says(history: History) -> None:
    history.init("x")
    history.init("y")
    history.check()
    coordinator = history.driver.cluster.brokers[1].transactions
    for shard in coordinator.runtime.shards.values():
        shard.latest.transactions.pop("x", None)
    history.init("z")
    history.init("a")
    assert broken(history) == "coordinators_are_what_their_log_says"


def test_a_coordinator_knows_another_epoch_than_its_log_says(history: History) -> None:
    history.init("x")
    (lived,) = (
        shard.latest.transactions
        for shard in history.driver.cluster.brokers[1].transactions.runtime.shards.values()
        if shard.latest.transactions
    )
    check = must.coordinators_are_what_their_log_says
    assert check("here", lived, dict(lived)) is None
    other = {"x": replace(lived["x"], producer_epoch=9)}
    assert check("here", lived, other)


def test_a_transaction_stays_open_when_all_is_well_again() -> None:
    assert must.transactions_come_to_an_end(0, 4, 4) is None
    with pytest.raises(InvariantViolation):
        require(must.transactions_come_to_an_end, 0, 4, 3)


def test_each_says_in_a_sentence_what_must_hold_and_has_a_mutant() -> None:
    broken_by_mutants = {name for each in MUTANTS if each.transactions for name in each.breaks}
    for each in must.INVARIANTS:
        assert (each.__doc__ or "").partition("\n")[0].endswith("."), each.__name__
        assert each.__name__ in broken_by_mutants
