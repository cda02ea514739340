from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fencepost.client.consumer.cluster_metadata import UNKNOWN_LEADER, LeaderAndEpoch
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.position import TRANSITIONS, AssignedPartition, FetchState
from fencepost.client.consumer.requests import Backoff
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.model import Partition

TP = Partition(topic="t", index=0)
BACKOFF = Backoff(initial_ms=100, max_ms=1_000)
FIRST = LeaderAndEpoch(leader=1, epoch=3)
NEXT = LeaderAndEpoch(leader=2, epoch=4)


def assigned(*, validates: bool = True) -> AssignedPartition:
    return AssignedPartition(TP, BACKOFF, validates=validates)


def at(offset: int, epoch: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, leader_epoch=epoch)


def test_every_state_has_its_row() -> None:
    assert TRANSITIONS.keys() == set(FetchState)


def test_a_seek_without_an_epoch_is_valid_at_once() -> None:
    partition = assigned()
    partition.seek(at(7), FIRST)
    assert partition.has_position
    partition.see_leader(NEXT)
    assert partition.has_position
    assert partition.position is not None
    assert partition.position.leader == NEXT


def test_a_seek_with_an_epoch_waits_for_validation() -> None:
    partition = assigned()
    partition.seek(at(7, 2), FIRST)
    assert partition.state is FetchState.AWAIT_VALIDATION
    partition.validated(2)
    assert partition.has_position


def test_before_any_metadata_it_waits_for_the_leader_to_validate_by() -> None:
    partition = assigned()
    partition.seek(at(7, 2), UNKNOWN_LEADER)
    partition.see_leader(UNKNOWN_LEADER)
    partition.see_leader(FIRST)
    assert partition.state is FetchState.AWAIT_VALIDATION


def test_brokers_without_epochs_validate_nothing() -> None:
    partition = assigned()
    partition.seek(at(7, 2), LeaderAndEpoch(leader=1))
    assert partition.has_position


def test_nothing_is_validated_in_the_draft() -> None:
    partition = assigned(validates=False)
    partition.seek(at(7, 2), FIRST)
    partition.see_leader(NEXT)
    assert partition.has_position


def test_another_leader_validates_again_and_is_the_one_to_fetch_from() -> None:
    partition = assigned()
    partition.seek(at(7), FIRST)
    partition.advance(9, 3, -1)
    partition.preferred = (3, 1_000)
    states = []
    # While there is no leader nothing is known to have changed.
    for leader in (FIRST, LeaderAndEpoch(epoch=4), NEXT):
        partition.see_leader(leader)
        states.append((partition.state, partition.preferred))
    assert states == [
        (FetchState.FETCHING, (3, 1_000)),
        (FetchState.FETCHING, (3, 1_000)),
        (FetchState.AWAIT_VALIDATION, None),
    ]


def test_an_answer_of_a_leader_that_is_none_any_more_comes_too_late() -> None:
    partition = assigned()
    partition.seek(at(7, 2), FIRST)
    partition.pending = object()
    partition.see_leader(NEXT)
    assert partition.pending is None


def test_another_leader_is_asked_for_the_divergence_from_the_largest_epoch_on() -> None:
    partition = assigned(validates=False)
    partition.seek(at(7, 2), FIRST)
    partition.await_divergence()
    partition.asked_epoch = 0  # as the first one knew no epoch from 1 to 2
    partition.see_leader(NEXT)
    assert partition.asked_epoch == 2


def test_a_fetch_does_not_name_an_epoch_that_the_leaders_log_does_not_have() -> None:
    partition = assigned()
    partition.seek(at(7, 3), FIRST)
    partition.validated(1)
    assert partition.position is not None
    assert partition.position.fetched_epoch == 1
    assert partition.position.to_commit() == at(7, 3)
    partition.see_leader(NEXT)
    assert partition.position.fetched_epoch == 3, "its log may have it"


def test_what_was_read_is_what_is_committed() -> None:
    partition = assigned()
    partition.seek(at(7), FIRST)
    assert partition.position is not None
    assert partition.position.to_commit() == at(7)
    partition.advance(9, 3, 55)
    assert partition.position.to_commit() == OffsetAndMetadata(
        offset=9, leader_epoch=3, timestamp=55
    )


def test_a_wrong_transition_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="initializing to await_divergence"):
        assigned().await_divergence()


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens, in whatever order: a position with an epoch is fetched from only when the
    leader that it is fetched from has validated it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.partition = assigned()
        self.leader = FIRST
        self.validated_by: LeaderAndEpoch | None = None

    @rule(offset=st.integers(0, 9), epoch=st.none() | st.integers(0, 9))
    def seek(self, offset: int, epoch: int | None) -> None:
        self.partition.seek(at(offset, epoch), self.leader)
        self.validated_by = None

    @rule()
    def elect(self) -> None:
        self.leader = LeaderAndEpoch(leader=self.leader.epoch % 3, epoch=self.leader.epoch + 1)
        self.partition.see_leader(self.leader)

    @rule()
    @precondition(lambda self: self.partition.state is FetchState.AWAIT_VALIDATION)
    def validate(self) -> None:
        position = self.partition.position
        assert position is not None
        self.partition.validated(position.epoch)
        self.validated_by = position.leader

    @rule(target_=st.sampled_from(Target))
    def reset(self, target_: Target) -> None:
        self.partition.await_reset(target_)

    @rule(offset=st.integers(0, 9))
    @precondition(lambda self: self.partition.state is FetchState.AWAIT_RESET)
    def found(self, offset: int) -> None:
        self.partition.move(offset, -1, self.leader)

    @rule(count=st.integers(1, 3))
    @precondition(lambda self: self.partition.has_position)
    def read(self, count: int) -> None:
        position = self.partition.position
        assert position is not None
        self.partition.advance(position.offset + count, self.leader.epoch, -1)
        self.validated_by = self.leader

    @invariant()
    def fetches_only_what_is_valid(self) -> None:
        position = self.partition.position
        if self.partition.has_position and position is not None and position.epoch >= 0:
            assert position.leader == self.validated_by == self.leader


TestAnyOrder = AnyOrder.TestCase
