"""Runs: a seed or a schedule in, what came of it out."""

import random
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from fencepost.simulation import invariants as must
from fencepost.simulation.dice import Dice, draw_setup
from fencepost.simulation.invariants import Broken
from fencepost.simulation.schedule import Action, Schedule
from fencepost.simulation.world import World

DEFAULT_STEPS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An invariant that broke."""

    invariant: str
    seen: str
    """What was seen instead of what must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one run."""

    schedule: Schedule
    """What was done, to the end or to the failure, but for the healing."""
    failure: Failure | None
    messages: int
    """How many arrived."""
    tainted: int
    """Partitions that were allowed to lose records."""
    digest: int
    """Of all that was seen, in order."""

    @property
    def trace(self) -> int:
        """A checksum of all that was done and seen: the same for the same run."""
        return crc32(str(self.schedule).encode(), self.digest & 0xFFFFFFFF)


def run_seed(seed: int, steps: int = DEFAULT_STEPS) -> Outcome:
    """Let a seed decide everything."""
    rng = random.Random(seed)
    world = World(draw_setup(seed, rng))
    return play(world, Dice(rng, world).throw(steps))


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
    except Broken as broken:
        failure = Failure(invariant=broken.invariant, seen=broken.seen)
    except Exception as bug:  # noqa: BLE001 - whatever fails is what the run is for
        failure = Failure(invariant=must.nothing_fails.__name__, seen=_where(bug))
    schedule = Schedule(setup=world.setup, actions=tuple(done))
    return Outcome(
        schedule=schedule,
        failure=failure,
        messages=world.messages,
        tainted=sum(bool(history.tainted) for history in world.watch.partitions),
        digest=world.watch.digest,
    )


def _where(bug: Exception) -> str:
    last = traceback.extract_tb(bug.__traceback__)[-1]
    return f"{type(bug).__name__}: {bug} ({last.name}, line {last.lineno} of {last.filename})"
