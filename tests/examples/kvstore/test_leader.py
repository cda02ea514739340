"""A leader and a log that does what the test says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from examples.kvstore.leader import MAX_BATCH, Leader, NotDone, Unknown
from examples.kvstore.records import Entry
from examples.kvstore.replica import Replica
from examples.kvstore.state import Operation, Result
from examples.kvstore.wal import Wal
from tests.examples.kvstore.scripted import Fate, ScriptedLog, add, get, put
from tests.harness.wait import eventually

PATIENCE_S = 30.0


@asynccontextmanager
async def leading(
    log: ScriptedLog, name: str = "a", replica: Replica | None = None
) -> AsyncIterator[Leader]:
    """A leader of the log, until the block ends."""
    leader = Leader(replica or Replica(), log, name)
    task = asyncio.create_task(leader.lead())
    yield leader
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def all_of(leader: Leader, *operations: Operation) -> list[str | None]:
    """The values that operations which come at once are answered."""
    asked = (leader.do(each, PATIENCE_S) for each in operations)
    return [result.value for result in await asyncio.gather(*asked)]


async def test_it_bootstraps_before_it_answers() -> None:
    log = ScriptedLog()
    log.foreign(put("k", "1"), add("k", "2"))
    async with leading(log) as leader:
        assert await all_of(leader, get("k")) == ["12"]
    assert log.appends == [(2, [None])], "a read asks the log, by a barrier"


async def test_what_comes_at_once_is_one_append() -> None:
    log = ScriptedLog()
    async with leading(log) as leader:
        found = await all_of(leader, put("k", "1"), get("k"), add("k", "2"), get("k"))
        assert found == [None, "1", "12", "12"]
        assert log.appends == [(0, [put("k", "1"), add("k", "2")])], "reads are in no log"
        assert await all_of(leader, put("k", "3")) == ["12"]
        assert log.appends[1:] == [(2, [put("k", "3")])]


async def test_one_append_is_in_flight() -> None:
    log = ScriptedLog()
    log.open.clear()
    async with leading(log) as leader:
        first = asyncio.create_task(all_of(leader, add("k", "1")))
        await eventually(lambda: len(log.appends) == 1)
        others = asyncio.create_task(all_of(leader, add("k", "2"), get("k")))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(log.appends) == 1
        assert not first.done(), "nothing is answered before it is in the log"
        log.open.set()
        assert await first == ["1"]
        assert await others == ["12", "12"]


async def test_a_batch_has_its_limit() -> None:
    log = ScriptedLog()
    async with leading(log) as leader:
        await all_of(leader, *(add("k", ".") for _ in range(MAX_BATCH + 1)))
    assert [len(entries) for _, entries in log.appends] == [MAX_BATCH, 1]


async def test_a_superseded_leader_answers_no_read_from_its_copy() -> None:
    log = ScriptedLog()
    async with leading(log) as leader:
        assert await all_of(leader, put("k", "mine"), get("k")) == [None, "mine"]
        log.foreign(put("k", "theirs"))
        assert await all_of(leader, get("k")) == ["theirs"]


async def test_what_was_refused_is_evaluated_anew() -> None:
    log = ScriptedLog()
    async with leading(log) as leader:
        await all_of(leader, put("k", "1"))
        log.foreign(put("k", "5"))
        assert await all_of(leader, add("k", "6"), get("k")) == ["56", "56"]
    assert log.operations == [put("k", "1"), put("k", "5"), add("k", "6")]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED, Fate.CUT])
async def test_an_append_of_unknown_outcome_gets_in_once(fate: Fate) -> None:
    log = ScriptedLog(fates=[fate])
    async with leading(log) as leader:
        assert await all_of(leader, add("k", "1"), add("k", "2"), get("k")) == ["1", "12", "12"]
    assert log.operations[:2] == [add("k", "1"), add("k", "2")]
    assert len({entry.id for entry in log.entries}) == len(log.entries)


class DeafReplica(Replica):
    """Has listeners that it never calls."""

    async def catch_up(
        self,
        wal: Wal,
        *,
        wait_ms: int = 0,
        seen: Callable[[Entry, Result | None], None] | None = None,
    ) -> None:
        await super().catch_up(wal, wait_ms=wait_ms)


async def test_who_does_not_recognize_its_entries_appends_them_twice() -> None:
    log = ScriptedLog(fates=[Fate.UNANSWERED])
    async with leading(log, replica=DeafReplica()) as leader:
        assert await all_of(leader, add("k", "1")) == ["11"], "this is what the ids are for"


async def test_the_same_operation_of_another_is_not_taken_for_its_own() -> None:
    log = ScriptedLog(fates=[Fate.LOST])
    log.open.clear()
    async with leading(log) as leader:
        mine = asyncio.create_task(all_of(leader, add("k", "1")))
        await eventually(lambda: len(log.appends) == 1)
        log.foreign(add("k", "1"))
        log.open.set()
        assert await mine == ["11"]


async def test_it_waits_for_what_is_in_the_way_and_not_safe_yet() -> None:
    log = ScriptedLog(safe=0)
    log.foreign(put("k", "1"))
    async with leading(log) as leader:
        mine = asyncio.create_task(all_of(leader, add("k", "2")))
        await eventually(lambda: len(log.appends) > 2)
        assert {expected for expected, _ in log.appends} == {0}, "it goes no further than it reads"
        log.safe = None
        assert await mine == ["12"]


async def test_two_leaders_of_one_log() -> None:
    log = ScriptedLog()
    async with leading(log, "a") as one, leading(log, "b") as other:
        told = await asyncio.gather(
            *(all_of(one, add("k", f"a{n};")) for n in range(20)),
            *(all_of(other, add("k", f"b{n};")) for n in range(20)),
        )
        (whole,) = await all_of(one, get("k"))
    assert whole is not None
    assert sorted(whole.split(";")[:-1]) == sorted(f"{w}{n}" for w in "ab" for n in range(20))
    assert all(whole.startswith(value) for (value,) in told if value is not None)


# -- no result ----------------------------------------------------------------------------------


async def outcome(asked: Awaitable[Result]) -> type[Exception] | str | None:
    try:
        return (await asked).value
    except (NotDone, Unknown) as error:
        return type(error)


async def test_who_runs_out_of_patience_before_the_attempt_knows_that_it_is_not_done() -> None:
    log = ScriptedLog()
    log.open.clear()
    async with leading(log) as leader:
        first = asyncio.create_task(outcome(leader.do(add("k", "1"), PATIENCE_S)))
        await eventually(lambda: len(log.appends) == 1)
        assert await outcome(leader.do(add("k", "2"), 0)) is NotDone
        assert await outcome(leader.do(get("k"), 0)) is NotDone
        log.open.set()
        assert await first == "1"
        assert await all_of(leader, get("k")) == ["1"]


async def test_who_runs_out_of_patience_during_the_attempt_knows_nothing() -> None:
    log = ScriptedLog()
    log.open.clear()
    async with leading(log) as leader:
        writing = asyncio.create_task(outcome(leader.do(add("k", "1"), 0.02)))
        reading = asyncio.create_task(outcome(leader.do(get("k"), 0.02)))
        assert await writing is Unknown
        assert await reading is NotDone, "a read changes nothing"
        log.open.set()
        assert await all_of(leader, get("k")) == ["1"], "its copy has what was in the append"


async def test_what_is_behind_an_entry_that_was_read_may_still_be_there() -> None:
    log = ScriptedLog(fates=[Fate.UNANSWERED], at_once=1)
    log.open.clear()
    async with leading(log) as leader:
        first = asyncio.create_task(outcome(leader.do(add("k", "1"), PATIENCE_S)))
        second = asyncio.create_task(outcome(leader.do(add("k", "2"), 0.5)))
        await eventually(lambda: len(log.appends) == 1)
        assert log.appends == [(0, [add("k", "1"), add("k", "2")])]
        before = log.reads
        log.open.set()
        await eventually(lambda: log.reads == before + 2)
        log.readable.clear()
        assert await first == "1"
        assert await second is Unknown
        log.readable.set()
        assert await all_of(leader, get("k")) == ["12"]


async def test_who_runs_out_of_patience_just_when_the_result_comes() -> None:
    log = ScriptedLog()
    log.open.clear()
    loop = asyncio.get_running_loop()
    async with leading(log) as leader:
        begun = loop.time()
        mine = asyncio.create_task(outcome(leader.do(add("k", "1"), 0.5)))
        await eventually(lambda: len(log.appends) == 1)
        # Both are due when the loop looks again, the answer first.
        loop.call_at(begun + 0.45, log.open.set)
        loop.call_at(begun + 0.4, time.sleep, 0.3)
        assert await mine == "1"


@pytest.mark.parametrize(("seen", "told"), [(0, Unknown), (1, NotDone)])
async def test_an_offset_that_was_read_leaves_no_doubt(seen: int, told: type[Exception]) -> None:
    log = ScriptedLog(fates=[Fate.LOST], at_once=1)
    log.open.clear()
    async with leading(log) as leader:
        mine = asyncio.create_task(outcome(leader.do(add("k", "1"), 0.5)))
        await eventually(lambda: len(log.appends) == 1)
        log.foreign(put("k", "5"), put("k", "6"))
        before = log.reads
        if seen == 0:
            log.readable.clear()
        log.open.set()
        if seen == 1:
            await eventually(lambda: log.reads == before + 2)
            log.readable.clear()
        assert await mine is told
        log.readable.set()
        assert await all_of(leader, get("k")) == ["6"]


async def test_who_waits_when_it_stops_leading_is_told() -> None:
    log = ScriptedLog()
    log.open.clear()
    async with leading(log) as leader:
        tried = asyncio.create_task(outcome(leader.do(add("k", "1"), PATIENCE_S)))
        await eventually(lambda: len(log.appends) == 1)
        waits = asyncio.create_task(outcome(leader.do(add("k", "2"), PATIENCE_S)))
        await asyncio.sleep(0)
    assert await tried is Unknown
    assert await waits is NotDone
    assert await outcome(leader.do(add("k", "3"), PATIENCE_S)) is NotDone


async def test_a_log_that_is_no_log_of_the_store_ends_it() -> None:
    class Broken(ScriptedLog):
        async def read(self, offset: int, wait_ms: int) -> object:  # type: ignore[override]  # it is broken on purpose
            raise ValueError("no entry")

    leader = Leader(Replica(), Broken(), "a")  # type: ignore[arg-type]  # as much of one as is used
    task = asyncio.create_task(leader.lead())
    waits = asyncio.create_task(outcome(leader.do(get("k"), PATIENCE_S)))
    with pytest.raises(ValueError, match="no entry"):
        await task
    assert await waits is NotDone


async def test_a_follower_has_what_is_safe() -> None:
    log = ScriptedLog(safe=1)
    log.foreign(put("k", "1"), put("k", "2"))
    replica = Replica()
    task = asyncio.create_task(replica.follow(log))
    await eventually(lambda: replica.upcoming == 1)
    assert replica.apply(get("k")).value == "1"
    log.safe = None
    await eventually(lambda: replica.upcoming == 2)
    assert replica.apply(get("k")).value == "2"
    task.cancel()
