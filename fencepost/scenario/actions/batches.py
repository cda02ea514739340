"""The batches that a Produce of a scenario sends: as data, and encoded by their producers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from fencepost.client.batches import NOT_SEQUENCED, NewRecord, Sequenced, encode_records
from fencepost.client.cluster import init_producer_id
from fencepost.client.connection import Connection
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.compression import Codec
from fencepost.scenario.actions.context import (
    ActionContext,
    ActionState,
    PartitionIndex,
    ScenarioClients,
)
from fencepost.scenario.document import expand_ranges
from fencepost.verbs.bodies import Body, Listed


class RecordBody(Body):
    """A record to be produced, as text."""

    key: str | None = None
    value: str | None = None
    headers: dict[str, str | None] = Field(default_factory=dict)
    timestamp: int | None = None
    """Left out: the cluster's time."""


_SOME: Final = Field(min_length=1)


def _as_records(given: object) -> object:
    """A text is a record's value."""
    if not isinstance(given, list):
        return given
    if not all(isinstance(each, str | dict) for each in given):
        raise ValueError("a record is text, or a mapping of key, value, headers and timestamp")
    return [{"value": each} if isinstance(each, str) else each for each in expand_ranges(given)]


Records = Annotated[
    Listed[RecordBody],
    _SOME,
    BeforeValidator(_as_records, json_schema_input_type=Annotated[list[RecordBody | str], _SOME]),
]


class BatchBody(Body):
    """One of the batches of a request."""

    topic: str | None = None
    """Left out: the action's. All are sent to who leads the first one's partition."""
    partition: PartitionIndex | None = None
    """Left out: the action's."""
    records: Records
    sequence: Annotated[int, Field(ge=0)] | None = None
    """As in the action."""
    base_offset: int = 0
    """As in the action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBatch:
    """A batch, and which partition it is for."""

    topic: str
    partition: int
    content: BatchBody


@dataclass(slots=True)
class IdempotentProducer:
    """An idempotent producer."""

    producer_id: int
    producer_epoch: int
    next_sequence: dict[tuple[str, int], int] = field(default_factory=dict)

    def next_sequenced(self, partition: Partition, count: int, given: int | None) -> Sequenced:
        """The sequence numbers of so many records."""
        key = (partition.topic, partition.index)
        expected = self.next_sequence.get(key, 0)
        base = expected if given is None else given
        self.next_sequence[key] = max(expected, base + count)
        return Sequenced(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=base
        )


class Producers(ActionState):
    """The idempotent producers of a scenario, by their names."""

    def __init__(self, clients: ScenarioClients) -> None:
        super().__init__(clients)
        self._producers: dict[str, asyncio.Future[IdempotentProducer]] = {}

    async def encode(
        self,
        connection: Connection,
        context: ActionContext,
        batches: Sequence[PartitionBatch],
        *,
        producer_name: str | None,
        codec: Codec,
    ) -> dict[Partition, bytearray]:
        """The batches of each partition, one behind the other.

        :param producer_name: The idempotent producer's, None for none.
        :raises KafkaClientError: When the producer does not get its id.
        """
        now_ms = await self._clients.control.now_ms()
        producer = await self._producer(connection, context, producer_name)
        encoded: dict[Partition, bytearray] = {}
        for each in batches:
            leader = await self._clients.control.partition_leader(each.topic, each.partition)
            content, sequenced = each.content, NOT_SEQUENCED
            if producer is not None:
                sequenced = producer.next_sequenced(
                    leader.partition, len(content.records), content.sequence
                )
            encoded.setdefault(leader.partition, bytearray()).extend(
                encode_records(
                    [new_record(record, now_ms) for record in content.records],
                    base_offset=content.base_offset,
                    codec=codec,
                    sequenced=sequenced,
                )
            )
        return encoded

    async def _producer(
        self, connection: Connection, context: ActionContext, name: str | None
    ) -> IdempotentProducer | None:
        """The idempotent producer that is named, None where none is."""
        if name is None:
            return None
        waiting = self._producers.get(name)
        if waiting is None:
            waiting = asyncio.ensure_future(_init_producer(connection, context.timeout_s))
            self._producers[name] = waiting
        try:
            return await waiting
        except KafkaClientError:
            del self._producers[name]
            raise


async def _init_producer(connection: Connection, timeout_s: float) -> IdempotentProducer:
    answer = await init_producer_id(connection, timeout_s=timeout_s)
    return IdempotentProducer(answer.producer_id, answer.producer_epoch)


def new_record(given: RecordBody, now_ms: int) -> NewRecord:
    """The record that is sent.

    :param now_ms: The timestamp where none is given.
    """
    return NewRecord(
        key=None if given.key is None else given.key.encode(),
        value=None if given.value is None else given.value.encode(),
        headers=tuple(
            (name, None if text is None else text.encode()) for name, text in given.headers.items()
        ),
        timestamp=now_ms if given.timestamp is None else given.timestamp,
    )
