"""Two leaders of one shard, through faults and elections: no client can tell that they are two.

``FENCEPOST_KV_SEEDS`` says how many seeds. The same seed draws the same faults again, though they
do not meet the same requests.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from fencepost.broker.core.events import Kind
from fencepost.broker.produce import expected_offsets
from tests.examples.kvstore.contest import Contest
from tests.examples.kvstore.histories import History, check, checker
from tests.examples.kvstore.mutants import HastyLeader, TrustingWal

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

SEEDS: Final = int(os.environ.get("FENCEPOST_KV_SEEDS", "15"))
MUTANT_SEEDS: Final = 20
"""How many of them to run at a time, and ..."""
MOST_ROUNDS: Final = 10
FOUND: Final = 5
"""... how many histories have to be wrong: nearly all are, but fewer on a busy machine."""

MakeContest: TypeAlias = Callable[["Server", int], Contest]
MISFORTUNES: Final = (
    Kind.PUBLISH_REFUSED,
    Kind.FAULT_HIT,
    Kind.LEADER_CHANGED,
    Kind.LOG_TRUNCATED,
    Kind.REPLICA_HELD,
    Kind.BROKER_CHANGED,
)

pytestmark = pytest.mark.unmeasured


@pytest.fixture(autouse=True)
def _checker() -> None:
    """First of all: without it there is no use in histories."""
    checker()


async def histories_of(servers: Sequence[Server], seeds: range, make: MakeContest) -> list[History]:
    """What clients see on so many seeds, with one contest at a time on each of the clusters."""

    async def lane(number: int) -> list[History]:
        each = seeds[number :: len(servers)]
        return [await make(servers[number], seed).run() for seed in each]

    lanes = await asyncio.gather(*map(lane, range(len(servers))))
    return [history for lane in lanes for history in lane]


@pytest.mark.timeout(120 + 4 * SEEDS)
async def test_the_store_is_linearizable(servers: list[Server]) -> None:
    histories = await histories_of(servers, range(SEEDS), Contest)
    found = check(histories)
    assert not found.violations, found.text
    assert len(found.by_name) == SEEDS
    events = sum((history.events for history in histories), Counter[Kind]())
    assert all(events[kind] >= SEEDS // 4 for kind in MISFORTUNES), f"it was too easy: {events}"


# That it can fail


async def assert_found_out(servers: Sequence[Server], make: MakeContest) -> None:
    count = 0
    for number in range(MOST_ROUNDS):
        seeds = range(number * MUTANT_SEEDS, (number + 1) * MUTANT_SEEDS)
        count += len(check(await histories_of(servers, seeds, make)).violations)
        if count >= FOUND:
            return
    pytest.fail(f"{count} of {MOST_ROUNDS * MUTANT_SEEDS} histories are wrong")


async def test_without_the_check_it_is_not(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that takes all offsets for the expected ones."""
    monkeypatch.setattr(expected_offsets, "matches_upcoming_offset", lambda *_: True)
    trusting = partial(Contest, wal=TrustingWal)
    await assert_found_out(servers, trusting)


async def test_with_reads_that_do_not_ask_the_log_it_is_not(servers: list[Server]) -> None:
    hasty = partial(Contest, leader=HastyLeader)
    await assert_found_out(servers, hasty)


def test_the_checker_itself() -> None:
    right, wrong, open_ended = (History(name) for name in ("right", "wrong", "open ended"))
    put = {"client": 1, "kind": "put", "key": "k", "value": "v", "expected": None, "done": True}
    get = {"client": 2, "kind": "get", "key": "k", "value": None, "expected": None, "done": True}
    right.told = [
        {**put, "call": 1, "return": 3, "found": None},
        {**get, "call": 2, "return": 4, "found": None},
        {**get, "call": 5, "return": 6, "found": "v"},
    ]
    wrong.told = [
        {**put, "call": 1, "return": 2, "found": None},
        {**get, "call": 3, "return": 4, "found": None},
    ]
    open_ended.told = [
        {**put, "call": 1, "return": None, "found": None},
        {**get, "call": 2, "return": 3, "found": None},
        {**get, "call": 4, "return": 5, "found": "v"},
    ]
    found = check([right, wrong, open_ended])
    assert found.violations == ["wrong"]
    assert "3-4" in found.text
