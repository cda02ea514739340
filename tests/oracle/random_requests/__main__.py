"""``python -m tests.oracle.random_requests SEED [INDEX]``: compare, or replay one request.

``FENCEPOST_RANDOM_REQUESTS`` says how many requests. ``FENCEPOST_RANDOM_KAFKA=HOST:PORT`` names a
Kafka that runs already, made like the one of ``tests.oracle.comparing.SINGLE``; its topics are
deleted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.harness.kafka import start_kafka
from tests.harness.served_cluster import Cluster, serve
from tests.oracle.random_requests.comparison import Comparison, Result
from tests.oracle.random_requests.sides import Both, Side

OPTIONS: Final = (
    *("--conformance", "apache"),
    *("--config", "auto.create.topics.enable=false"),
    *("--config", "group.initial.rebalance.delay.ms=0"),
    *("--config", "offsets.topic.num.partitions=1"),
    *("--config", "transaction.state.log.num.partitions=1"),
    *("--config", "offsets.retention.check.interval.ms=86400000"),
    *("--racks", "r1"),
)
"""How fencepost is served to be configured as the Kafka is."""
DEFAULT_COUNT: Final = 300
SEED: Final = int(os.environ.get("FENCEPOST_RANDOM_SEED", "6"))
"""Of the comparison in the tests."""


def count() -> int:
    """How many requests a run sends."""
    return int(os.environ.get("FENCEPOST_RANDOM_REQUESTS", DEFAULT_COUNT))


def compare(kafka: Cluster, folder: Path, seed: int, index: int | None = None) -> Result:
    """Random requests to a Kafka that runs and to a fencepost that is started.

    :param index: Of the request to replay; None for all.
    """
    fencepost = serve(folder / "fencepost.log", *OPTIONS, brokers=1)
    try:
        comparison = Comparison(Both(Side(kafka), Side(fencepost)), seed)
        if index is None:
            comparison.run(count())
        else:
            comparison.replay(index)
        return comparison.result
    finally:
        fencepost.stop()


def main(arguments: list[str]) -> int:
    """Print what differed; 1 where anything did."""
    seed, *rest = map(int, arguments)
    index = rest[0] if rest else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = os.environ.get("FENCEPOST_RANDOM_KAFKA")
        if given:
            result = compare(Cluster(bootstrap=given), folder, seed, index)
        else:
            kafka = start_kafka(folder / "kafka")
            try:
                result = compare(kafka.cluster, folder, seed, index)
            finally:
                kafka.stop()
    lines = [str(failure) for failure in result.failures]
    lines.append(f"seed {seed}: {result.requests.total()} requests, {len(result.failures)} differ")
    lines += [f"   {n} times {each}" for each, n in result.reasons.most_common()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
