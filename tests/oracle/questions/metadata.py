"""Metadata: the fields of every version, and topics that are not there, or asked for oddly."""

from __future__ import annotations

from tests.harness.wire import Body
from tests.oracle.asking import NO_SUCH_ID, Broker, error_text, named

SECTION = "Metadata"


def ask(broker: Broker) -> None:
    topic, topic_id = broker.create("meta")
    for version in range(14):
        _fields(broker, topic, version)
    for version in (1, 4, 12):
        unknown = broker.metadata(version, named("nope"), AllowAutoTopicCreation=False)
        broker.row(SECTION, f"v{version} unknown topic, auto create off", _topics_text(unknown))
    _ids(broker, topic, topic_id)
    _names(broker)
    _combinations(broker, topic, topic_id)


def _fields(broker: Broker, topic: str, version: int) -> None:
    answer = broker.metadata(version, named(topic))
    entry = answer["Topics"][0]
    top = {k: v for k, v in answer.items() if k not in ("Topics", "Brokers", "ClusterId")}
    about = {k: v for k, v in entry.items() if k not in ("Partitions", "Name")}
    text = f"top={top} topic={about} p0={entry['Partitions'][0]}"
    broker.row(SECTION, f"v{version} one topic", text)


def _ids(broker: Broker, topic: str, topic_id: str) -> None:
    by_id = broker.metadata(12, named(None, topic_id))
    broker.row(SECTION, "v12 by topic id (name null)", _topics_text(by_id))
    unknown = broker.metadata(12, named(None, NO_SUCH_ID))
    broker.row(SECTION, "v12 unknown topic id", _topics_text(unknown))


def _names(broker: Broker) -> None:
    for request, name, create in (
        ('v12 invalid name "a b"', "a b", False),
        ('v12 invalid name "a b", allow auto create', "a b", True),
        ("v12 empty name", "", False),
    ):
        answer = broker.metadata(12, named(name), AllowAutoTopicCreation=create)
        broker.row(SECTION, request, _topics_text(answer))


def _combinations(broker: Broker, topic: str, topic_id: str) -> None:
    for request, asked in (
        ("v12 same topic twice", [named(topic), named(topic)]),
        ("v12 id AND name both set", [named(topic, topic_id)]),
        ("v12 zero id and null name", [named(None)]),
    ):
        broker.row(SECTION, request, _topics_text(broker.metadata(12, *asked)))


def _topics_text(answer: Body) -> str:
    shown = [
        (error_text(each["ErrorCode"]), each["Name"], each.get("TopicId"), len(each["Partitions"]))
        for each in answer["Topics"]
    ]
    return str(shown)
