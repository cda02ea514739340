"""Runs a seed or a schedule, and makes a failing schedule small.

An ordinary seed prefers some actions and takes hardly any simulated time, to find what breaks an
invariant. A long run is for recording: it does every action, and each step takes some time, so that
its files are those of a busy cluster.

A failing schedule is shrunk by delta debugging (Zeller's ddmin) on its list of actions: chunks are
left out, large ones first, as long as the same invariant fails. Actions that lost their meaning do
nothing, and are left out too. In the end runs of deliveries are tried as one ``settle``, and the
cluster is tried smaller.
"""

import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace

from fencepost.simulation import invariants as must
from fencepost.simulation.action_generator import ActionGenerator
from fencepost.simulation.environment import RunEnvironment
from fencepost.simulation.invariants import InvariantViolation
from fencepost.simulation.schedule import Action, ActionKind, Schedule
from fencepost.simulation.setup import (
    FROM_LAST,
    FROM_LOCAL,
    NEWEST_FETCH,
    Setup,
)
from fencepost.simulation.setup_generator import (
    draw_consumer_setup,
    draw_setup,
    draw_transaction_setup,
)
from fencepost.simulation.world import World

DEFAULT_STEPS: Final = 1000


class Failure(Struct, frozen=True, kw_only=True):
    """An invariant that broke."""

    invariant: str
    observed: str
    """What was seen instead of what must hold."""


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of one run."""

    schedule: Schedule
    """What was done, to the end or to the failure, but for the healing."""
    failure: Failure | None
    messages: int
    """How many arrived."""
    tainted: int
    """Partitions that were allowed to lose records."""
    digest: int
    """Of all that was seen, in order."""
    admitted: Mapping[str, int] = field(default_factory=dict)
    """How often each exception was met: of consumers `fencepost.simulation.consumers.admitted`, of
    transactions `fencepost.simulation.transactions.ledger.SUCCESSORS_EPOCH`."""

    @property
    def trace(self) -> int:
        """A checksum of all that was done and seen: the same for the same run."""
        return crc32(str(self.schedule).encode(), self.digest & 0xFFFFFFFF)


def run_seed(
    seed: int,
    steps: int = DEFAULT_STEPS,
    *,
    consumers: bool = False,
    transactions: bool = False,
    gate: bool = True,
) -> Outcome:
    """Let a seed decide everything.

    :param consumers: Whether there are applications with consumers.
    :param transactions: Whether there are transactional producers instead.
    :param gate: Whether the gate of KIP-207 is on.
    """
    rng = random.Random(seed)
    draw = draw_consumer_setup if consumers else draw_setup
    if transactions:
        draw = draw_transaction_setup
    world = World(replace(draw(seed, rng), gate=gate))
    return play(world, ActionGenerator(rng, world).generate(steps))


def replay(schedule: Schedule) -> Outcome:
    """Do what a schedule says; what makes no sense in its place does nothing."""
    return play(World(schedule.setup), schedule.actions)


def play(world: World, actions: Iterable[Action], *, heals: bool = True) -> Outcome:
    """Perform actions as they come.

    :param heals: Whether all is mended in the end, and has to be as good as new then.
    """
    done: list[Action] = []
    failure = None
    try:
        for action in actions:
            done.append(action)
            world.perform(action)
        if heals:
            world.heal()
    except InvariantViolation as broken:
        failure = Failure(invariant=broken.invariant, observed=broken.observed)
    except Exception as bug:  # noqa: BLE001 - whatever fails is what the run is for
        failure = Failure(invariant=must.nothing_fails.__name__, observed=_where(bug))
    schedule = Schedule(setup=world.setup, actions=tuple(done))
    return Outcome(
        schedule=schedule,
        failure=failure,
        messages=world.messages,
        tainted=sum(bool(history.tainted) for history in world.checker.partitions),
        digest=world.checker.digest,
        admitted=dict(world.applications.met + world.transactions.admitted),
    )


def _where(bug: Exception) -> str:
    last = traceback.extract_tb(bug.__traceback__)[-1]
    return f"{type(bug).__name__}: {bug} ({last.name}, line {last.lineno} of {last.filename})"


_MS_PER_MINUTE: Final = 60_000
_STEP_MS: Final = 40
"""What a step takes at most."""
WEIGHTS: Final = {
    ActionKind.PRODUCE: 40,
    ActionKind.CONSUME: 20,
    ActionKind.LIST: 16,
    ActionKind.COMMIT: 6,
    ActionKind.ADVANCE: 1,
    ActionKind.ELECT: 1,
    ActionKind.PREFER: 0.5,
    ActionKind.REASSIGN: 0.5,
    ActionKind.STOP: 0.5,
    ActionKind.KILL: 1,
    ActionKind.ISOLATE: 0.7,
    ActionKind.CUT: 0.5,
    ActionKind.HOLD: 1,
    ActionKind.HOLD_AT: 0.5,
    ActionKind.STEP: 1,
    ActionKind.DELETE: 0.04,
    ActionKind.WIPE: 0.2,
    ActionKind.FAULT: 2,
    ActionKind.SETTLE: 2,
    ActionKind.ROLL: 3,
    ActionKind.UPLOAD: 4,
    ActionKind.DELETE_LOCAL: 1,
    ActionKind.EXPIRE: 1,
    ActionKind.FORGET: 0.3,
    ActionKind.LOSE: 0.03,
    ActionKind.START: 10,
    ActionKind.REJOIN: 10,
    ActionKind.RELEASE: 6,
    ActionKind.ELECT_LEADERS: 0.5,
    ActionKind.CONFIGURE: 0.3,
    ActionKind.PRODUCE_EACH: 2,
}
"""How often what happens: faults pass quickly, so that a cluster gets something done."""
_SHARES: Final = (0.5, 1, 1, 2)
"""What a seed makes of each."""
_UNCLEAN_SHARE: Final = 0.1
"""Of the elections by name."""


def run_long(
    seed: int, minutes: float, stage: RunEnvironment, *, heals: bool = True
) -> tuple[Outcome, Mapping[str, bytes]]:
    """Let a seed decide everything, for some time.

    :param minutes: Of simulated time, what it takes to heal not counted.
    :param stage: What it is played on. A data directory is closed in the end, if it heals.
    :param heals: Whether all is mended in the end; else it is left as it is, as by ``kill -9``.
    :returns: What came of it, and what is in the tier then, by key.
    """
    rng = random.Random(f"long {seed}")
    world = World(draw_long_setup(seed, rng), stage)
    end_ms = world.clock.now_ms() + round(minutes * _MS_PER_MINUTE)
    outcome = play(world, LongRunGenerator(rng, world).generate_until(end_ms), heals=heals)
    if heals:
        world.cluster.close()
    return outcome, world.object_store.objects


def draw_long_setup(seed: int, rng: random.Random) -> Setup:
    """A cluster by chance, with a tier."""
    setup = draw_setup(seed, rng)
    return replace(setup, tier=rng.choice((FROM_LOCAL, FROM_LAST)), fetch_version=NEWEST_FETCH)


class LongRunGenerator(ActionGenerator):
    """Throws actions of every sort, with some time between any two."""

    def __init__(self, rng: random.Random, world: World) -> None:
        super().__init__(rng, world)
        self._delivers = 0.75
        self._stalls = 0.005
        self._stores = 0.4
        self._fails = 0.02
        self.unclean_share = _UNCLEAN_SHARE
        self._verbs = list(WEIGHTS)
        weights = (weight * rng.choice(_SHARES) for weight in WEIGHTS.values())
        self._weights = list(accumulate(weights))

    def generate_until(self, end_ms: int) -> Iterator[Action]:
        """Actions until it is that late; each is to be performed before the next is asked for."""
        while self.world.clock.now_ms() < end_ms:
            self._step += 1
            yield self._next()
            yield Action(ActionKind.ADVANCE, amount=self.rng.randint(1, _STEP_MS))


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
