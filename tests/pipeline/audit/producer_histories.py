"""A life of a cluster with producers and transactions, in which nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from tests.harness.batches import build, produce_body
from tests.pipeline.audit.log_histories import delete_records
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, Rig, rig
from tests.pipeline.audit.summaries import START_MS

_WAIT_S: Final = 30.0
_TIMEOUT_MS: Final = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersLived:
    """What it left when it was killed, and when it had been started again and stopped.

    Its topics have one partition on three brokers:

    - ``numbered``: three segments of idempotent producers, one after the other;
    - ``ledger``: transactions over three segments, each second one aborted, of which one begins in
      a segment and ends in the next; the last one is open when the cluster is killed;
    - ``other``: a part of each of these transactions;
    - ``compacted``: transactions, and compaction after them;
    - ``shortened``: transactions, whose log start lies within one;
    - ``tiered``: transactions, whose first segments are in the tier alone.
    """

    killed: Left
    stopped: Left


def live(place: Path) -> ProducersLived:
    with rig(place) as made:
        _numbered(made)
        _compacted(made)
        _shortened(made)
        _tiered(made)
        opened = _ledger(made)
        made.kill()
        del opened
        killed = made.left("killed")
        made.start()
        with transactions(made, "later") as producer:
            transact(producer, ["ledger", "other"], commit=False)
            transact(producer, ["ledger"], commit=True)
        send(made, "numbered", 9)
        made.stop()
        return ProducersLived(killed=killed, stopped=made.left("stopped"))


@contextmanager
def transactions(made: Rig, transactional_id: str) -> Iterator[Producer]:
    """A producer with a transactional id, three records to a batch."""
    producer = _producer(
        made, {"transactional.id": transactional_id, "transaction.timeout.ms": _TIMEOUT_MS}
    )
    producer.init_transactions(_WAIT_S)
    yield producer


def transact(
    producer: Producer, topics: Sequence[str], *, commit: bool | None, count: int = 6
) -> None:
    """A transaction with records in each topic; None leaves it open."""
    producer.begin_transaction()
    for topic in topics:
        _produce(producer, topic, count)
    if commit:
        producer.commit_transaction(_WAIT_S)
    elif commit is not None:
        producer.abort_transaction(_WAIT_S)


def send(made: Rig, topic: str, count: int) -> None:
    """Records of an idempotent producer of its own."""
    _produce(_producer(made, {"enable.idempotence": True}), topic, count)


def send_raw(
    made: Rig, topic: str, sequence: int, *, producer: int = 7, epoch: int = 0, attributes: int = 0
) -> int:
    """One batch of two records as it is said, with acks=all; its base offset."""
    records = [(START_MS, b"key", b"value"), (START_MS, b"key", b"value")]
    batch = build(
        records,
        attributes=attributes,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    cluster = made.served.cluster
    with cluster.connect(cluster.leader(topic)) as connection:
        answer = connection.call("Produce", 9, produce_body(topic, batch))
    entry: Any = answer["Responses"][0]["PartitionResponses"][0]
    assert entry["ErrorCode"] == 0, entry
    return int(entry["BaseOffset"])


def _producer(made: Rig, options: dict[str, Any]) -> Producer:
    return Producer(
        {
            "bootstrap.servers": made.served.bootstrap,
            "batch.num.messages": 3,
            "linger.ms": 200,
            "log_level": 0,
            **options,
        }
    )


def _produce(producer: Producer, topic: str, count: int) -> None:
    failed: list[object] = []
    for number in range(count):
        producer.produce(
            topic,
            b"value %d " % number * 10,
            b"key %d" % (number % 4),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(_WAIT_S) == 0
    assert not failed


def _numbered(made: Rig) -> None:
    made.create("numbered", **SMALL)
    for _ in range(2):
        send(made, "numbered", 12)
        made.about("numbered", "roll")
    send(made, "numbered", 9)


def _ledger(made: Rig) -> Producer:
    for topic in ("ledger", "other"):
        made.create(topic, **SMALL)
    with transactions(made, "books") as producer, transactions(made, "more") as second:
        for number in range(4):
            transact(producer, ["ledger", "other"], commit=number % 2 == 0)
            if number == 1:
                transact(second, ["ledger"], commit=None)
                made.about("ledger", "roll")
                transact(producer, ["ledger"], commit=False)
                second.abort_transaction(_WAIT_S)
        made.about("ledger", "roll")
        transact(producer, ["ledger"], commit=False)
        transact(producer, ["ledger", "other"], commit=None)
        return producer


def _compacted(made: Rig) -> None:
    made.create("compacted", cleanup_policy="compact", **SMALL)
    with transactions(made, "cleaner") as producer:
        for number in range(6):
            transact(producer, ["compacted"], commit=number % 3 != 1)
            if number % 2:
                made.about("compacted", "roll")
    send(made, "compacted", 9)
    made.about("compacted", "roll")
    made.about("compacted", "compact")
    with transactions(made, "cleaner") as producer:
        transact(producer, ["compacted"], commit=False)
    send(made, "compacted", 9)


def _shortened(made: Rig) -> None:
    made.create("shortened", **SMALL)
    with transactions(made, "shortener") as producer:
        for number in range(4):
            transact(producer, ["shortened"], commit=number % 2 == 1)
            made.about("shortened", "roll")
    delete_records(made, "shortened", 9)


def _tiered(made: Rig) -> None:
    made.create("tiered", **TIERED)
    with transactions(made, "archive") as producer, transactions(made, "archive too") as second:
        for number in range(3):
            transact(producer, ["tiered"], commit=number == 1)
            transact(second, ["tiered"], commit=None)
            made.about("tiered", "roll")
            second.abort_transaction(_WAIT_S)
            transact(producer, ["tiered"], commit=False)
    made.about("tiered", "tier", action="upload")
    made.about("tiered", "tier", action="delete-local")
