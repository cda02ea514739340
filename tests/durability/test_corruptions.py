"""Random corruptions of all files of a data directory: none is passed over in silence.

Each is repaired, refused in one line, or told by an event that names the partition. Without a kill,
or with three replicas, nothing else happens. At replication factor 1 a kill leaves one exception: a
cut at the border of a batch behind everything that was written down.

``FENCEPOST_CORRUPTIONS`` says how many; the full proof takes 10,000.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

import pytest

from fencepost.broker.data_dir import log_dir, log_opening, restart
from fencepost.broker.data_dir.log_inventory import InventoryFile
from fencepost.storage.files import open_log, segment_files
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.inventory import Examination, LogInventory
from tests.durability import corruption
from tests.durability.corruption import Damage, Scene, Verdict
from tests.harness.durable_driver import DIR

CORRUPTIONS: Final = int(os.environ.get("FENCEPOST_CORRUPTIONS", "160"))
EACH: Final = 20
"""Corruptions of each scene, which takes as long to play as one of them to judge."""
ENDS: Final = [(1, True), (1, False), (3, True), (3, False)]
"""Replication factors, and whether the end was in order."""


def verdict(scene: Scene, harm: Damage) -> Verdict:
    """What is found by all that judges; an exception is what a user would see as a traceback."""
    found = corruption.judge(scene, harm)
    found.wrong += [f"with the loss accepted: {w}" for w in corruption.judge_accepting(scene, harm)]
    found.wrong += corruption.start_again(scene, harm)
    return found


def draw(scene: Scene, seed: int, number: int) -> Damage:
    return corruption.damage(scene, Random(f"{scene.factor} {scene.is_clean} {seed} {number}"))


@pytest.mark.timeout(60 + CORRUPTIONS)
@pytest.mark.parametrize(("factor", "is_clean"), ENDS)
def test_no_corruption_is_passed_over_in_silence(factor: int, is_clean: bool) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(max(CORRUPTIONS // len(ENDS) // EACH, 1)):
        scene = corruption.play(factor, is_clean=is_clean, seed=seed)
        for number in range(EACH):
            harm = draw(scene, seed, number)
            found = verdict(scene, harm)
            assert not found.wrong, f"scene {seed}, {number}: {harm}: {found.wrong}"
            outcomes[found.outcome] += 1
    assert outcomes["whole"]
    assert outcomes["told"] or outcomes["refused"]
    assert not outcomes["excepted"] or (factor, is_clean) == (1, False)


@pytest.mark.parametrize(("factor", "is_clean"), ENDS)
def test_files_that_nothing_happened_to_are_opened_without_a_word(
    factor: int, is_clean: bool
) -> None:
    for seed in range(3):
        scene = corruption.play(factor, is_clean=is_clean, seed=seed)
        untouched = Damage("none", DIR, "", scene.contents)
        assert verdict(scene, untouched) == Verdict("whole")
        assert corruption.events_of(scene, untouched) == []


@dataclass(frozen=True)
class Mutant:
    """One check that is switched off."""

    name: str
    inject: Callable[[pytest.MonkeyPatch], None]
    factor: int
    is_clean: bool
    first_seed: int = 0
    """The seed to begin with: one that shows it soon."""


def nothing_compared(patch: pytest.MonkeyPatch) -> None:
    """Logs are opened as they are."""
    patch.setattr(log_opening, "examine", lambda *_args, **_kwargs: Examination())


def heads_ignored(patch: pytest.MonkeyPatch) -> None:
    """A segment is that of its name, whatever it begins with."""
    patch.setattr(FileSegment, "check_head", lambda _self: None)


def damage_cut_away(patch: pytest.MonkeyPatch) -> None:
    """What is damaged is cut, committed or not."""
    patch.setattr(LogInventory, "safe_until", 0)


def checksums_ignored(patch: pytest.MonkeyPatch) -> None:
    """Indexes and snapshots are those of their names."""
    patch.setattr(segment_files, "is_as_written", lambda *_args: True)


def former_leader_leads(patch: pytest.MonkeyPatch) -> None:
    """The former leader leads, whatever the others have."""
    patch.setattr(restart.ReplicaState, "completeness", (0, 1 << 60))


def losses_unwritten(patch: pytest.MonkeyPatch) -> None:
    """What is removed is not written down before."""
    patch.setattr(InventoryFile, "before_loss", lambda *_args: None)
    patch.setattr(log_dir.LogDir, "_put_row", lambda *_args: None)


def epochs_believed(patch: pytest.MonkeyPatch) -> None:
    """The epoch checkpoint is what it says."""
    plain = open_log.open_log

    def opened(*args: object, **options: object) -> object:
        known = options.get("inventory")
        if isinstance(known, LogInventory):
            options["inventory"] = LogInventory(segments=known.segments, checksums=known.checksums)
        return plain(*args, **options)  # type: ignore[arg-type]

    patch.setattr(log_opening, "open_log", opened)


MUTANTS: Final = [
    Mutant("nothing compared", nothing_compared, 1, True),
    Mutant("heads ignored", heads_ignored, 1, True),
    Mutant("damage cut away", damage_cut_away, 1, False),
    Mutant("checksums ignored", checksums_ignored, 1, True),
    Mutant("former leader leads", former_leader_leads, 3, False),
]
MOST_SCENES: Final = 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_check_that_is_switched_off_is_missed(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(mutant.first_seed, mutant.first_seed + MOST_SCENES):
        scene = corruption.play(mutant.factor, is_clean=mutant.is_clean, seed=seed)
        with monkeypatch.context() as patch:
            mutant.inject(patch)
            for number in range(EACH):
                if corruption.judge(scene, draw(scene, seed, number)).wrong:
                    return
    pytest.fail(f"nothing was missed without it: {mutant.name}")
