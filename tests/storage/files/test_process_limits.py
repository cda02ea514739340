"""The bound on open files: it shrinks, and files are closed where no other can be opened."""

from __future__ import annotations

import errno
from pathlib import PurePath

import pytest

from fencepost.storage.files.process_limits import BoundedCache
from fencepost.storage.files.segment_files import LogFile
from tests.harness.crash_model import Operation
from tests.harness.faulty_file_system import FaultyFileSystem

DIRECTORY = PurePath("/logs")


class Held:
    """Something that can be released."""

    def __init__(self) -> None:
        self.used = False
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


def filled(limit: int, count: int) -> tuple[BoundedCache, list[Held]]:
    cache, held = BoundedCache(limit), [Held() for _ in range(count)]
    for each in held:
        cache.add(each, 1)
    return cache, held


def released(held: list[Held]) -> list[bool]:
    return [each.is_released for each in held]


def test_a_lower_limit_releases_the_oldest() -> None:
    cache, held = filled(5, 5)
    cache.resize(2)
    assert released(held) == [True, True, True, False, False]
    cache.resize(3)
    cache.add(Held(), 1)
    assert cache.cost == 3
    assert released(held)[3:] == [False, False]


def test_what_is_lent_makes_room_and_comes_back() -> None:
    cache, held = filled(4, 4)
    cache.lend(3)
    assert released(held) == [True, True, True, False]
    cache.lend(-3)
    assert cache.cost == 1


def test_half_of_it_goes_used_or_not() -> None:
    cache, held = filled(5, 5)
    for each in held:
        each.used = True
    assert cache.evict_half()
    assert sum(released(held)) == 3
    assert cache.evict_half()
    assert cache.evict_half()
    assert not cache.evict_half()


@pytest.fixture
def files() -> FaultyFileSystem:
    made = FaultyFileSystem()
    made.make_dirs(DIRECTORY)
    return made


def log_file(files: FaultyFileSystem, bound: BoundedCache, name: str) -> LogFile:
    file = LogFile(files, DIRECTORY / name, bound, size=0)
    file.create()
    return file


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_a_file_that_can_t_be_opened_has_others_closed(files: FaultyFileSystem, error: int) -> None:
    bound = BoundedCache(10)
    others = [log_file(files, bound, f"{n}.log") for n in range(4)]
    one = log_file(files, BoundedCache(0), "one.log")
    one.release()
    one._bound = bound
    files.fail(Operation.OPEN, error)
    one.append([b"abc"])
    assert one.read(0, 3) == b"abc"
    assert bound.cost == 3
    for other in others:
        other.append([b"x"])


def test_any_other_error_of_an_open_counts(files: FaultyFileSystem) -> None:
    bound = BoundedCache(10)
    one = log_file(files, bound, "one.log")
    one.release()
    files.fail(Operation.OPEN, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        one.append([b"abc"])
