"""Topics that a cleaner has been over on some of their brokers, on others not."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from tests.pipeline.audit.producer_histories import transact, transactions
from tests.pipeline.audit.rigs import SMALL, Left, Rig, rig

TOPICS: Final = ("plain", "deleted", "transactional")
KEYS: Final = 7
_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What the cluster left each time that it was stopped.

    - ``plain``: keys that are overwritten;
    - ``deleted``: the same, and tombstones whose time is over as soon as they are cleaned;
    - ``transactional``: transactions that were committed, aborted, and one that is open.
    """

    before: Left
    """No cleaner was there."""
    after: Left
    """A cleaner was there twice, on all brokers, and more was written."""

    def mixed(self, to: Path) -> Left:
        """The same records: cleaned on brokers 1 and 3, and not on broker 2."""
        left = self.after.copy(to)
        of_broker = left.place / "data" / "broker-2"
        shutil.rmtree(of_broker)
        shutil.copytree(self.before.place / "data" / "broker-2", of_broker)
        return left


def compact(place: Path) -> Compacted:
    """Write, stop, clean and stop again."""
    with rig(place) as made:
        for topic in TOPICS:
            made.create(topic, cleanup_policy="compact", delete_retention_ms="0", **SMALL)
        for number in range(3):
            made.produce("plain", 30, keys=KEYS)
            _delete(made, number)
            with transactions(made, f"writer {number}") as producer:
                for each in (True, False, True):
                    transact(producer, ["transactional"], commit=each)
            for topic in TOPICS:
                made.about(topic, "roll")
        with transactions(made, "open") as producer:
            transact(producer, ["transactional"], commit=None)
            producer.flush(_WAIT_S)
            made.about("transactional", "roll")
            made.produce("transactional", 6, keys=KEYS)
            made.stop()
        before = made.left("before")
        made.start()
        for _ in range(2):
            for topic in TOPICS:
                made.about(topic, "compact")
        made.stop()
        return Compacted(before=before, after=made.left("after"))


def _delete(made: Rig, number: int) -> None:
    """Write each key, and delete every other one."""
    producer = Producer(
        {
            "bootstrap.servers": made.served.bootstrap,
            "batch.num.messages": 3,
            "linger.ms": 1000,
            "log_level": 0,
        }
    )
    for key in range(KEYS):
        producer.produce("deleted", b"value %d " % number * 10, b"key %d" % key)
    for key in range(number % 2, KEYS, 2):
        producer.produce("deleted", None, b"key %d" % key)
    assert producer.flush(_WAIT_S) == 0
