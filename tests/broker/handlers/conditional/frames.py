"""Produce by raw frames, on a cluster without sockets.

Requests are written and answers read by `tests.harness.wire`, not by the codec of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.broker.core.outcomes import HangUp
from fencepost.protocol import codec
from fencepost.protocol.apis import BY_NAME
from tests.harness import wire
from tests.harness.driver import Driver, Message
from tests.harness.wire import ZERO_UUID, Body

VERSIONS: Final = range(3, 14)
"""Of Produce, those that are served."""
NEWEST: Final = VERSIONS[-1]
_API: Final = BY_NAME["produce"]

Parts = Sequence[tuple[str, bytes | bytearray | None]]
"""Partitions as ``t-0``, each with the bytes of its records; one may be there twice."""
Answers = list[tuple[str, Body]]
"""Partitions as ``t-0``, each with its part of an answer, in the answer's order."""


class Asked:
    """A request that was sent."""

    def __init__(self, version: int, names: Mapping[str, str]) -> None:
        self.version = version
        self.done = False
        self.hung_up = False
        self._names = names
        self._body: Body | None = None

    def take(self, answer: Message) -> None:
        """What the handler answers, as bytes of which only the layout is known."""
        assert not self.done, "answered twice"
        self.done = True
        if isinstance(answer, HangUp):
            self.hung_up = True
        elif answer is not None:
            sent = b"".join(codec.encode_response(_API, self.version, 1, answer))
            _, self._body = wire.decode_answer("Produce", self.version, sent[4:])

    @property
    def body(self) -> Body:
        assert self.done, "no answer yet"
        assert self._body is not None, "answered without a byte"
        return self._body

    @property
    def silent(self) -> bool:
        """Whether it was answered without a byte, and the connection lives."""
        return self.done and not self.hung_up and self._body is None

    @property
    def answers(self) -> Answers:
        """The answer by partition."""
        return [
            (f"{self._name(topic)}-{part['Index']}", part)
            for topic in self.body["Responses"]
            for part in topic["PartitionResponses"]
        ]

    def _name(self, topic: Body) -> str:
        return topic["Name"] if "Name" in topic else self._names[topic["TopicId"]]


def send(
    driver: Driver,
    parts: Parts,
    *,
    broker_id: int = 1,
    version: int = NEWEST,
    acks: int = -1,
    timeout_ms: int = 1000,
) -> Asked:
    """Send a request; all that is due happens before this returns."""
    known = driver.cluster.controller.image.topics
    ids = {name: found.topic_id.hex for name, found in known.items()}
    asked = Asked(version, {topic_id: name for name, topic_id in ids.items()})
    # Names and ids: each version has one of them.
    body = {"Acks": acks, "TimeoutMs": timeout_ms, "TopicData": _topics(parts, ids)}
    frame = wire.frame("Produce", version, body)
    driver.handle(broker_id, _API, version, frame, asked.take, "wire")
    return asked


def _topics(parts: Parts, ids: Mapping[str, str]) -> list[Body]:
    """Neighbours of one topic stand in one entry."""
    topics: list[Body] = []
    for partition, records in parts:
        name, _, index = partition.rpartition("-")
        if not topics or topics[-1]["Name"] != name:
            entry = {"Name": name, "TopicId": ids.get(name, ZERO_UUID), "PartitionData": []}
            topics.append(entry)
        topics[-1]["PartitionData"].append({"Index": int(index), "Records": records})
    return topics
