"""A stamp tells from outside whether files of a segment are those that they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.pipeline.datasource.segment_stamps import SegmentStamp, stamp_of_files
from fencepost.pipeline.datasource.tier import Tier

NAMES = ("00.log", "00.index", "00.timeindex", "00.txnindex")
STEM = f"{0:020d}-{'b' * 22}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "one"
    made.mkdir()
    for name in NAMES[:3]:
        (made / name).write_bytes(name.encode())
    return made


def stamp(folder: Path) -> SegmentStamp:
    return stamp_of_files([*(str(folder / name) for name in NAMES), None])


def touched(folder: Path) -> None:
    found = (folder / NAMES[1]).stat()
    os.utime(folder / NAMES[1], ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000_000))


def longer(folder: Path) -> None:
    path = folder / NAMES[0]
    found = path.stat()
    path.write_bytes(path.read_bytes() + b"x")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize(
    "harm",
    [
        touched,
        longer,
        lambda folder: (folder / NAMES[2]).unlink(),
        lambda folder: (folder / NAMES[3]).write_bytes(b""),
    ],
)
def test_another_time_size_or_name_is_another_stamp(
    folder: Path, harm: Callable[[Path], object]
) -> None:
    before = stamp(folder)
    assert stamp(folder) == before
    harm(folder)
    assert stamp(folder).digest != before.digest


def test_a_stamp_counts_the_files_that_there_are(folder: Path) -> None:
    found = stamp(folder)
    assert (found.files, found.bytes) == (3, sum(map(len, NAMES[:3])))


def test_a_copy_that_keeps_times_has_the_same_stamp(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "two")
    assert stamp(tmp_path / "two") == stamp(folder)


def test_objects_of_the_tier_have_one_stamp_by_the_key_of_their_metadata(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    folder = tmp_path / f"t-{'a' * 22}" / "0"
    folder.mkdir(parents=True)
    for suffix in (".log", ".index", ".leader-epoch-checkpoint", ".json"):
        (folder / f"{STEM}{suffix}").write_bytes(suffix.encode())
    (folder / f"{'9' * 20}-{'c' * 22}.log").write_bytes(b"of which there are no metadata")
    tier = Tier.open(tmp_path.as_uri())
    key = f"{folder.relative_to(tmp_path)}/{STEM}.json"
    before = tier.stamps()
    assert {each: found.files for each, found in before.items()} == {key: 4}
    assert tier.metadata_keys() == (key,)
    assert tier.stamps(["u"]) == {}
    (folder / f"{STEM}.index").write_bytes(b"other")
    assert tier.stamps()[key] != before[key]
