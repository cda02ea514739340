"""Runs of some length in simulated time, in which everything happens that may: to be recorded.

An ordinary seed has habits, and does a thousand things in hardly any time, to find what breaks an
invariant. This one does all that there is to do, and each step takes some time, so that what it
leaves behind is what a busy cluster leaves.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

from fencepost.simulation.dice import Dice, draw_setup
from fencepost.simulation.runner import Outcome, play
from fencepost.simulation.schedule import (
    FROM_LAST,
    FROM_LOCAL,
    NEWEST_FETCH,
    Action,
    Setup,
    Verb,
)
from fencepost.simulation.stage import Stage
from fencepost.simulation.world import World

_MS_PER_MINUTE: Final = 60_000
_STEP_MS: Final = 40
"""What a step takes at most."""
WEIGHTS: Final = {
    Verb.PRODUCE: 40,
    Verb.CONSUME: 20,
    Verb.LIST: 16,
    Verb.COMMIT: 6,
    Verb.ADVANCE: 1,
    Verb.ELECT: 1,
    Verb.PREFER: 0.5,
    Verb.REASSIGN: 0.5,
    Verb.STOP: 0.5,
    Verb.KILL: 1,
    Verb.ISOLATE: 0.7,
    Verb.CUT: 0.5,
    Verb.HOLD: 1,
    Verb.HOLD_AT: 0.5,
    Verb.STEP: 1,
    Verb.DELETE: 0.04,
    Verb.WIPE: 0.2,
    Verb.FAULT: 2,
    Verb.SETTLE: 2,
    Verb.ROLL: 3,
    Verb.UPLOAD: 4,
    Verb.DELETE_LOCAL: 1,
    Verb.EXPIRE: 1,
    Verb.FORGET: 0.3,
    Verb.LOSE: 0.03,
    Verb.START: 10,
    Verb.REJOIN: 10,
    Verb.RELEASE: 6,
}
"""How often what happens: faults pass quickly, so that a cluster gets something done."""
_SHARES: Final = (0.5, 1, 1, 2)
"""What a seed makes of each."""
_UNCLEAN_SHARE: Final = 0.1
"""Of the elections by name."""


def run_long(
    seed: int, minutes: float, stage: Stage, *, heals: bool = True
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
    outcome = play(world, EveryFault(rng, world).throw_until(end_ms), heals=heals)
    if heals:
        world.cluster.close()
    return outcome, world.objects.objects


def draw_long_setup(seed: int, rng: random.Random) -> Setup:
    """A cluster by chance, with a tier."""
    setup = draw_setup(seed, rng)
    return replace(setup, tier=rng.choice((FROM_LOCAL, FROM_LAST)), fetch_version=NEWEST_FETCH)


class EveryFault(Dice):
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

    def throw_until(self, end_ms: int) -> Iterator[Action]:
        """Actions until it is that late; each is to be performed before the next is asked for."""
        while self.world.clock.now_ms() < end_ms:
            self._step += 1
            yield self._next()
            yield Action(Verb.ADVANCE, amount=self.rng.randint(1, _STEP_MS))
