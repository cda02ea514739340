"""An application that counts words with a state store, in whatever library, and what must be so.

It is told on its input how many words to count ("count 40"), and says "waits" with another one at
hand, amid a transaction. It writes each count of a word as one record, "word 7".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from tests.clients.failing_cluster import PARTITIONS, FailingCluster
from tests.harness.confluent import read_committed
from tests.harness.dialogue import Dialogue
from tests.harness.wait import wait_until

LINES: Final = [f"all w{i % 3} w{i % 7} w{i % 11}" for i in range(150)]
_TRUE_COUNTS: Final = Counter(word for line in LINES for word in line.split())
_EXACT: Final = {word: list(range(1, count + 1)) for word, count in _TRUE_COUNTS.items()}
"""The counts of each word in the order of their offsets, when each word counts once."""
_STEP: Final = 30
"""So many words an instance counts between two failures."""
_REPEATED: Final = 100
"""As often each word may be counted again after failures, at the most."""
_WAIT_S: Final = 120.0


class Application:
    """Instances of an application, in a process each. Leaving it kills those that still run.

    :param command: What starts an instance, by its number.
    :param folder: For the logs of the processes.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        folder: Path,
        *,
        instances: int = 1,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._folder = folder
        self._env = env
        self._kills = 0
        self._processes = [ExitStack() for _ in range(instances)]
        self._instances = [self._begin(index) for index in range(instances)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.close()

    def count(self, words: int) -> None:
        """Let each instance count so many words more."""
        for each in self._instances:
            each.pending()
            each.say(f"count {words}")

    def waiting(self) -> int:
        """The first instance that waits amid a transaction."""

        def waits() -> list[int]:
            return [i for i, each in enumerate(self._instances) if "waits" in each.pending()]

        return wait_until("an instance has counted its words", waits, _WAIT_S)[0]

    def kill(self, index: int) -> None:
        """End an instance as ``kill -9`` does, and start it again."""
        self._processes[index].close()
        self._kills += 1
        self._instances[index] = self._begin(index)

    def end(self) -> None:
        """Let all instances end in order."""
        for each in self._instances:
            each.end()

    def _begin(self, index: int) -> Dialogue:
        log = self._folder / f"instance-{index}-{self._kills}.log"
        started = Dialogue(self._command(index), log, env=self._env)
        return self._processes[index].enter_context(started)


def check(
    failing: FailingCluster,
    application: Application,
    topics: tuple[str, str, str],
    seed: int,
    *,
    kills: int,
    exact: bool = True,
) -> None:
    """Let an application count all words amid failures, and look at what it has written.

    :param topics: The source, the target, and what is in the names of its other topics.
    :param kills: How often an instance is killed amid a transaction, each after a failure of the
        cluster.
    :param exact: Whether each word must count once; else once or more.
    :raises AssertionError: When a read_committed consumer gets other counts, with the failures.
    """
    _, target, _ = topics
    application.count(_STEP)
    application.waiting()
    disturbances = failing.disturbances(seed, *topics)
    try:
        for step in range(max(kills, 2)):
            application.count(_STEP)
            disturbances.next()
            waiting = application.waiting()
            if step < kills:
                application.kill(waiting)
        disturbances.mend()
        application.count(_TRUE_COUNTS.total() * _REPEATED)
        wait_until("all words count", lambda: _are_counted(_counts(failing, target)), _WAIT_S)
        application.end()
        counts = _counts(failing, target)
        assert counts == _EXACT if exact else _are_counted(counts)
    except AssertionError as error:
        error.add_note(f"after {disturbances.done}")
        raise
    finally:
        disturbances.mend()


def _are_counted(counts: Mapping[str, Sequence[int]]) -> bool:
    """Whether no word's last count is lower than the true one."""
    return all(counts.get(word, [0])[-1] >= count for word, count in _TRUE_COUNTS.items())


def _counts(failing: FailingCluster, target: str) -> dict[str, list[int]]:
    """What a read_committed consumer gets for each word, in the order of its partition."""
    found: dict[str, list[int]] = {}
    for values in read_committed(failing.cluster, target, PARTITIONS):
        for word, count in (value.decode().split() for value in values):
            found.setdefault(word, []).append(int(count))
    return found
