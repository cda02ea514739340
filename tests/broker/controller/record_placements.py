"""Records where Kafka's own StripedReplicaPlacer places replicas, in ``placements.txt``.

    python -m tests.broker.controller.record_placements

needs Java and Maven, which fetches the jars of Kafka 4.3.1. A shape is what the random generator
draws (a number, taken modulo each bound), the partitions, the replication factor and the brokers;
each stands in a line of its own, before the line that Kafka's placer answered.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.harness.java import story_command
from tests.harness.run import run

PLACEMENTS: Final = Path(__file__).with_name("placements.txt")
_SHAPES: Final = 400
_RACKS: Final = ("east", "west", "a", "B", "zürich", "\U0001d504", "ﬀ")
"""Names whose order depends on how text is compared."""


def shapes() -> Iterator[str]:
    """Clusters of up to nine brokers, without racks, with some, or with as many as brokers."""
    rng = random.Random(1)
    for _ in range(_SHAPES):
        count = rng.randint(1, 9)
        ids = rng.sample(range(12), count)
        racks = rng.sample(("-", *_RACKS), rng.randint(1, 5))
        share = rng.choice((0.0, 0.0, 0.2, 0.5, 0.9))
        brokers = (
            f"{i}:{rng.choice(racks)}:{'fenced' if rng.random() < share else 'online'}" for i in ids
        )
        factor = rng.randint(1, count + (rng.random() < 0.1))
        words = (rng.randrange(1000), rng.choice((1, 3, 7, 20)), factor, ",".join(brokers))
        yield " ".join(map(str, words))


def record() -> None:
    """Write what Kafka's placer answers."""
    asked = list(shapes())
    text = "".join(f"{line}\n" for line in asked)
    answered = run(story_command("PlacementStory"), stdin=text, timeout_s=60).lines
    pairs = zip(asked, answered, strict=True)
    PLACEMENTS.write_text(
        "".join(f"{shape}\n{placed}\n" for shape, placed in pairs), encoding="utf-8"
    )


if __name__ == "__main__":
    record()
