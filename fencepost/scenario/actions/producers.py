"""The producers of a scenario, by their names: idempotent ones, and those of transactions."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from fencepost.client.batches import NOT_SEQUENCED, Sequenced, encode_records
from fencepost.client.cluster import init_producer_id
from fencepost.client.connection import Connection
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition
from fencepost.client.transactional_producer import TransactionalProducer
from fencepost.protocol.compression import Codec
from fencepost.scenario.actions.batches import PartitionBatch, new_record
from fencepost.scenario.actions.context import (
    ActionContext,
    ActionState,
    InvalidAction,
    ScenarioClients,
)


class _Producer(Protocol):
    """What a Produce needs of a producer."""

    @property
    def transactional_id(self) -> str | None:
        """Of the transaction that its batches belong to."""

    def next_sequenced(self, partition: Partition, count: int, given: int | None) -> Sequenced:
        """The sequence numbers of so many records."""


class _PlainProducer:
    """Numbers nothing: what it sends twice is there twice."""

    transactional_id: Final = None

    def next_sequenced(self, _partition: Partition, _count: int, _given: int | None) -> Sequenced:
        """No sequence numbers."""
        return NOT_SEQUENCED


class _IdempotentProducer(Struct):
    producer_id: int
    producer_epoch: int
    next_sequence: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def transactional_id(self) -> None:
        """It has none."""

    def next_sequenced(self, partition: Partition, count: int, given: int | None) -> Sequenced:
        """The next numbers, or those that begin with the one that is given."""
        key = (partition.topic, partition.index)
        expected = self.next_sequence.get(key, 0)
        base = expected if given is None else given
        self.next_sequence[key] = max(expected, base + count)
        return Sequenced(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=base
        )


class _InTransaction(Struct, frozen=True):
    """A transactional producer, of which a Produce sends one request."""

    producer: TransactionalProducer

    @property
    def transactional_id(self) -> str:
        """Its own."""
        return self.producer.transactional_id

    def next_sequenced(self, partition: Partition, count: int, given: int | None) -> Sequenced:
        """The next numbers in its present epoch, or those that begin with the one given."""
        if given is None:
            named = Partition(topic=partition.topic, index=partition.index)
            return self.producer.next_sequenced(named, count)
        producer_id, producer_epoch = self.producer.producer
        return Sequenced(
            producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=given
        )


class TransactionalProducers(ActionState):
    """The transactional producers of a scenario, by their names."""

    def __init__(self, clients: ScenarioClients) -> None:
        super().__init__(clients)
        self.by_name: dict[str, TransactionalProducer] = {}

    def get(self, name: str) -> TransactionalProducer:
        """:raises InvalidAction: When it has not begun a transaction yet."""
        if name not in self.by_name:
            raise InvalidAction(f"producer {name!r} has not begun a transaction")
        return self.by_name[name]


class EncodedBatches(Struct, frozen=True, kw_only=True):
    """What a Produce sends."""

    records: dict[Partition, bytearray]
    """The batches of each partition, one behind the other."""
    transactional_id: str | None


class Producers(ActionState):
    """The producers of a scenario that send one request at a time, by their names."""

    def __init__(self, clients: ScenarioClients) -> None:
        super().__init__(clients)
        self._idempotent: dict[str, asyncio.Future[_IdempotentProducer]] = {}

    async def encode(
        self,
        connection: Connection,
        context: ActionContext,
        batches: Sequence[PartitionBatch],
        *,
        producer_name: str | None,
        codec: Codec,
    ) -> EncodedBatches:
        """The batches with the sequence numbers of their producer.

        :param producer_name: Of a transactional producer, or else of an idempotent one; None for
            none.
        :raises KafkaClientError: When the producer does not get its id.
        """
        now_ms = await self._clients.control.now_ms()
        producer = await self._producer(connection, context, producer_name)
        encoded: dict[Partition, bytearray] = {}
        for each in batches:
            leader = await self._clients.control.partition_leader(each.topic, each.partition)
            content = each.content
            encoded.setdefault(leader.partition, bytearray()).extend(
                encode_records(
                    [new_record(record, now_ms) for record in content.records],
                    base_offset=content.base_offset,
                    codec=codec,
                    sequenced=producer.next_sequenced(
                        leader.partition, len(content.records), content.sequence
                    ),
                    transactional=producer.transactional_id is not None,
                )
            )
        return EncodedBatches(records=encoded, transactional_id=producer.transactional_id)

    async def _producer(
        self, connection: Connection, context: ActionContext, name: str | None
    ) -> _Producer:
        if name is None:
            return _PlainProducer()
        transactional = self._clients.state(TransactionalProducers).by_name.get(name)
        if transactional is not None:
            return _InTransaction(transactional)
        waiting = self._idempotent.get(name)
        if waiting is None:
            waiting = asyncio.ensure_future(_init_producer(connection, context.timeout_s))
            self._idempotent[name] = waiting
        try:
            return await waiting
        except KafkaClientError:
            del self._idempotent[name]
            raise


async def _init_producer(connection: Connection, timeout_s: float) -> _IdempotentProducer:
    answer = await init_producer_id(connection, timeout_s=timeout_s)
    return _IdempotentProducer(answer.producer_id, answer.producer_epoch)
