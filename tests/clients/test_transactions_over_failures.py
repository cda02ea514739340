"""Transactions of five clients, over fencing, timeouts, elections and the end of the process.

The cluster keeps its logs in files. One client after the other does the same.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache, partial
from typing import Final

import pytest

from tests.clients.transactors import (
    CLIENTS,
    RefusedError,
    Start,
    Transactor,
    closing_after,
    starting,
)
from tests.harness.confluent import read_committed
from tests.harness.control_client import Control
from tests.harness.durable_cluster import DurableCluster
from tests.harness.served_cluster import configs, unique
from tests.harness.wait import wait_until

STATE: Final = "__transaction_state"
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}
TIMEOUT_MS: Final = 60_000

FENCED: Final = {
    "confluent-kafka": "_FENCED",
    "aiokafka": "ProducerFenced",
    "kafka-python": "ProducerFencedError",
    "java": "ProducerFencedException",
    "franz-go": "PRODUCER_FENCED",
}
"""What each client calls it that another has its transactional id."""

TIMED_OUT: Final = FENCED | {"java": "InvalidTxnStateException", "franz-go": "INVALID_TXN_STATE"}
"""What it calls it that its transaction was aborted. Under version 2 of transactions the abort has
raised the epoch once, as the producer's own end would: the coordinator takes the commit for a
repeated one, of a transaction that was aborted. The other clients go by version 1.
"""


pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""kafka-python leaves its sockets to the garbage collector, one for each connection it tries."""


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableCluster]:
    folder = tmp_path_factory.mktemp("transactions")
    made = DurableCluster(folder / "data", folder / "fencepost.log", options=configs(SETTINGS))
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def starts(
    served: DurableCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Start]]:
    """What starts producers, by clients; these are closed while the cluster is there."""
    with ExitStack() as stack:
        yield cache(
            lambda client: stack.enter_context(starting(client, tmp_path_factory.mktemp(client)))
        )


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def start(client: str, starts: Callable[[str], Start]) -> Iterator[Start]:
    """Its producers are closed after the test."""
    with closing_after(starts(client)) as made:
        yield made


@pytest.fixture
def control(served: DurableCluster) -> Iterator[Control]:
    url = served.cluster.control
    assert url is not None
    with closing(Control(url)) as made:
        yield made


def read(served: DurableCluster, topic: str) -> list[bytes]:
    return read_committed(served.cluster, topic)[0]


def move(control: Control, topic: str) -> None:
    """Elect a follower of partition 0."""
    found = control.partition(topic)
    control.elect(topic, next(each for each in found["isr"] if each != found["leader"]))


def test_a_zombie_is_fenced_and_what_it_wrote_is_aborted(
    start: Start, served: DurableCluster, client: str
) -> None:
    topic, name = served.cluster.create_topic("zombie"), unique("zombie")
    zombie = start(served.bootstrap, name, TIMEOUT_MS)
    zombie.begin()
    zombie.send(topic, "zombie")
    successor = start(served.bootstrap, name, TIMEOUT_MS)
    with pytest.raises(RefusedError, match=f"^{FENCED[client]}$"):
        zombie.commit()
    successor.begin()
    successor.send(topic, "successor")
    successor.commit()
    assert read(served, topic) == [b"successor"]


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    start: Start, served: DurableCluster, client: str, control: Control
) -> None:
    topic, name = served.cluster.create_topic("slow"), unique("slow")
    slow = start(served.bootstrap, name, 1000)
    slow.begin()
    slow.send(topic, "late")
    wait_until("it is aborted", lambda: control.transaction(name)["state"] == "CompleteAbort")
    with pytest.raises(RefusedError) as refused:
        slow.commit()
    assert str(refused.value) == TIMED_OUT[client]
    assert read(served, topic) == []


def test_what_is_committed_is_read_over_elections_and_what_is_aborted_or_open_is_not(
    start: Start, served: DurableCluster, control: Control
) -> None:
    topic = served.cluster.create_topic("elections")
    writer = start(served.bootstrap, unique("elections"), TIMEOUT_MS)
    elect_leader, elect_coordinator = partial(move, control, topic), partial(move, control, STATE)
    for number, elect in enumerate((elect_leader, elect_coordinator)):
        writer.begin()
        writer.send(topic, f"before-{number}")
        elect()
        writer.send(topic, f"after-{number}")
        writer.commit()
        writer.begin()
        writer.send(topic, f"aborted-{number}")
        elect()
        writer.abort()
    writer.begin()
    writer.send(topic, "open")
    expected = [b"before-0", b"after-0", b"before-1", b"after-1"]
    assert read(served, topic) == expected


def test_transactions_outlive_the_process(
    starts: Callable[[str], Start], served: DurableCluster
) -> None:
    # kafka-python keeps a socket for each connection that it tries meanwhile: hundreds.
    clients = [client for client in CLIENTS if client != "kafka-python"]
    with ExitStack() as stack:
        writers: dict[str, Transactor] = {}
        for client in clients:
            start = stack.enter_context(closing_after(starts(client)))
            topic = served.cluster.create_topic(client)
            writers[topic] = start(served.bootstrap, unique(client), TIMEOUT_MS)
        for topic, writer in writers.items():
            writer.begin()
            writer.send(topic, "before")
        served.kill()
        served.start()
        for topic, writer in writers.items():
            writer.send(topic, "after")
            writer.commit()
            assert read(served, topic) == [b"before", b"after"]
