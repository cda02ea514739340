"""Conditional appends of several processes, under whatever a seed brings about.

Answers and requests are lost, requests lie about and are carried out long after, elections take
what is above the high watermark, processes die and others take up what they were at. In the end
every outcome must be what the log says.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.client import (
    Appended,
    Appender,
    Disconnected,
    ExpectedOffsetMismatch,
    NewRecord,
    OutcomeUnknown,
    TimedOut,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import peek_header
from tests.harness.scripted_broker import (
    Cluster,
    Log,
    appender,
    carried_out,
    hurried,
    records,
    refused,
)

if TYPE_CHECKING:
    from fencepost.protocol.byte_utils import Buffer
    from fencepost.protocol.messages.produce import PartitionProduceResponse

__all__ = ["hurried"]
pytestmark = pytest.mark.usefixtures("hurried")

SEEDS: Final = range(60)
WRITERS: Final = 3
APPENDS: Final = 12
Outcome = Appended | ExpectedOffsetMismatch | OutcomeUnknown


class Died(Exception):
    """The process is gone, with its connection."""


@dataclass(slots=True)
class Attempt:
    """An append, and what was said of it."""

    values: tuple[str, ...]
    expected: int
    outcome: Outcome


@dataclass(slots=True)
class Chaos:
    """What happens to a cluster."""

    rng: Random
    log: Log = field(default_factory=lambda: Log(replicated=0))
    under_way: list[bytes] = field(default_factory=list)
    """Requests that no call waits for any more, and that are carried out later."""
    others: int = 0

    def step(self, cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        """What becomes of a Produce."""
        self.happen(self.log)
        fate = self.rng.choice(
            (self._answered, self._answered, self._lost, self._late, self._later, self._died)
        )
        return fate(cluster, bytes(batches))

    def happen(self, log: Log) -> None:
        """Something, or nothing."""
        self.rng.choice((self._replicate, self._elect, self._write, self._arrive, self._nothing))()

    def _answered(self, cluster: Cluster, batches: bytes) -> PartitionProduceResponse:
        answer = carried_out(cluster, batches)
        if answer.error_code == ErrorCode.NONE:  # acks=all
            self.log.replicated = self.log.end
        return answer

    def _lost(self, cluster: Cluster, batches: bytes) -> PartitionProduceResponse:
        if self.rng.random() < 0.5:
            carried_out(cluster, batches)
        raise Disconnected("lost")

    def _late(self, cluster: Cluster, batches: bytes) -> PartitionProduceResponse:
        self.under_way.append(batches)
        raise TimedOut("it lies about")

    def _later(self, cluster: Cluster, batches: bytes) -> PartitionProduceResponse:
        if self.rng.random() < 0.5:
            answer = carried_out(cluster, batches)
            if answer.error_code != ErrorCode.NONE:
                return answer
        return refused(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def _died(self, cluster: Cluster, batches: bytes) -> PartitionProduceResponse:
        if self.rng.random() < 0.3:
            self.under_way.append(batches)
            raise Died
        return self._lost(cluster, batches)

    def _replicate(self) -> None:
        assert self.log.replicated is not None
        self.log.replicated = self.rng.randint(self.log.replicated, self.log.end)

    def _elect(self) -> None:
        """The new leader has all that is below the high watermark, and of the rest a part."""
        whole = [0, *(peek_header(each).next_offset for each in self.log.batches)]
        left = [end for end in whole if end >= self.log.high_watermark]
        self.log.truncate(self.rng.choice(left))

    def _write(self) -> None:
        self.others += 1
        self.log.write(*(f"other-{self.others}-{at}" for at in range(self.rng.randint(1, 4))))

    def _arrive(self) -> None:
        if self.under_way:
            self.log.append(self.under_way.pop(self.rng.randrange(len(self.under_way))))

    def _nothing(self) -> None:
        pass


async def write(
    name: int, chaos: Chaos, make: Callable[[], Appender], attempts: list[Attempt]
) -> None:
    """Append until it is enough, each time where the log is believed to end."""
    process, expected = make(), 0
    for number in range(APPENDS):
        values = tuple(f"{name}-{number}-{at}" for at in range(chaos.rng.randint(1, 5)))
        outcome = await settle(process, make, records(*values), expected)
        attempts.append(Attempt(values, expected, outcome))
        if isinstance(outcome, Appended):
            expected = outcome.next_offset
        else:
            process, expected = make(), chaos.log.end


async def settle(
    process: Appender, make: Callable[[], Appender], mine: list[NewRecord], expected: int
) -> Outcome:
    """What the last process says that takes it up."""
    again = False
    while True:
        try:
            return await process.append(mine, expected=expected, may_be_there=again)
        except (ExpectedOffsetMismatch, OutcomeUnknown) as told:
            return told
        except Died:
            process, again = make(), True


async def play(seed: int, version: int) -> tuple[list[Attempt], list[str]]:
    """What was said of every append, and the log in the end."""
    chaos = Chaos(Random(seed))
    cluster = Cluster(log=chaos.log, version=version)
    cluster.script = _Endless(chaos.step)
    cluster.reads = _Endless(chaos.happen)
    attempts: list[Attempt] = []

    def make() -> Appender:
        return appender(
            cluster,
            deadline_s=chaos.rng.choice((0.2, 5)),
            max_batch_records=chaos.rng.randint(1, 3),
        )

    await asyncio.gather(*(write(name, chaos, make, attempts) for name in range(WRITERS)))
    chaos.log.replicated = chaos.log.end
    while chaos.under_way:
        chaos._arrive()
    return attempts, chaos.log.values


class _Endless(list):  # type: ignore[type-arg]  # of anything
    """A script that goes on for ever."""

    def __init__(self, step: object) -> None:
        super().__init__([step])

    def pop(self, index: object = 0) -> object:
        return self[0]


def check(attempt: Attempt, log: list[str]) -> None:
    """That an outcome is the truth."""
    values, first = list(attempt.values), attempt.expected
    there = [value for value in values if value in log]
    assert there == values[: len(there)], "there is a gap"
    assert log[first : first + len(there)] == there, "it is elsewhere"
    match attempt.outcome:
        case Appended() as done:
            assert there == values
            assert (done.first_offset, done.next_offset) == (first, first + len(values))
        case ExpectedOffsetMismatch() as told:
            assert len(there) == told.appended
            assert told.appended < len(values)
        case OutcomeUnknown():
            pass


@pytest.mark.parametrize("version", [13, 3])
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_outcome_is_what_the_log_says(seed: int, version: int) -> None:
    attempts, log = await play(seed, version)
    assert len(attempts) == WRITERS * APPENDS
    assert max(Counter(log).values(), default=0) <= 1, "something is there twice"
    for attempt in attempts:
        check(attempt, log)


async def test_chaos_brings_about_all_of_it() -> None:
    outcomes: Counter[object] = Counter()
    for seed in SEEDS[:20]:
        for attempt in (await play(seed, 13))[0]:
            told = attempt.outcome
            torn = isinstance(told, ExpectedOffsetMismatch) and told.appended > 0
            outcomes[type(told), torn] += 1
    assert outcomes[Appended, False] > 100
    assert outcomes[ExpectedOffsetMismatch, False] > 100
    assert outcomes[ExpectedOffsetMismatch, True] > 3
    assert outcomes[OutcomeUnknown, False] > 0
