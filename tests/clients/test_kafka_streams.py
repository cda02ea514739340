"""Kafka Streams counts words while the application and its cluster fail.

``FENCEPOST_STREAMS_SEEDS=20`` is the whole proof, with ``at_least_once`` too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.clients.failing_cluster import SEEDS, FailingCluster
from tests.clients.word_count import LINES, Application, check
from tests.harness.java import HOME, POM, story_command
from tests.harness.served_cluster import unique

POMS: Final = (POM, HOME / "streams" / "pom.xml")
EXACTLY_ONCE: Final = "exactly_once_v2"
AT_LEAST_ONCE: Final = "at_least_once"
SHORT: Final = [(EXACTLY_ONCE, 1)]
LONG: Final = [(EXACTLY_ONCE, 5), (AT_LEAST_ONCE, 5), (AT_LEAST_ONCE, 0)]
"""A guarantee, and how often an instance is killed."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("guarantee", "kills"), SHORT if len(SEEDS) == 1 else LONG)
def test_each_word_counts(
    failing: FailingCluster, guarantee: str, kills: int, seed: int, tmp_path: Path
) -> None:
    """By even seeds one instance is a static member of its group, and has its tasks again after a
    kill. By odd ones there are two: after the session's timeout the other has them.
    """
    source, target = failing.create_topics()
    failing.send(source, [*map(str.encode, LINES)])
    name = unique("counter")

    def command(index: int) -> list[str]:
        settings = [f"processing.guarantee={guarantee}", "session.timeout.ms=6000"]
        if seed % 2 == 0:
            settings.append(f"group.instance.id={name}")
        state = str(tmp_path / f"state-{index}")
        arguments = [failing.cluster.bootstrap, source, target, name, state, *settings]
        return story_command("WordCountStory", *arguments, poms=POMS)

    with Application(command, tmp_path, instances=1 + seed % 2) as application:
        exact = guarantee == EXACTLY_ONCE or not kills
        check(failing, application, (source, target, name), seed, kills=kills, exact=exact)
