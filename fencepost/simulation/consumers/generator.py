"""What a seed lets applications do, by chances of their own: all else is as it is without."""

import random
from collections.abc import Sequence
from typing import Final

from fencepost.simulation.consumers.kinds import kinds_of
from fencepost.simulation.schedule import (
    ARRIVES,
    HEED,
    IGNORE,
    LOST,
    Action,
    ActionKind,
)
from fencepost.simulation.setup import DRAFT_CONSUMERS
from fencepost.simulation.world import World

_MOST_WAITING: Final = 4
"""Of its messages, so that none is forgotten."""


class ApplicationActions:
    """Throws one seed's actions of applications.

    :ivar numbers: The applications that the seed has; empty where it has none.
    """

    def __init__(self, world: World) -> None:
        self._applications = world.applications
        self._rng = rng = random.Random(f"applications {world.setup.seed}")
        kinds = kinds_of(world.setup.consumers)
        is_drafted = world.setup.consumers == DRAFT_CONSUMERS
        of_dialect = [n for n, kind in kinds.items() if kind.is_drafted is is_drafted]
        self.numbers: Sequence[int] = rng.sample(of_dialect, rng.choice((1, 1, 2)) if kinds else 0)
        self.share = rng.choice((0.3, 0.45, 0.6)) if kinds else 0.0
        """Of all steps; 0 where there are none."""
        self._losses = rng.choice((0.0, 0.01, 0.05))
        self._ignores = rng.choice((0.0, 0.3, 0.8))
        self._saves = rng.choice((0.02, 0.04))
        self._restarts = rng.choice((0.0, 0.004, 0.012))

    def next(self) -> Action | None:
        """The next action, or None where it is for others to do something."""
        rng = self._rng
        if rng.random() >= self.share:
            return None
        number = rng.choice(self.numbers)
        chance = rng.random()
        if chance < self._restarts:
            return Action(ActionKind.RESTART, other=number)
        if chance < self._restarts + self._saves:
            return Action(ActionKind.SAVE, other=number)
        waiting = self._applications.under_way(number)
        if waiting and rng.random() < 0.7:
            which = int(rng.random() * min(waiting, _MOST_WAITING))
            how = LOST if rng.random() < self._losses else ARRIVES
            return Action(ActionKind.CARRY, other=number, amount=which, how=how)
        how = IGNORE if rng.random() < self._ignores else HEED
        return Action(ActionKind.POLL, other=number, how=how)
