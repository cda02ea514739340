"""Two producers that compete for the end of one log, in bad weather.

``FENCEPOST_APPENDS`` says how many records they append in all.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fencepost.client import (
    Appender,
    Client,
    ExpectedOffsetMismatch,
    NewRecord,
    OutcomeUnknown,
    Partition,
    Unreachable,
)
from fencepost.testing.cluster import AsyncCluster
from tests.conditional import journal
from tests.conditional.weather import bad_weather
from tests.harness.log_reader import log_of
from tests.harness.served_cluster import Cluster, serve

APPENDS: Final = int(os.environ.get("FENCEPOST_APPENDS", "2000"))
SEED: Final = int(os.environ.get("FENCEPOST_APPENDS_SEED", "27"))
NAMES: Final = ("ann", "bob")
TIMESTAMP: Final = 1_700_000_000_000


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[tuple[Cluster, Path]]:
    """Three brokers, and where everything that they are asked is written down."""
    traces = tmp_path / "traces"
    cluster = serve(tmp_path / "log", "--trace", str(traces), "--seed", str(SEED))
    yield cluster, traces
    assert cluster.process is not None
    if cluster.process.child.poll() is None:
        cluster.stop()


class Producer:
    """Appends its records one by one, each where the log ends as far as it knows."""

    def __init__(self, client: Client, topic: str, name: str) -> None:
        self.name = name
        self.refusals = 0
        self.doubts = 0
        self._appender = Appender(
            client, Partition(topic=topic, index=0), request_timeout_s=2.0, deadline_s=10.0
        )

    async def run(self, count: int) -> None:
        end = 0
        for number in range(count):
            value = f"{self.name} {number}".encode()
            end = await self._append(NewRecord(value=value, timestamp=TIMESTAMP), end)

    async def _append(self, record: NewRecord, end: int) -> int:
        """Where the log ends then."""
        while True:
            try:
                return (await self._appender.append([record], expected=end)).next_offset
            except ExpectedOffsetMismatch as mismatch:
                self.refusals += 1
                assert mismatch.upcoming is not None
                end = mismatch.upcoming
            except (OutcomeUnknown, Unreachable):
                self.doubts += 1  # and so it must not go elsewhere
                assert self.doubts < 10, "brokers hardly answer"


@pytest.mark.unmeasured
@pytest.mark.timeout(120 + APPENDS // 20)
async def test_every_record_is_there_once_and_in_its_producers_order(
    traced: tuple[Cluster, Path],
) -> None:
    served, traces = traced
    topic = served.create_topic(configs={"check.expected.offsets": "true", "retention.ms": "-1"})
    assert served.control is not None
    cluster = AsyncCluster(served.bootstrap, served.control)
    async with (
        Client(served.bootstrap, client_id=NAMES[0]) as first,
        Client(served.bootstrap, client_id=NAMES[1]) as second,
    ):
        producers = [
            Producer(client, topic, name)
            for client, name in zip((first, second), NAMES, strict=True)
        ]
        async with bad_weather(cluster, topic, SEED):
            await asyncio.gather(*(each.run(APPENDS // 2) for each in producers))
        values = [(each.value or b"").decode() for each in await log_of(first, topic)]
    cluster.remote.close()
    numbers: dict[str, list[int]] = {name: [] for name in NAMES}
    for value in values:
        name, number = value.split()
        numbers[name].append(int(number))
    assert numbers == {name: list(range(APPENDS // 2)) for name in NAMES}
    served.stop()
    _check(list(journal.appends(traces)), len(values))


def _check(requests: list[journal.Append], end: int) -> None:
    """Of requests that expect the same offset one at most is appended."""
    rivals: dict[int, list[journal.Append]] = defaultdict(list)
    for each in requests:
        rivals[each.expected].append(each)
    clashes = 0
    for offset, clashing in rivals.items():
        appended = [each.epoch for each in clashing if not each.is_refused]
        # What a leader alone had is lost with it: then the next one may append there as well.
        assert len(appended) == len(set(appended)), f"two in one epoch at {offset}"
        acknowledged = [each for each in clashing if each.is_acknowledged]
        assert len(acknowledged) <= 1, f"two were acknowledged at {offset}"
        if len({each.client_id for each in clashing}) == len(NAMES):
            clashes += 1
            assert any(each.is_refused for each in clashing), f"no append was refused at {offset}"
    assert clashes > end // 4, "they did not compete"
