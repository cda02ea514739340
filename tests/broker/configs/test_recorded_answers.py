"""fencepost's handlers answer what Apache Kafka 4.3.1 answered, or differ on purpose."""

from __future__ import annotations

import json

import pytest

from fencepost.broker.configs.config_table import FENCEPOST_CONFIGS, data_file, read_sections
from tests.broker.configs import recorded_answers
from tests.harness.fake_broker import FakeBroker, broker

STATIC = {
    # What the real broker was started with.
    "advertised.listeners": "PLAINTEXT://127.0.0.1:21192",
    "auto.create.topics.enable": "false",
    "broker.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:21193",
    "group.initial.rebalance.delay.ms": "0",
    "inter.broker.listener.name": "PLAINTEXT",
    "listeners": "PLAINTEXT://127.0.0.1:21192,CONTROLLER://127.0.0.1:21193",
    "log.dirs": "somewhere",
    "node.id": "1",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "process.roles": "broker,controller",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}

OWN = {name for rows in read_sections(data_file(FENCEPOST_CONFIGS)).values() for name in rows}


@pytest.fixture(scope="module")
def replayed() -> list[tuple[str, recorded_answers.Answer, recorded_answers.Answer]]:
    """Every question as JSON, Kafka's answer, fencepost's."""
    asked = _like_the_real_one()
    return [
        (
            json.dumps(question),
            answer,
            _plain(_without_own(question, recorded_answers.ask(asked.ask, question))),
        )
        for question, answer in recorded_answers.recorded()
    ]


def test_answers_as_kafka_does_where_it_does_not_differ_on_purpose(
    replayed: list[tuple[str, recorded_answers.Answer, recorded_answers.Answer]],
) -> None:
    differences = recorded_answers.differences()
    wrong = [
        f"{question}\n  want {differences.get(question, kafka)}\n  got  {ours}"
        for question, kafka, ours in replayed
        if ours != differences.get(question, kafka)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_difference_is_one(
    replayed: list[tuple[str, recorded_answers.Answer, recorded_answers.Answer]],
) -> None:
    same = {question for question, kafka, ours in replayed if kafka == ours}
    asked = {question for question, _, _ in replayed}
    assert not same & recorded_answers.differences().keys()
    assert recorded_answers.differences().keys() <= asked


def _like_the_real_one() -> FakeBroker:
    started = broker(STATIC, apache=True)
    for topic, configs in recorded_answers.TOPICS.items():
        started.create(topic, configs)
    # Kafka sets it when it formats a cluster with eligible leader replicas (KIP-966).
    started.controller.set_broker_configs(None, {"min.insync.replicas": "1"})
    return started


def _without_own(
    question: recorded_answers.Question, answer: recorded_answers.Answer
) -> recorded_answers.Answer:
    """A description without the configs that only fencepost has."""
    if question[0] != "describe":
        return answer
    return [
        [code, message, [entry for entry in entries if entry[0] not in OWN]]
        for code, message, entries in answer
    ]


def _plain(answer: recorded_answers.Answer) -> recorded_answers.Answer:
    plain: recorded_answers.Answer = json.loads(json.dumps(answer))
    return plain
