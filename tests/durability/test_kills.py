"""``kill -9`` under load, at random moments: nothing acknowledged is missing, nothing doubled.

``FENCEPOST_KILLS`` says how often; the full proof takes 200.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.durability import load
from tests.durability.load import PARTITIONS, TOPIC, Acknowledged, Committing, Producing
from tests.harness.durable_cluster import DurableCluster
from tests.harness.wait import wait_until

KILLS: Final = int(os.environ.get("FENCEPOST_KILLS", "3"))
LONGEST_S: Final = 0.8
"""That a process lives under load."""


@pytest.fixture(params=["--fsync", "without"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DurableCluster]:
    options = ["--topic", f"{TOPIC}:{PARTITIONS}:3", "--config", "min.insync.replicas=2"]
    # Segments are rolled and checkpoints written often enough to be met in the midst of it.
    options += ["--config", "log.segment.bytes=1048576"]
    options += ["--config", "replica.high.watermark.checkpoint.interval.ms=200"]
    options += ["--config", "log.flush.offset.checkpoint.interval.ms=300"]
    options += ["--config", "offsets.topic.num.partitions=3"]
    options += ["--config", "offsets.topic.replication.factor=3"]
    if request.param == "--fsync":
        options.append("--fsync")
    served = DurableCluster(tmp_path / "data", tmp_path / "log", options=options)
    yield served
    served.close()


class Checked:
    """What has been read and found right so far."""

    def __init__(self) -> None:
        self.ends = [0] * PARTITIONS
        self.numbers: set[int] = set()

    def check(self, bootstrap: str, acknowledged: Acknowledged, upto: list[int]) -> None:
        """Read on, and see that it is what was acknowledged and nothing twice."""
        found = load.read(bootstrap, self.ends, upto)
        for partition, records in enumerate(found):
            for offset in range(self.ends[partition], upto[partition]):
                assert offset in records, f"{offset} of partition {partition} is missing"
                number = records[offset]
                told = acknowledged.by_partition[partition].get(offset)
                assert told in (None, number), f"{told} was acknowledged, and {number} is there"
                assert number not in self.numbers, f"{number} is there twice"
                self.numbers.add(number)
            self.ends[partition] = max(self.ends[partition], upto[partition])


@pytest.mark.timeout(60 + 12 * KILLS)
def test_nothing_acknowledged_is_missing_and_nothing_is_doubled(served: DurableCluster) -> None:
    drawn = random.Random(os.environ.get("FENCEPOST_KILLS_SEED", "kills"))
    served.start()
    producing, committing = Producing(served.bootstrap), Committing(served.bootstrap)
    checked, acknowledged = Checked(), producing.acknowledged
    try:
        for kill in range(KILLS):
            more = partial(acknowledged.is_above, acknowledged.count)
            wait_until(f"more is acknowledged after kill {kill}", more)
            time.sleep(drawn.uniform(0, LONGEST_S))
            served.kill()
            ends, was_committed = acknowledged.ends(), committing.committed
            served.start()
            checked.check(served.bootstrap, acknowledged, ends)
            now_committed = load.committed(served.bootstrap)
            assert was_committed <= now_committed <= committing.tried
            assert not acknowledged.errors
    finally:
        producing.finish()
        committing.finish()
    checked.check(served.bootstrap, acknowledged, acknowledged.ends())
    assert not acknowledged.errors
    assert checked.numbers == set(range(producing.sent)), "each was sent once, and is there once"
    assert committing.committed > 0
