"""Random corruptions of all files of a data directory: none is passed over in silence.

Each is repaired, refused in one line, or told by an event that names partition, broker and offsets.
Without a kill, or with three replicas, nothing else happens. At replication factor 1 a kill leaves
one exception: a cut at the border of a batch behind everything that was written down.

``FENCEPOST_CORRUPTIONS`` says how many; the full proof takes 2,000, half of them at each
replication factor.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.controller.elections import ElectionRules
from fencepost.broker.data_dir import log_dir, log_opening, persistence, restart
from fencepost.broker.metadata.image import PartitionImage
from fencepost.storage.files import segment_files
from fencepost.storage.files.inventory import Examination, LogInventory
from tests.durability import corruption, scenes, verdict
from tests.durability.corruption import Damage
from tests.durability.scenes import Scene
from tests.durability.verdict import Verdict
from tests.harness.durable_driver import DIR

CORRUPTIONS: Final = int(os.environ.get("FENCEPOST_CORRUPTIONS", "12"))
EACH: Final = 10
"""Corruptions of each scene, which takes as long to play as one of them to judge."""
ENDS: Final = [(1, True), (1, False), (3, True), (3, False)]
"""Replication factors, and whether the end was in order."""


def verdict_of(scene: Scene, harm: Damage) -> Verdict:
    """What is found by all that judges; an exception is what a user would see as a traceback."""
    found = verdict.judge(scene, harm)
    found.wrong += [f"with the loss accepted: {w}" for w in verdict.judge_accepting(scene, harm)]
    found.wrong += verdict.start_again(scene, harm)
    found.wrong += verdict.unnoticed(scene, harm)
    return found


def draw(scene: Scene, seed: int, number: int) -> Damage:
    return corruption.damage(scene, Random(f"{scene.factor} {scene.is_clean} {seed} {number}"))


@pytest.mark.timeout(60 + CORRUPTIONS)
@pytest.mark.parametrize(("factor", "is_clean"), ENDS)
def test_no_corruption_is_passed_over_in_silence(factor: int, is_clean: bool) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(max(CORRUPTIONS // len(ENDS) // EACH, 1)):
        scene = scenes.play(factor, is_clean=is_clean, seed=seed)
        # Three replicas heal most of what is drawn; this has no replica.
        certain = verdict_of(scene, corruption.without(scene, DIR / "registry.log"))
        assert certain == Verdict("refused"), f"scene {seed}, no registry: {certain}"
        for number in range(EACH):
            harm = draw(scene, seed, number)
            found = verdict_of(scene, harm)
            assert not found.wrong, f"scene {seed}, {number}: {harm}: {found.wrong}"
            outcomes[found.outcome] += 1
    assert outcomes["whole"], "an index, or a bit that no longer counts"
    said = outcomes["healed"] + outcomes["told"] + outcomes["refused"]
    assert said > outcomes.total() / 3, f"the rest does not matter: {outcomes}"
    assert not outcomes["excepted"] or (factor, is_clean) == (1, False)


@pytest.mark.parametrize(("factor", "is_clean"), ENDS)
def test_files_that_nothing_happened_to_are_opened_without_a_word(
    factor: int, is_clean: bool
) -> None:
    for seed in range(3):
        scene = scenes.play(factor, is_clean=is_clean, seed=seed)
        untouched = Damage("none", DIR, "", scene.contents)
        assert verdict_of(scene, untouched) == Verdict("whole")
        assert verdict.events_of(scene, untouched) == []


@dataclass(frozen=True)
class Mutant:
    """One check that is switched off, and damage that shows it."""

    name: str
    inject: Callable[[pytest.MonkeyPatch], None]
    factor: int
    is_clean: bool
    harm: Callable[[Scene], Damage]


def nothing_compared(patch: pytest.MonkeyPatch) -> None:
    """Logs are opened as they are."""
    patch.setattr(log_opening, "examine", lambda *_args, **_kwargs: Examination())


def heads_ignored(patch: pytest.MonkeyPatch) -> None:
    """A segment is that of its name, whatever it begins with."""
    patch.setattr(segment_files.SegmentFiles, "check_head", lambda _self: None)


def damage_cut_away(patch: pytest.MonkeyPatch) -> None:
    """What is damaged is cut, committed or not, and the log leads that is left."""
    patch.setattr(LogInventory, "safe_until", 0)
    whole = restart.restart_partition

    def restarted(
        before: PartitionImage,
        rules: ElectionRules,
        states: Mapping[int, restart.ReplicaState],
        **options: bool,
    ) -> restart.RestartedPartition:
        uncommitted = {b: replace(state, high_watermark=0) for b, state in states.items()}
        return whole(before, rules, uncommitted, **options)

    patch.setattr(persistence, "restart_partition", restarted)


def checksums_ignored(patch: pytest.MonkeyPatch) -> None:
    """Indexes and snapshots are those of their names."""
    patch.setattr(segment_files, "is_as_written", lambda *_args: True)


def former_leader_leads(patch: pytest.MonkeyPatch) -> None:
    """The former leader leads, whatever the others have."""
    patch.setattr(restart.ReplicaState, "completeness", (0, 1 << 60))


def ids_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A log is that of the topic whose id it says, whatever is written down."""
    patch.setattr(log_dir.LogDir, "_topic_id_of", lambda self, key: self.directories.topic_id(key))


