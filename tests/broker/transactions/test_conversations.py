"""Each answer, and each record of the log, equals that of Apache Kafka 4.3.1."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.broker.groups.talk import TOPICS, Message
from tests.broker.transactions.conversations import ALL
from tests.broker.transactions.talk import Talk
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

CONFIGS: Final = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
ANSWERS: Final = Path(__file__).with_name("answers.jsonl")


class Driven:
    """A driver of one broker, as conversations ask it."""

    def __init__(self) -> None:
        self.driver = Driver(1, CONFIGS)

    def ask(self, broker_id: int, api_name: str, version: int, request: Message) -> Message:
        return self.driver.ask(broker_id, api_name, version, request)

    def create(self, topic: str) -> None:
        create(self.driver, topic, [[1], [1]])


def recorded(conversation: str) -> list[Message]:
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    return [row["row"] for row in rows if row["in"] == conversation]


def raise_epoch(driver: Driver, transactional_id: str, epoch: int) -> None:
    """At once, by a record of the coordinator."""
    shard = driver.broker(1).transactions.runtime.shards[0]
    metadata = replace(shard.latest.transactions[transactional_id], producer_epoch=epoch)
    shard.change(transactional_id, metadata, lambda _error: None)
    driver.cluster.scheduler.run_due()


@pytest.mark.parametrize("name", ALL)
def test_the_coordinator_says_and_writes_what_kafka_does(name: str) -> None:
    driven = Driven()
    driver = driven.driver
    for topic in TOPICS:
        driven.create(topic)
    Producer(driver, "any").init()  # as the recording does: no producer id is 0, a default
    talk = Talk(driven, lambda: driver.advance(100), partial(raise_epoch, driver), f"{name}-")
    ALL[name](talk)
    talk.write_log()
    found = json.loads(json.dumps(talk.rows))
    for place, (ours, kafkas) in enumerate(zip(found, recorded(name), strict=False)):
        assert ours == kafkas, f"row {place} of {name}"
    assert len(found) == len(recorded(name))
