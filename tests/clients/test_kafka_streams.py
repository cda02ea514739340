"""Kafka Streams counts words while the application and its cluster fail: each word counts once.

``FENCEPOST_STREAMS_SEEDS=20`` is the whole proof, with ``at_least_once`` too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, Self

import pytest

from tests.clients.disturbances import Disturbances
from tests.harness.confluent import delivered, read_committed, send
from tests.harness.control_client import Control
from tests.harness.dialogue import Dialogue
from tests.harness.java import HOME, story_command
from tests.harness.served_cluster import Cluster, configs, serving, unique
from tests.harness.wait import wait_until

SEEDS: Final = range(int(os.environ.get("FENCEPOST_STREAMS_SEEDS", "1")))
EXACTLY_ONCE: Final = "exactly_once_v2"
AT_LEAST_ONCE: Final = "at_least_once"
SHORT: Final = [(EXACTLY_ONCE, 1)]
LONG: Final = [(EXACTLY_ONCE, 5), (AT_LEAST_ONCE, 5), (AT_LEAST_ONCE, 0)]
"""A guarantee, and how often an instance of the application is killed."""

PARTITIONS: Final = 3
LINES: Final = [f"all w{i % 3} w{i % 7} w{i % 11}" for i in range(150)]
TRUE_COUNTS: Final = Counter(word for line in LINES for word in line.split())
STEP: Final = 30
"""So many words an instance counts between two failures."""
STATE_TOPICS: Final = ("__transaction_state", "__consumer_offsets")
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Application:
    """Instances of one Kafka Streams application. Leaving it kills those that still run.

    :param instances: How many. Two are dynamic members of the group, so that one takes the tasks
        of the other; one is a static member, so that it has its own again.
    """

    def __init__(
        self,
        cluster: Cluster,
        topics: tuple[str, str],
        guarantee: str,
        instances: int,
        folder: Path,
    ) -> None:
        self.name = unique("counter")
        self._arguments = (cluster.bootstrap, *topics, self.name)
        self._guarantee = guarantee
        self._folder = folder
        self._kills = 0
        self._running = [ExitStack() for _ in range(instances)]
        self._instances = [self._begin(index, stack) for index, stack in enumerate(self._running)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stack in self._running:
            stack.close()

    def count(self, words: int) -> None:
        """Let each instance count so many words more."""
        for each in self._instances:
            each.pending()
            each.say(f"count {words}")

    def waiting(self) -> int:
        """The instance that first waits amid a transaction."""

        def waits() -> list[int]:
            return [i for i, each in enumerate(self._instances) if "waits" in each.pending()]

        return wait_until("an instance has counted its words", waits)[0]

    def kill(self, index: int) -> None:
        """End an instance as ``kill -9`` does, and start it again, in the same directory."""
        self._running[index].close()
        self._kills += 1
        self._instances[index] = self._begin(index, self._running[index])

    def end(self) -> None:
        """Let all instances end in order."""
        for each in self._instances:
            each.end()

    def _begin(self, index: int, stack: ExitStack) -> Dialogue:
        state = self._folder / f"state-{index}"
        settings = [f"processing.guarantee={self._guarantee}", "session.timeout.ms=6000"]
        if len(self._running) == 1:
            settings.append(f"group.instance.id={self.name}")
        command = story_command(
            "WordCountStory",
            *self._arguments,
            str(state),
            *settings,
            pom=HOME / "streams" / "pom.xml",
        )
        log = self._folder / f"instance-{index}-{self._kills}"
        return stack.enter_context(Dialogue(command, log))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("streams")
    with serving(folder / "fencepost.log", *configs(SETTINGS)) as made:
        yield made


@pytest.fixture
def control(served: Cluster) -> Iterator[Control]:
    assert served.control is not None
    with closing(Control(served.control)) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("guarantee", "kills"), SHORT if len(SEEDS) == 1 else LONG)
def test_each_word_counts(
    served: Cluster, control: Control, guarantee: str, kills: int, seed: int, tmp_path: Path
) -> None:
    source, target = (served.create_topic(n, partitions=PARTITIONS) for n in ("source", "target"))
    assert delivered(send(served, source, [*map(str.encode, LINES)], partitions=PARTITIONS))
    with Application(served, (source, target), guarantee, 1 + seed % 2, tmp_path) as application:
        application.count(STEP)
        application.waiting()
        internal = (f"{application.name}-counts-{kind}" for kind in ("repartition", "changelog"))
        topics = {**dict.fromkeys((source, target, *internal), PARTITIONS)}
        disturbances = Disturbances(control, topics | dict.fromkeys(STATE_TOPICS, 1), seed)
        for step in range(max(kills, 2)):
            application.count(STEP)
            disturbances.next()
            waiting = application.waiting()
            if step < kills:
                application.kill(waiting)
        disturbances.mend()
        application.count(sum(TRUE_COUNTS.values()) * 10)
        wait_until("all words are counted", lambda: is_counted(counts(served, target)))
        application.end()
    found = counts(served, target)
    exact = {word: list(range(1, count + 1)) for word, count in TRUE_COUNTS.items()}
    if guarantee == EXACTLY_ONCE or not kills:
        assert found == exact, disturbances.done
    assert is_counted(found), disturbances.done


def counts(cluster: Cluster, target: str) -> dict[str, list[int]]:
    """What a read_committed consumer gets for each word, in the order of its partition."""
    found: dict[str, list[int]] = {}
    for values in read_committed(cluster, target, PARTITIONS):
        for word, count in (value.decode().split() for value in values):
            found.setdefault(word, []).append(int(count))
    return found


def is_counted(found: dict[str, list[int]]) -> bool:
    """Whether no word has a count that is lower than the true one."""
    return all(found.get(word, [0])[-1] >= count for word, count in TRUE_COUNTS.items())