def last_segment(scene: Scene, broker_id: int, name: str) -> PurePath:
    """The last that has something in it."""
    directory = DIR / f"broker-{broker_id}" / name
    return max(p for p in scene.files if p.parent == directory and _is_full(scene, p))


def _is_full(scene: Scene, path: PurePath) -> bool:
    return path.suffix == ".log" and bool(scene.contents[path])


def first_segment(broker_id: int, name: str) -> PurePath:
    """The first one, which was closed long before."""
    return DIR / f"broker-{broker_id}" / name / f"{0:020d}.log"


def last_snapshot(scene: Scene, broker_id: int, name: str) -> PurePath:
    """The producers at the end of the log."""
    directory = DIR / f"broker-{broker_id}" / name
    return max(p for p in scene.files if p.parent == directory and p.suffix == ".snapshot")


MUTANTS: Final = [
    Mutant(
        "nothing compared",
        nothing_compared,
        1,
        True,
        lambda scene: corruption.without(scene, first_segment(1, "t-0")),
    ),
    Mutant(
        "heads ignored",
        heads_ignored,
        1,
        True,
        lambda scene: corruption.swapped(scene, first_segment(1, "t-0"), first_segment(2, "t-1")),
    ),
    Mutant(
        "damage cut away",
        damage_cut_away,
        1,
        False,
        lambda scene: corruption.flipped(scene, last_segment(scene, 1, "t-0"), 70),
    ),
    Mutant(
        "checksums ignored",
        checksums_ignored,
        1,
        True,
        lambda scene: corruption.swapped(
            scene, last_snapshot(scene, 1, "t-0"), last_snapshot(scene, 2, "t-1")
        ),
    ),
    Mutant(
        "former leader leads",
        former_leader_leads,
        3,
        False,
        lambda scene: corruption.as_before(scene, DIR / "broker-2" / "t-1", 3),
    ),
    Mutant(
        "ids unchecked",
        ids_unchecked,
        1,
        True,
        lambda scene: corruption.flipped(scene, DIR / "broker-1/t-0/partition.metadata", 25),
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_check_that_is_switched_off_is_missed(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scenes.play(mutant.factor, is_clean=mutant.is_clean, seed=0)
    harm = mutant.harm(scene)
    assert not verdict.judge(scene, harm).wrong
    mutant.inject(monkeypatch)
    assert verdict.judge(scene, harm).wrong
