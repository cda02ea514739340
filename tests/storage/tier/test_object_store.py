from __future__ import annotations

from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.storage.tier.object_store import (
    DATA_KINDS,
    MemoryObjectStore,
    ObjectKind,
    TierError,
    object_key,
    partition_prefix,
)
from tests.storage.tier.segments import PARTITION, segment


def test_keys_sort_by_partition_and_offset() -> None:
    keys = [object_key(segment(start, start + 1), ObjectKind.LOG) for start in (0, 9, 10, 10**12)]
    assert keys == sorted(keys)
    assert all(key.startswith(partition_prefix(PARTITION)) for key in keys)
    assert partition_prefix(PARTITION) == "t-AAAAAAAAAAAAAAAAAAAABw/0/"
    assert keys[1].startswith("t-AAAAAAAAAAAAAAAAAAAABw/0/00000000000000000009-")


def test_the_suffixes_are_those_of_kafkas_files() -> None:
    assert [part.value for part in DATA_KINDS] == [
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
        ".leader-epoch-checkpoint",
    ]


class Kept:
    """A store in memory, and what it told in order."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(ManualClock())
        self.store = MemoryObjectStore(self.scheduler.soon)
        self.told: list[object] = []

    def run(self) -> list[object]:
        self.scheduler.run_due()
        told, self.told = self.told, []
        return told


def test_nothing_is_told_within_the_call() -> None:
    kept = Kept()
    kept.store.put("a/b", [b"x"], kept.told.append)
    kept.store.get("a/b", 0, None, kept.told.append)
    kept.store.list("a/", kept.told.append)
    kept.store.delete(["a/b"], kept.told.append)
    assert kept.told == []
    assert kept.run() == [None, b"x", ["a/b"], None]


def test_an_object_is_read_in_part() -> None:
    kept = Kept()
    kept.store.put("k", [b"ab", memoryview(b"cde")], kept.told.append)
    for start, end in ((0, None), (1, 3), (3, 99), (5, 6)):
        kept.store.get("k", start, end, kept.told.append)
    assert kept.run() == [None, b"abcde", b"bc", b"de", b""]


def test_what_is_not_there_is_missing_and_may_be_deleted() -> None:
    kept = Kept()
    kept.store.get("k", 0, None, kept.told.append)
    kept.store.delete(["k"], kept.told.append)
    error, nothing = kept.run()
    assert isinstance(error, TierError)
    assert error.missing
    assert error.key == "k"
    assert nothing is None


def test_keys_are_listed_in_order_by_prefix() -> None:
    kept = Kept()
    for key in ("a/2", "b/1", "a/1", "a"):
        kept.store.put(key, [], kept.told.append)
    kept.run()
    kept.store.list("a/", kept.told.append)
    assert kept.run() == [["a/1", "a/2"]]
