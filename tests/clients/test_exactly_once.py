"""An application copies a topic in transactions while its cluster and itself fail: each record
arrives once.

Every other seed has its cluster in files. The application is killed (``kill -9``) and started
again, or it is thought to be dead, and fenced by another. It is also started again where a
coordinator that was replaced without knowing it has fenced it: such a one takes any epoch but the
last that it knows for an old one, at a real Kafka too.

``FENCEPOST_EXACTLY_ONCE_SEEDS=100`` is the whole proof.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.clients.disturbances import Disturbances
from tests.harness.confluent import delivered, read_committed, send
from tests.harness.control_client import Control
from tests.harness.dialogue import Dialogue
from tests.harness.java import story_command
from tests.harness.served_cluster import Cluster, configs, serving, unique

CLIENTS: Final = ["librdkafka", "java"]
SEEDS: Final = range(int(os.environ.get("FENCEPOST_EXACTLY_ONCE_SEEDS", "1")))
PARTITIONS: Final = 3
STEPS: Final = 2 if len(SEEDS) == 1 else 5
"""So often something goes wrong, before the application is replaced and after it."""
ZOMBIE_S: Final = 20.0
"""How long a broker is left alone that does not know what the controller decides."""
VALUES: Final = [b"%d" % number for number in range(600)]
STATE_TOPICS: Final = ("__transaction_state", "__consumer_offsets")
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    # No transaction is aborted because it takes long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Cluster]]:
    """One in files, and one in memory, each from its first use on."""
    folder = tmp_path_factory.mktemp("exactly-once")
    with ExitStack() as stack:

        @cache
        def started(is_in_files: bool) -> Cluster:
            name = "files" if is_in_files else "memory"
            files = ["--data-dir", str(folder / "data")] if is_in_files else []
            return stack.enter_context(serving(folder / f"{name}.log", *files, *configs(SETTINGS)))

        yield started


@pytest.fixture
def served(clusters: Callable[[bool], Cluster], seed: int) -> Cluster:
    return clusters(seed % 2 == 0)


@pytest.fixture
def control(served: Cluster) -> Iterator[Control]:
    assert served.control is not None
    with closing(Control(served.control)) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_record_is_copied_once(
    served: Cluster, control: Control, client: str, seed: int, tmp_path: Path
) -> None:
    source, target = (served.create_topic(n, partitions=PARTITIONS) for n in ("source", "target"))
    assert delivered(send(served, source, VALUES, partitions=PARTITIONS))
    arguments = [served.bootstrap, source, target, str(len(VALUES)), unique("copier")]
    if client == "java":
        command = story_command("CopierStory", *arguments)
    else:
        command = [sys.executable, str(Path(__file__).with_name("copier.py")), *arguments]
    topics = {source: PARTITIONS, target: PARTITIONS, **dict.fromkeys(STATE_TOPICS, 1)}
    disturbances = Disturbances(control, topics, seed)
    dies = (seed // 2 + CLIENTS.index(client)) % 2 == 0
    with ExitStack() as processes:

        def start() -> Dialogue:
            log = tmp_path / f"copier-{next(numbers)}.log"
            return processes.enter_context(Dialogue(command, log))

        numbers = count(1)
        first = start()
        assert first.ask("copy 1") == "copied"
        first = disturb(first, disturbances, start)
        if dies:
            first.say("copy 8")  # not all: a consumer that reads nothing knows no position
            disturbances.next()
            first.kill()
            disturbances.mend()
        else:
            first.say("copy 4")
        second = start()
        assert second.ask("copy 4") == "copied"
        if not dies and first.hear_until(lambda _: True) == ["copied"]:
            assert first.ask("copy 1") == "fenced"
        second = disturb(second, disturbances, start)
        assert second.ask(f"copy {len(VALUES)}") == "copied"
    copied = read_committed(served, target, PARTITIONS)
    assert copied == [VALUES[index::PARTITIONS] for index in range(PARTITIONS)], disturbances.done


def disturb(
    copier: Dialogue, disturbances: Disturbances, start: Callable[[], Dialogue]
) -> Dialogue:
    """One thing after the other goes wrong while it copies, and it copies on.

    :param start: Starts the application again.
    :returns: The one that runs.
    """
    try:
        for _ in range(STEPS):
            copier.say("copy 4")
            disturbances.next()
            has_zombie = disturbances.has_zombie
            while (answer := heard(copier, disturbances)) == ["fenced"] and has_zombie:
                copier.kill()
                copier = start()
                copier.say("copy 4")
            assert answer == ["copied"], disturbances.done
    finally:
        disturbances.mend()
    return copier


def heard(copier: Dialogue, disturbances: Disturbances) -> list[str]:
    """Its next line. A coordinator that was replaced without knowing it cannot complete what it has
    decided, and answers CONCURRENT_TRANSACTIONS until it is mended, at a real Kafka too.
    """
    if disturbances.has_zombie:
        with suppress(AssertionError):
            return copier.hear_until(lambda _: True, ZOMBIE_S)
        disturbances.mend()
    return copier.hear_until(lambda _: True)
