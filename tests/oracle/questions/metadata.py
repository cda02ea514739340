"""Metadata: the fields of every version, and topics that are not there, or asked for oddly."""

from __future__ import annotations

from tests.harness.wire import Body
from tests.oracle.asker import Asker
from tests.oracle.asking import NO_SUCH_ID, error_text, named

SECTION = "Metadata"


def ask(asker: Asker) -> None:
    topic, topic_id = asker.create("meta")
    for version in range(14):
        _fields(asker, topic, version)
    for version in (1, 4, 12):
        unknown = asker.metadata(version, named("nope"), AllowAutoTopicCreation=False)
        asker.row(SECTION, f"v{version} unknown topic, auto create off", _topics_text(unknown))
    _ids(asker, topic, topic_id)
    _names(asker)
    _combinations(asker, topic, topic_id)


def _fields(asker: Asker, topic: str, version: int) -> None:
    answer = asker.metadata(version, named(topic))
    entry = answer["Topics"][0]
    top = {k: v for k, v in answer.items() if k not in ("Topics", "Brokers", "ClusterId")}
    about = {k: v for k, v in entry.items() if k not in ("Partitions", "Name")}
    text = f"top={top} topic={about} p0={entry['Partitions'][0]}"
    asker.row(SECTION, f"v{version} one topic", text)


def _ids(asker: Asker, topic: str, topic_id: str) -> None:
    by_id = asker.metadata(12, named(None, topic_id))
    asker.row(SECTION, "v12 by topic id (name null)", _topics_text(by_id))
    unknown = asker.metadata(12, named(None, NO_SUCH_ID))
    asker.row(SECTION, "v12 unknown topic id", _topics_text(unknown))


def _names(asker: Asker) -> None:
    for request, name, create in (
        ('v12 invalid name "a b"', "a b", False),
        ('v12 invalid name "a b", allow auto create', "a b", True),
        ("v12 empty name", "", False),
    ):
        answer = asker.metadata(12, named(name), AllowAutoTopicCreation=create)
        asker.row(SECTION, request, _topics_text(answer))


def _combinations(asker: Asker, topic: str, topic_id: str) -> None:
    for request, asked in (
        ("v12 same topic twice", [named(topic), named(topic)]),
        ("v12 id AND name both set", [named(topic, topic_id)]),
        ("v12 zero id and null name", [named(None)]),
    ):
        asker.row(SECTION, request, _topics_text(asker.metadata(12, *asked)))


def _topics_text(answer: Body) -> str:
    shown = [
        (error_text(each["ErrorCode"]), each["Name"], each.get("TopicId"), len(each["Partitions"]))
        for each in answer["Topics"]
    ]
    return str(shown)
