"""A Flink job copies a topic exactly once while the job, its process and its cluster fail.

``FENCEPOST_STREAMS_SEEDS=20`` is the whole proof; by default the job fails once.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.clients.failing_cluster import PARTITIONS, SEEDS, FailingCluster
from tests.harness.confluent import read_committed
from tests.harness.dialogue import Dialogue
from tests.harness.java import HOME, story_command
from tests.harness.served_cluster import unique
from tests.harness.wait import wait_until

FAILURES: Final = ["fail"] if len(SEEDS) == 1 else ["fail", "kill"] * 3
"""Of the job, and of its process."""
STEP: Final = 60
"""So many records come between two failures. Half of them are copied before the next."""
WAIT_S: Final = 120.0


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_copied_once(failing: FailingCluster, seed: int, tmp_path: Path) -> None:
    source, target = failing.create_topics()
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    command = story_command(
        "FlinkStory",
        *(failing.cluster.bootstrap, source, target, unique("copier"), str(checkpoints)),
        ("INCREMENTING", "POOLING")[seed % 2],  # how the sink names its transactions
        poms=[HOME / "flink" / "pom.xml"],
    )
    disturbances = failing.disturbances(seed, source, target)
    values = [b"%d" % number for number in range(STEP * len(FAILURES))]

    def copied() -> list[list[bytes]]:
        return read_committed(failing.cluster, target, PARTITIONS)

    def are_copied(job: Dialogue, count: int) -> bool:
        job.pending()  # an error, with its log, where it has ended
        return sum(map(len, copied())) >= count

    with ExitStack() as process:
        process.callback(disturbances.mend)
        job = process.enter_context(Dialogue(command, tmp_path / "first.log"))
        for step, failure in enumerate(FAILURES):
            sent = values[: STEP * (step + 1)]
            tell(job, f"copy {STEP // 2}")  # before there is more: it may copy all until then
            disturbances.mend()
            failing.send(source, sent[-STEP:])
            job.hear_until("waits", WAIT_S)
            disturbances.next()
            if failure == "fail":
                tell(job, "fail")
            else:
                job.kill()
                job = process.enter_context(Dialogue(command, tmp_path / f"after-{step}.log"))
            tell(job, f"copy {len(values)}")
            wait_until("all are copied", partial(are_copied, job, len(sent)), WAIT_S)
        disturbances.mend()
        job.end()
    expected = [values[index::PARTITIONS] for index in range(PARTITIONS)]
    assert copied() == expected, disturbances.done


def tell(job: Dialogue, line: str) -> None:
    """Let it do what a line says."""
    job.say(line)
    job.hear_until("heard", WAIT_S)
