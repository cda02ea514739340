"""A failing schedule is made small, and still fails in the same way."""

from collections.abc import Callable

import pytest

from fencepost.simulation.runner import Failure, Outcome, replay, shrink
from fencepost.simulation.schedule import Action, ActionKind, Schedule
from fencepost.simulation.setup import Setup

Fails = Callable[[Schedule], str | None]


def player(fails: Fails, played: list[Schedule] | None = None) -> Callable[[Schedule], Outcome]:
    """Plays schedules by a rule that says which invariant each breaks."""

    def play(schedule: Schedule) -> Outcome:
        if played is not None:
            played.append(schedule)
        invariant = fails(schedule)
        failure = None if invariant is None else Failure(invariant=invariant, observed="it")
        return Outcome(schedule=schedule, failure=failure, messages=0, tainted=0, digest=0)

    return play


def long(*brokers: int) -> Schedule:
    """Five hundred steps, with kills of these brokers among them."""
    steps = [Action(ActionKind.ADVANCE, amount=1)] * 500
    for n, broker in enumerate(brokers):
        steps[(n * 97 + 13) % 500] = Action(ActionKind.KILL, broker=broker, how="now")
    return Schedule(setup=Setup(partitions=3, brokers=5), actions=tuple(steps))


def killed(schedule: Schedule) -> set[int]:
    return {action.broker for action in schedule.actions if action.kind is ActionKind.KILL}


def test_what_is_not_needed_is_left_out() -> None:
    play = player(lambda schedule: "needs both" if killed(schedule) >= {1, 3} else None)
    small = shrink(play(long(1, 2, 3, 4)), play=play)
    assert [str(action) for action in small.schedule.actions] == [
        "kill 1 fence=now",
        "kill 3 fence=now",
    ]
    assert small.schedule.setup == Setup(
        partitions=1, brokers=2, replication_factor=2, fetch_version=18
    )


def test_another_failure_is_not_the_same() -> None:
    def fails(schedule: Schedule) -> str | None:
        if killed(schedule) >= {1, 2}:
            return "both"
        return "one" if killed(schedule) else None

    play = player(fails)
    small = shrink(play(long(1, 2)), play=play)
    assert small.failure == Failure(invariant="both", observed="it")
    assert len(small.schedule.actions) == 2


def test_deliveries_become_one_settle() -> None:
    deliver = Action(ActionKind.DELIVER, broker=1, other=2)

    def fails(schedule: Schedule) -> str | None:
        verbs = [action.kind for action in schedule.actions]
        return (
            "many" if verbs.count(ActionKind.DELIVER) >= 10 or ActionKind.SETTLE in verbs else None
        )

    play = player(fails)
    small = shrink(play(Schedule(setup=Setup(), actions=(deliver,) * 40)), play=play)
    assert [action.kind for action in small.schedule.actions] == [ActionKind.SETTLE]


def test_it_gives_up_in_the_end() -> None:
    played: list[Schedule] = []
    play = player(lambda schedule: "long" if len(schedule.actions) >= 499 else None, played)
    first = play(long())
    played.clear()
    assert shrink(first, most_replays=20, play=play).failure is not None
    assert len(played) == 20


def test_what_did_not_fail_stays_as_it_is() -> None:
    outcome = replay(Schedule(setup=Setup(), actions=()))
    assert outcome.failure is None
    assert shrink(outcome) is outcome


@pytest.mark.parametrize("verb", list(ActionKind))
def test_an_action_without_sense_does_nothing(verb: ActionKind) -> None:
    """Of a broker and a partition that are not there, or that have nothing to it."""
    how = {
        ActionKind.PRODUCE: "all",
        ActionKind.ELECT: "clean",
        ActionKind.REASSIGN: "7,8",
        ActionKind.KILL: "now",
        ActionKind.ISOLATE: "now",
        ActionKind.HOLD: "leave",
        ActionKind.FAULT: "drop",
    }.get(verb, "")
    action = Action(verb, partition=7, broker=9, other=8, amount=1, how=how)
    outcome = replay(Schedule(setup=Setup(), actions=(action,) * 2))
    assert outcome.failure is None
