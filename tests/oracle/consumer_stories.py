"""A log that an unclean election truncates, and what its consumers are told (KIP-320).

The same story is told to a real Kafka and to fencepost, and in each of them to Kafka's own consumer
and to `fencepost.client.Consumer`. Of the two replicas one falls out of the ISR. The other appends
alone, and dies; the late one is elected all the same, appends other records, and the first comes
back and leads again, cleanly. The lines are those of tests/clients/consumer_program.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.harness import batches, java
from tests.harness.dialogue import Dialogue
from tests.harness.served_cluster import Cluster
from tests.harness.typed_client import BlockingClient
from tests.harness.wait import wait_until
from tests.oracle.asker import RETAINED, Asker
from tests.oracle.asking import T
from tests.oracle.questions.elections import UNCLEAN
from tests.oracle.steering import Steering

PROGRAM: Final = Path(__file__).parents[1] / "clients" / "consumer_program.py"
CONSUMERS: Final = ("java", "fencepost")
READ_S: Final = 120.0
"""For one line: a consumer may have to wait until requests to a dead broker time out."""

Line = tuple[str, str]
"""A line that is said to a consumer, and its answer. ``{kind}`` is which consumer it is."""

BEFORE: Final[Sequence[Line]] = (
    # Consumers that go on fetching.
    ("none new none", "done"),
    ("none seek 0", "done"),
    ("none read 20", "a0 at 0, epoch 0 to b19 at 19, epoch 0"),
    ("none position", "at 20"),
    ("earliest new earliest", "done"),
    ("earliest read 20", "a0 at 0, epoch 0 to b19 at 19, epoch 0"),
    ("latest new latest", "done"),
    ("latest seek 0", "done"),
    ("latest read 20", "a0 at 0, epoch 0 to b19 at 19, epoch 0"),
    # Consumers that commit and go away.
    ("member new earliest {kind}", "done"),
    ("member read 20", "a0 at 0, epoch 0 to b19 at 19, epoch 0"),
    ("member commit", "20, epoch 0"),
    ("none time {T+12}", "12, epoch 0"),
    ("none ends", "0 to 20"),
    # A position of a lookup has no epoch.
    ("end new latest {kind}-end", "done"),
    ("end position", "at 20"),
    ("end commit", "20, epoch -1"),
)
"""b10 to b19 are on the first broker alone."""

AFTER: Final[Sequence[Line]] = (
    # While fetching.
    ("none read 1", "truncated at 20, diverges at 10, epoch 0"),
    ("none read 1", "truncated at 20, diverges at 10, epoch 0"),
    ("none position", "truncated at 20, diverges at 10, epoch 0"),
    ("none seek 10 0", "done"),
    ("none read 25", "c10 at 10, epoch 2 to c34 at 34, epoch 2"),
    ("earliest read 25", "c10 at 10, epoch 2 to c34 at 34, epoch 2"),
    ("earliest position", "at 35"),
    ("latest read 25", "c10 at 10, epoch 2 to c34 at 34, epoch 2"),
    # While away.
    ("member-none new none {kind}", "done"),
    ("member-none read 1", "truncated at 20, diverges at 10, epoch 0"),
    ("member-earliest new earliest {kind}", "done"),
    ("member-earliest read 25", "c10 at 10, epoch 2 to c34 at 34, epoch 2"),
    ("member-earliest commit", "35, epoch 2"),
    ("member-latest new latest {kind}", "done"),
    ("member-latest position", "at 35"),
    # Without an epoch in the commit the records in between are missed.
    ("end-none new none {kind}-end", "done"),
    ("end-none read 1", "c20 at 20, epoch 2 to c20 at 20, epoch 2"),
    # After a seek.
    ("seek new none", "done"),
    ("seek seek 15 0", "done"),
    ("seek read 1", "truncated at 15, diverges at 10, epoch 0"),
    ("seek seek 15", "done"),
    ("seek read 1", "c15 at 15, epoch 2 to c15 at 15, epoch 2"),
    ("seek seek 8 0", "done"),
    ("seek read 3", "a8 at 8, epoch 0 to c10 at 10, epoch 2"),
    ("seek seek 20 2", "done"),
    ("seek read 1", "c20 at 20, epoch 2 to c20 at 20, epoch 2"),
    ("seek-latest new latest", "done"),
    ("seek-latest seek 15 0", "done"),
    ("seek-latest read 1", "c10 at 10, epoch 2 to c10 at 10, epoch 2"),
    # Out of range, and nothing to begin from.
    ("seek seek 99", "done"),
    ("seek read 1", "out of range at 99"),
    ("seek read 1", "out of range at 99"),
    ("seek-latest seek 99", "done"),
    ("seek-latest position", "at 99"),
    ("seek-earliest new earliest", "done"),
    ("seek-earliest seek 99", "done"),
    ("seek-earliest read 1", "a0 at 0, epoch 0 to a0 at 0, epoch 0"),
    ("nothing new none", "done"),
    ("nothing read 1", "no offset"),
    # By time: the records that were appended first are of 2023.
    ("month new by_duration:P30D", "done"),
    ("month read 1", "c10 at 10, epoch 2 to c10 at 10, epoch 2"),
    ("ages new by_duration:P7000D", "done"),
    ("ages position", "at 0"),
    ("none time {T+5}", "5, epoch 0"),
    ("none time {T+12}", "10, epoch 2"),
    ("none time 4000000000000", "nothing"),
    ("none ends", "0 to 35"),
)
"""c10 to c34 have taken their place."""

CLEAN: Final[Sequence[Line]] = (
    ("none read 1", "d35 at 35, epoch 3 to d35 at 35, epoch 3"),
    ("earliest read 1", "d35 at 35, epoch 3 to d35 at 35, epoch 3"),
    ("member-clean new none {kind}", "done"),
    ("member-clean read 1", "d35 at 35, epoch 3 to d35 at 35, epoch 3"),
)
"""The first has come back, and leads again: nothing is lost."""
STORY: Final = (*BEFORE, *AFTER, *CLEAN)


def tell(cluster: Cluster, steering: Steering, folder: Path) -> dict[str, list[Line]]:
    """The story on a fresh cluster of three brokers: what each consumer answered.

    :param folder: For the logs of the consumers.
    """
    asker = Asker(cluster, steering)
    try:
        late = max(asker.freezable())
        first, bystander = sorted(asker.alive - {late})
        wait_until("there are coordinators", lambda: _has_coordinators(cluster), 60)
        topic, _ = asker.create("stories", RETAINED, [first, late])
        append(asker, topic, "a", range(10), T)
        asker.freeze(late)
        wait_until("it is out of the ISR", lambda: _in_sync(asker, topic) == [first])
        append(asker, topic, "b", range(10, 20), T)
        # The late one does not answer while it is frozen.
        others = (asker.addresses[first], asker.addresses[bystander])
        bootstrap = ",".join(f"{host}:{port}" for host, port in others)
        with consumers(bootstrap, topic, folder) as told:
            answers = {kind: say(each, kind, BEFORE) for kind, each in told.items()}
            _elect_uncleanly(asker, topic, first=first, late=late, bystander=bystander)
            append(asker, topic, "c", range(10, 35), round(time.time() * 1000))
            for kind, each in told.items():
                answers[kind] += say(each, kind, AFTER)
            asker.start(first)
            wait_until("both are in sync", lambda: len(_in_sync(asker, topic)) == 2, 60)
            asker.move_leader(topic, first)
            append(asker, topic, "d", range(35, 36), T)
            for kind, each in told.items():
                answers[kind] += say(each, kind, CLEAN)
                each.end()
    finally:
        asker.close()
    return answers


@contextmanager
def consumers(bootstrap: str, topic: str, folder: Path) -> Iterator[dict[str, Dialogue]]:
    """One program of each kind."""
    of_java = java.story_command("ConsumerStory", bootstrap, topic)
    own = [sys.executable, str(PROGRAM), bootstrap, topic]
    with (
        Dialogue(of_java, folder / "java.log") as first,
        Dialogue(own, folder / "consumer.log") as second,
    ):
        programs = dict(zip(CONSUMERS, (first, second), strict=True))
        for each in programs.values():
            each.hear_until("ready")
        yield programs


def say(program: Dialogue, kind: str, lines: Sequence[Line]) -> list[Line]:
    """Say lines one by one; each with what was answered."""
    return [(line, program.ask(_fill(line, kind), READ_S)) for line, _ in lines]


def _fill(line: str, kind: str) -> str:
    for after in (5, 12):
        line = line.replace(f"{{T+{after}}}", str(T + after))
    return line.replace("{kind}", kind)


def append(asker: Asker, topic: str, prefix: str, numbers: range, start: int) -> None:
    """A record of each number, in batches of one; their times are milliseconds apart."""
    for each in numbers:
        asker.produce(
            topic, batches.build([(start + each, b"k", b"%s%d" % (prefix.encode(), each))])
        )


def _has_coordinators(cluster: Cluster) -> bool:
    """Whether committed offsets are on all three brokers; the first question has them put there."""
    client = BlockingClient(cluster.addresses[0])
    request = FindCoordinatorRequest(coordinator_keys=("g",))
    (found,) = client.ask("find_coordinator", 4, request).coordinators
    client.close()
    return bool(found.error_code == ErrorCode.NONE)


def _elect_uncleanly(asker: Asker, topic: str, *, first: int, late: int, bystander: int) -> None:
    asker.facing = bystander
    asker.kill(first)
    asker.thaw(late)
    wait_until("no leader", lambda: _leader(asker, topic) == -1)
    asked = [{"Topic": topic, "Partitions": [0]}]
    body = {"ElectionType": UNCLEAN, "TopicPartitions": asked}

    def elected() -> bool:
        answer = asker.connection.call("ElectLeaders", 2, body)
        result = answer["ReplicaElectionResults"][0]["PartitionResult"][0]
        no_candidate = 83  # it may not be counted among the living yet
        assert result["ErrorCode"] in {0, no_candidate}, result
        return bool(result["ErrorCode"] == 0)

    wait_until("the late one is elected", elected)
    asker.facing = asker.wait_until_served(topic, late)


def _leader(asker: Asker, topic: str) -> int | None:
    found = asker.partition(topic)
    return None if found is None else int(found["LeaderId"])


def _in_sync(asker: Asker, topic: str) -> list[int]:
    found = asker.partition(topic)
    return [] if found is None else list(found["IsrNodes"])
