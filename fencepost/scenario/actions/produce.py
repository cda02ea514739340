"""What a producer of a scenario is answered, as data.

Produce, as the producers of a scenario do it: idempotent or not, once or for a while.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypedDict

from fencepost.client.batches import NOT_SEQUENCED, NewRecord, Sequenced, encode_records
from fencepost.client.cluster import init_producer_id
from fencepost.client.connection import Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import Partition, Produced
from fencepost.client.partitions import produce_set
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.expected_offsets import UNSPECIFIED
from fencepost.scenario.actions.answers import (
    LeaderAnswer,
    PartitionProduced,
    ProduceAnswer,
    RecordError,
)
from fencepost.scenario.actions.bodies import BatchBody, ProduceBody, RecordBody
from fencepost.scenario.actions.context import ActionContext, ScenarioClients

_NOT_ANSWERED: Final = Produced(
    version=-1,
    throttle_time_ms=0,
    error=ErrorCode.NONE,
    message=None,
    base_offset=-1,
    log_append_time_ms=-1,
    log_start_offset=-1,
    record_errors=(),
    leader=None,
)
"""What is known with acks=0."""


def produce_answer(
    asked: ActionContext,
    produced: Mapping[Partition, Produced],
    *,
    sent: int,
    acknowledged: int,
    attempts: int,
) -> ProduceAnswer:
    """The answer to an action.

    :param produced: What was answered last for each partition; nothing with acks=0.
    """
    failed = (each for each in produced.values() if each.error != ErrorCode.NONE)
    shown = next(failed, next(iter(produced.values()), _NOT_ANSWERED))
    return ProduceAnswer(
        **asked.answer_fields(shown.error, shown),
        **_partition_fields(shown),
        partitions=tuple(
            PartitionProduced(
                topic=partition.topic,
                partition=partition.index,
                error=error_name(each.error),
                **_partition_fields(each),
            )
            for partition, each in produced.items()
        ),
        sent=sent,
        acknowledged=acknowledged,
        attempts=attempts,
    )


class _PartitionFields(TypedDict):
    """What is told of a partition, and of the action as well."""

    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: LeaderAnswer | None


def _partition_fields(produced: Produced) -> _PartitionFields:
    leader = produced.leader
    return _PartitionFields(
        message=produced.message,
        base_offset=produced.base_offset,
        log_append_time_ms=produced.log_append_time_ms,
        log_start_offset=produced.log_start_offset,
        record_errors=tuple(
            RecordError(index=index, message=message) for index, message in produced.record_errors
        ),
        leader=None if leader is None else LeaderAnswer(id=leader[0], epoch=leader[1]),
    )


_ACKS: Final = {"all": -1, 1: 1, 0: 0}
_RETRY_BACKOFF_S: Final = 0.02
"""Between two attempts."""


@dataclass(slots=True)
class _Producer:
    """An idempotent producer."""

    producer_id: int
    producer_epoch: int
    next_sequence: dict[tuple[str, int], int] = field(default_factory=dict)

    def next_sequenced(self, partition: Partition, count: int, stated: int | None) -> Sequenced:
        """The sequence numbers of so many records."""
        key = (partition.topic, partition.index)
        expected = self.next_sequence.get(key, 0)
        base = expected if stated is None else stated
        self.next_sequence[key] = max(expected, base + count)
        return Sequenced(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=base
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """A batch, and which partition it is for."""

    topic: str
    partition: int
    content: BatchBody


@dataclass(slots=True)
class _Counts:
    sent: int = 0
    acknowledged: int = 0
    attempts: int = 0


class Producers:
    """The producers of a scenario, by their names."""

    def __init__(self, session: ScenarioClients) -> None:
        self._clients = session
        self._producers: dict[str, asyncio.Future[_Producer]] = {}

    async def produce(self, asked: ActionContext, body: ProduceBody) -> ProduceAnswer:
        """Send the records: all in one request, or each in one.

        :raises KafkaClientError: When no answer came to the last one that was sent.
        """
        tally = _Counts()
        produced: dict[Partition, Produced] = {}
        for at, batches in enumerate(_requests(body)):
            if at and body.every_ms:
                await asyncio.sleep(body.every_ms / 1000)
            tally.sent += len(batches)
            produced = await self._send(asked, body, batches, tally)
            if any(each.error != ErrorCode.NONE for each in produced.values()):
                break
            tally.acknowledged += len(batches) if body.acks != 0 else 0
        return produce_answer(
            asked,
            produced,
            sent=tally.sent,
            acknowledged=tally.acknowledged,
            attempts=tally.attempts,
        )

    async def _send(
        self, asked: ActionContext, body: ProduceBody, batches: Sequence[_Batch], tally: _Counts
    ) -> dict[Partition, Produced]:
        """One request, and again what is refused of it for as long as the action says."""
        asks = {"topic": batches[0].topic, "partition": batches[0].partition}
        first = body.model_copy(update=asks)
        connection = await self._first_connection(asked, first)
        records = await self._encoded(connection, asked, body, batches)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + body.retry_ms / 1000
        done: dict[Partition, Produced] = {}
        while True:
            tally.attempts += 1
            try:
                done |= await self._attempt(connection, records, asked, body)
                again = [each for each, came in done.items() if came.error in RETRIABLE]
                if not again or loop.time() >= deadline:
                    return done
                records = {each: records[each] for each in again}
            except KafkaClientError:
                if loop.time() >= deadline:
                    raise
            connection = await self._retry_connection(asked, first, deadline)

    async def _first_connection(self, asked: ActionContext, body: ProduceBody) -> Connection:
        if not body.retry_ms:
            connection, _ = await self._clients.partition_connection(asked, body)
            return connection
        deadline = asyncio.get_running_loop().time() + body.retry_ms / 1000
        return await self._leader_connection(asked, body, deadline)

    async def _retry_connection(
        self, asked: ActionContext, body: ProduceBody, deadline: float
    ) -> Connection:
        """Whom to ask now, after a while."""
        await asyncio.sleep(_RETRY_BACKOFF_S)
        asked.client.forget()
        return await self._leader_connection(asked, body, deadline)

    async def _leader_connection(
        self, asked: ActionContext, body: ProduceBody, deadline: float
    ) -> Connection:
        """The leader as metadata names it; asked for until there is one that is reached."""
        while True:
            try:
                leader = await asked.client.leader(
                    body.topic, body.partition, timeout_s=asked.timeout_s
                )
            except KafkaClientError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(_RETRY_BACKOFF_S)
                asked.client.forget()
            else:
                asked.broker = None
                return leader

    async def _attempt(
        self,
        connection: Connection,
        records: Mapping[Partition, Buffer],
        asked: ActionContext,
        body: ProduceBody,
    ) -> dict[Partition, Produced]:
        """What is answered for each partition; nothing with acks=0."""
        answers = await produce_set(
            connection,
            records,
            acks=_ACKS[body.acks],
            wait_ms=body.wait_ms,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return {each: _duplicate_as_success(came) for each, came in (answers or {}).items()}

    # -- who produces what ----------------------------------------------------------------------

    async def _encoded(
        self,
        connection: Connection,
        asked: ActionContext,
        body: ProduceBody,
        batches: Sequence[_Batch],
    ) -> dict[Partition, bytearray]:
        """The batches of each partition, one behind the other."""
        now_ms = await self._clients.control.now_ms()
        producer = await self._producer(connection, asked, body)
        found: dict[Partition, bytearray] = {}
        for each in batches:
            led = await self._clients.control.partition_leader(each.topic, each.partition)
            said, sequenced = each.content, NOT_SEQUENCED
            if producer is not None:
                sequenced = producer.next_sequenced(led.partition, len(said.records), said.sequence)
            found.setdefault(led.partition, bytearray()).extend(
                encode_records(
                    [_new_record(record, now_ms) for record in said.records],
                    base_offset=said.base_offset,
                    codec=Codec[body.compression.upper()],
                    sequenced=sequenced,
                )
            )
        return found

    async def _producer(
        self, connection: Connection, asked: ActionContext, body: ProduceBody
    ) -> _Producer | None:
        """The idempotent producer that is named, None where none is."""
        if body.producer is None:
            return None
        waiting = self._producers.get(body.producer)
        if waiting is None:
            waiting = asyncio.ensure_future(_init_producer(connection, asked.timeout_s))
            self._producers[body.producer] = waiting
        try:
            return await waiting
        except KafkaClientError:
            del self._producers[body.producer]
            raise


def _requests(body: ProduceBody) -> Iterator[Sequence[_Batch]]:
    """The batches of each request."""
    if body.batches:
        yield [_batch(each, body) for each in body.batches]
        return
    is_stated = "base_offset" in body.model_fields_set and body.base_offset != UNSPECIFIED
    parts = [body.records] if body.every_ms is None else [(each,) for each in body.records]
    for at, records in enumerate(parts):
        batch = BatchBody(
            records=records,
            sequence=None if body.sequence is None else body.sequence + at,
            base_offset=body.base_offset + at if is_stated else body.base_offset,
        )
        yield [_batch(batch, body)]


def _batch(batch: BatchBody, body: ProduceBody) -> _Batch:
    return _Batch(
        topic=body.topic if batch.topic is None else batch.topic,
        partition=body.partition if batch.partition is None else batch.partition,
        content=batch,
    )


async def _init_producer(connection: Connection, timeout_s: float) -> _Producer:
    answer = await init_producer_id(connection, timeout_s=timeout_s)
    return _Producer(answer.producer_id, answer.producer_epoch)


def _new_record(given: RecordBody, now_ms: int) -> NewRecord:
    return NewRecord(
        key=None if given.key is None else given.key.encode(),
        value=None if given.value is None else given.value.encode(),
        headers=tuple(
            (name, None if text is None else text.encode()) for name, text in given.headers.items()
        ),
        timestamp=now_ms if given.timestamp is None else given.timestamp,
    )


def _duplicate_as_success(produced: Produced) -> Produced:
    """A batch that is in the log already: its producer takes it for written."""
    if produced.error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return replace(produced, error=ErrorCode.NONE)
    return produced
