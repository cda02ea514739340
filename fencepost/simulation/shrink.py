"""Makes a failing schedule small: leaves out what the failure does not need.

Delta debugging (Zeller's ddmin) on the list of actions: chunks are left out, large ones first, as
long as the same invariant fails. Actions that lost their meaning do nothing, and are left out too.
In the end runs of deliveries are tried as one ``settle``, and the cluster is tried smaller.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fencepost.simulation.runner import Outcome, replay
from fencepost.simulation.schedule import NEWEST_FETCH, Action, ActionKind, Schedule, Setup

MOST_REPLAYS: Final = 3000
_SETTLE: Final = Action(ActionKind.SETTLE)

Replay = Callable[[Schedule], Outcome]


class _Shrinking:
    """The smallest schedule so far, and how much may still be tried."""

    def __init__(self, outcome: Outcome, invariant: str, most: int, play: Replay) -> None:
        self.best = outcome
        self._invariant = invariant
        self._left = most
        self._play = play

    @property
    def actions(self) -> tuple[Action, ...]:
        return self.best.schedule.actions

    def fails_with(self, actions: tuple[Action, ...], setup: Setup | None = None) -> bool:
        """Whether it fails in the same way; then it is the best."""
        if self._left <= 0:
            return False
        self._left -= 1
        outcome = self._play(Schedule(setup=setup or self.best.schedule.setup, actions=actions))
        if outcome.failure is None or outcome.failure.invariant != self._invariant:
            return False
        self.best = outcome
        return True


def shrink(outcome: Outcome, *, most_replays: int = MOST_REPLAYS, play: Replay = replay) -> Outcome:
    """A run of as few actions as could be found that breaks the same invariant.

    :param outcome: A run that failed.
    :param play: Plays a schedule.
    """
    if outcome.failure is None:
        return outcome
    shrinking = _Shrinking(outcome, outcome.failure.invariant, most_replays, play)
    while True:
        before, cluster = len(shrinking.actions), shrinking.best.schedule.setup
        _leave_out(shrinking)
        _settle(shrinking)
        for simpler in _SIMPLER:
            setup = shrinking.best.schedule.setup
            if simpler(setup) != setup:
                shrinking.fails_with(shrinking.actions, simpler(setup))
        if len(shrinking.actions) >= before and shrinking.best.schedule.setup == cluster:
            return shrinking.best


def _leave_out(shrinking: _Shrinking) -> None:
    size = max(1, len(shrinking.actions) // 2)
    while True:
        start, found = 0, False
        while start < len(shrinking.actions):
            actions = shrinking.actions
            if shrinking.fails_with(actions[:start] + actions[start + size :]):
                found = True
            else:
                start += size
        if size == 1 and not found:
            return
        size = max(1, size // 2)


def _settle(shrinking: _Shrinking) -> None:
    """Try each run of deliveries as one action, the longest last ones first."""
    end = len(shrinking.actions)
    while end > 0:
        actions = shrinking.actions
        end = min(end, len(actions))
        start = end
        while start > 0 and actions[start - 1].kind is ActionKind.DELIVER:
            start -= 1
        if end - start > 1:
            shrinking.fails_with((*actions[:start], _SETTLE, *actions[end:]))
        end = start - 1


def _one_partition(setup: Setup) -> Setup:
    return replace(setup, partitions=1)


def _no_idle_brokers(setup: Setup) -> Setup:
    return replace(setup, brokers=setup.replication_factor)


def _fewer_replicas(setup: Setup) -> Setup:
    return replace(setup, replication_factor=max(2, setup.replication_factor - 1))


def _no_minimum(setup: Setup) -> Setup:
    return replace(setup, min_insync_replicas=1)


def _newest_fetch(setup: Setup) -> Setup:
    return replace(setup, fetch_version=NEWEST_FETCH)


_SIMPLER: Final = (_one_partition, _fewer_replicas, _no_idle_brokers, _no_minimum, _newest_fetch)
