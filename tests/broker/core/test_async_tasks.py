from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from fencepost.broker.core.async_tasks import (
    AsyncSteps,
    AsyncTask,
    delete,
    get,
    get_each,
    list_keys,
    put,
)
from fencepost.storage.tier.object_store import (
    MemoryObjectStore,
    ObjectStore,
    ReadCallback,
    TierError,
)
from tests.harness.garbage import without_collector


class Bench:
    """A store whose answers come turn by turn."""

    def __init__(self) -> None:
        self.turns: deque[Callable[[], None]] = deque()
        self.store = MemoryObjectStore(self.turns.append)
        self.told: list[object] = []

    def start(self, steps: AsyncSteps[object]) -> AsyncTask[object]:
        job = AsyncTask(steps, self.told.append)
        job.start()
        return job

    def run(self) -> None:
        while self.turns:
            self.turns.popleft()()


def test_one_thing_comes_after_another() -> None:
    bench = Bench()

    def steps() -> AsyncSteps[object]:
        yield from put(bench.store, "a/1", [b"one"])
        yield from put(bench.store, "a/2", [b"two"])
        keys = yield from list_keys(bench.store, "a/")
        part = yield from get(bench.store, "a/2", 1)
        both = yield from get_each(bench.store, ["a/2", "a/3", "a/1"])
        yield from delete(bench.store, keys)
        return keys, part, both

    bench.start(steps())
    assert len(bench.turns) == 1
    bench.run()
    assert bench.told == [(["a/1", "a/2"], b"wo", [b"two", None, b"one"])]
    assert bench.store.objects == {}


def test_many_are_read_in_order() -> None:
    bench = Bench()
    for number in range(100):
        bench.store.objects[f"{number}"] = b"%d" % number
    bench.start(get_each(bench.store, [str(number) for number in range(100)]))
    bench.run()
    assert bench.told == [[b"%d" % number for number in range(100)]]


def test_nothing_to_read_is_nothing_to_ask() -> None:
    bench = Bench()
    bench.start(get_each(bench.store, []))
    assert bench.told == [[]]


def test_an_error_is_raised_where_one_waits() -> None:
    bench = Bench()

    def steps() -> AsyncSteps[object]:
        with pytest.raises(TierError):
            yield from get(bench.store, "a/1")
        return "went on"

    bench.start(steps())
    bench.run()
    assert bench.told == ["went on"]


def test_an_error_that_nobody_expects_ends_it() -> None:
    bench = Bench()
    bench.start(get(bench.store, "a/1"))
    bench.run()
    (error,) = bench.told
    assert isinstance(error, TierError)


def test_of_many_that_are_read_one_error_is_enough() -> None:
    bench = Bench()

    class Failing(MemoryObjectStore):
        def get(
            self, key: str, start: int, end: int | None, done: Callable[[bytes | TierError], None]
        ) -> None:
            self._soon(lambda: done(TierError(key, "no") if key == "b" else b"x"))

    bench.start(get_each(Failing(bench.turns.append), ["a", "b", "c"]))
    bench.run()
    assert isinstance(bench.told[0], TierError)


def test_what_is_answered_after_the_end_changes_nothing() -> None:
    bench = Bench()
    passed: list[int] = []

    def steps() -> AsyncSteps[object]:
        try:
            yield from put(bench.store, "a/1", [b"one"])
            passed.append(1)
        finally:
            passed.append(0)
        return None

    job = bench.start(steps())
    job.stop()
    job.stop()
    assert passed == [0]
    bench.run()
    assert passed == [0]
    assert bench.told == []


def test_a_job_may_be_stopped_by_what_it_does() -> None:
    bench = Bench()
    jobs: list[AsyncTask[object]] = []
    passed: list[int] = []

    def steps() -> AsyncSteps[object]:
        yield from put(bench.store, "a/1", [b"one"])
        jobs[0].stop()
        yield from put(bench.store, "a/2", [b"two"])
        passed.append(1)
        return None

    jobs.append(bench.start(steps()))
    bench.run()
    assert list(bench.store.objects) == ["a/1"]
    assert passed == []
    assert bench.told == []


def test_a_job_that_stops_itself_with_its_last_step_tells_nobody() -> None:
    bench = Bench()
    jobs: list[AsyncTask[object]] = []

    def steps() -> AsyncSteps[object]:
        yield from put(bench.store, "a/1", [b"one"])
        jobs[0].stop()
        return 1

    jobs.append(bench.start(steps()))
    bench.run()
    assert bench.told == []


class Failing(MemoryObjectStore):
    """Reads no object."""

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        self._soon(lambda: done(TierError(key, "unreachable")))


@pytest.mark.parametrize(
    "read", [lambda store: get(store, "a", 0), lambda store: get_each(store, ["a", "b"])]
)
def test_an_error_is_freed_without_the_garbage_collector(
    read: Callable[[ObjectStore], AsyncSteps[object]],
) -> None:
    bench = Bench()
    bench.store = Failing(bench.turns.append)
    with without_collector(TierError) as left:
        bench.start(read(bench.store))
        bench.run()
        (error,) = bench.told
        assert isinstance(error, TierError)
        del error
        bench.told.clear()
        assert left() == []
