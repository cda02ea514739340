"""Each response equals the one that Apache Kafka 4.3.1 gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.driver import Asked, Driver
from tests.broker.groups.scripts import ALL
from tests.broker.groups.talk import (
    TOPIC_IDS,
    TOPICS,
    Answered,
    Message,
    Names,
    Script,
    Step,
    as_json,
)

ANSWERS: Final = Path(__file__).with_name("answers.jsonl")
UNORDERED: Final = {"groups", "topics", "results", "partitions", "members"}
"""Lists that Kafka sends in the order of its hash tables, by API."""
UNORDERED_IN: Final = {
    "offset_fetch",
    "list_groups",
    "offset_delete",
    "delete_groups",
    "join_group",
}


def recorded(conversation: str) -> list[Message]:
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    return [row["answer"] for row in rows if row["in"] == conversation]


def begin(driver: Driver) -> Names:
    """The topics, ``__consumer_offsets``, and the values of the names."""
    names = Names()
    names.learn("$host", "broker-1")
    names.learn("$client", "/192.0.2.1")
    for name in TOPICS:
        topic = NewTopic(name=name, partitions=2, replication_factor=1, configs={})
        names.topic_ids[TOPIC_IDS[name]] = driver.cluster.controller.create_topic(topic).topic_id
    driver.ask(1, "find_coordinator", 0, FindCoordinatorRequest(key="g"))
    return names


def hold(driver: Driver, script: Script, names: Names) -> list[Message]:
    """Every answer of a conversation."""
    parked: dict[str, Asked] = {}
    answers = []
    for step in script:
        if isinstance(step, Step):
            request = names.fill_in(step.request)
            asked = driver.send(1, step.api, step.version, request, step.client_id)
            if step.parks:
                assert not asked.done, f"{step} is answered at once: {asked.response}"
                parked[step.on] = asked
                continue
        else:
            asked = parked.pop(step.on)
        assert asked.done, f"{step} waits"
        if step.learn is not None:
            names.learn(step.learn, asked.response.member_id)
        answers.append(names.take_out(asked.response))
    return answers


def answered(script: Script) -> list[str]:
    """The API of each response."""
    parked: dict[str, Step] = {}
    asked = []
    for step in script:
        if isinstance(step, Answered):
            asked.append(parked.pop(step.on).api)
        elif step.parks:
            parked[step.on] = step
        else:
            asked.append(step.api)
    return asked


def sorted_lists(value: Message) -> Message:
    if isinstance(value, dict):
        return {
            key: sorted(map(sorted_lists, each), key=json.dumps)
            if key in UNORDERED
            else sorted_lists(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [sorted_lists(each) for each in value]
    return value


@pytest.mark.parametrize("name", ALL)
def test_answers_are_those_of_kafka(name: str) -> None:
    script = ALL[name]()
    driver = Driver(1, {"offsets.topic.num.partitions": "1"})
    names = begin(driver)
    ours = [as_json(answer) for answer in hold(driver, script, names)]
    kafkas = recorded(name)
    assert len(ours) == len(kafkas)
    for index, (api, our, kafka) in enumerate(zip(answered(script), ours, kafkas, strict=True)):
        put = sorted_lists if api in UNORDERED_IN else as_it_is
        assert put(our) == put(kafka), f"answer {index} of {name}, to {api}"


def as_it_is(value: Message) -> Message:
    return value
