"""Conversations with a group coordinator: recorded from Apache Kafka, replayed in each run.

A conversation is a list of steps. Values that differ between brokers (member ids, topic ids) appear
in it as ``$name``: a name gets its value from a response and is replaced in later requests. The
recorded responses are in ``answers.jsonl``, with names in place of values;
``python -m tests.broker.groups.record`` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from msgspec import Struct, structs

from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.codec.schema import default_value

Message = Any
"""Any request or response."""

TOPICS: Final = ("t", "u")
"""Topics of two partitions that exist before a conversation begins."""
TOPIC_IDS: Final = {name: UUID(int=0xF000 + index) for index, name in enumerate(TOPICS)}
"""The placeholders of their ids in a conversation."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A request and its answer."""

    api: str
    version: int
    request: Message
    on: str = "first"
    """The connection; each is a separate client."""
    client_id: str = "probe"
    parks: bool = False
    """Whether the response comes later, at ``Answered``."""
    learn: str | None = None
    """The name of the response's ``member_id`` in the steps that follow."""

    @property
    def described(self) -> Api:
        return BY_NAME[self.api]


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The response to the request that is parked on a connection."""

    on: str
    learn: str | None = None


Script = list[Step | Answered]


@dataclass
class Names:
    """The values of the names in a conversation."""

    values: dict[str, str] = field(default_factory=dict)
    topic_ids: dict[UUID, UUID] = field(default_factory=dict)

    def learn(self, name: str, value: str) -> None:
        self.values[name] = value

    def fill_in(self, message: Message) -> Message:
        """A request with values in the place of names."""
        return mapped(message, self._value, lambda topic_id: self.topic_ids.get(topic_id, topic_id))

    def take_out(self, message: Message) -> Message:
        """A response with names in the place of values."""
        ids = {real: name for name, real in self.topic_ids.items()}
        return mapped(message, self._name, lambda topic_id: ids.get(topic_id, topic_id))

    def _value(self, text: str) -> str:
        return self.values.get(text, text)

    def _name(self, text: str) -> str:
        for name, value in self.values.items():
            if text == value:
                return name
        return text


def mapped(
    message: Message, text: Callable[[str], str], topic_id: Callable[[UUID], UUID]
) -> Message:
    """A message with other strings and ids."""
    if isinstance(message, str):
        return text(message)
    if isinstance(message, UUID):
        return topic_id(message)
    if isinstance(message, tuple):
        return tuple(mapped(each, text, topic_id) for each in message)
    if isinstance(message, Struct):
        values = structs.asdict(message)
        return type(message)(
            **{name: mapped(value, text, topic_id) for name, value in values.items()}
        )
    return message


def as_json(message: Message) -> Message:
    """A message as JSON has it: bytes as hex, ids as text, and without what is at its default."""
    if isinstance(message, bytes):
        return {"hex": message.hex()}
    if isinstance(message, UUID):
        return str(message)
    if isinstance(message, tuple):
        return [as_json(each) for each in message]
    if isinstance(message, Struct):
        return {
            name: as_json(value)
            for name, value in structs.asdict(message).items()
            if value != default_value(type(message), name)
        }
    return message
