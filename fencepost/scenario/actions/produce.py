"""Produce, as the producers of a scenario do it: idempotent or not, once or for a while."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, TypedDict

from msgspec import Meta, Struct
from msgspec.structs import replace

from fencepost.client.connection import Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import Partition, Produced
from fencepost.client.partitions import produce_set
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.expected_offsets import UNSPECIFIED
from fencepost.scenario.actions.batches import BatchBody, PartitionBatch, Records
from fencepost.scenario.actions.context import (
    TIMEOUT_MS,
    Action,
    ActionAnswer,
    ActionContext,
    LeaderAnswer,
    Milliseconds,
    PartitionBody,
    ScenarioClients,
)
from fencepost.scenario.actions.producers import EncodedBatches, Producers
from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Listed

_OF_ONE_BATCH: Final = ("records", "sequence", "base_offset")
_ACKS: Final = {"all": -1, 1: 1, 0: 0}
_RETRY_BACKOFF_S: Final = 0.02
"""Between two attempts."""
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
"""Stands for the answer that acks=0 does not have."""


class ProduceBody(PartitionBody):
    """Records to a partition, or to several."""

    records: Records = ()
    """Texts, or more of each; ``a0..a9`` stands for a0 to a9."""
    batches: Annotated[Listed[BatchBody], Meta(min_length=1)] = ()
    """In place of ``records``: batches that are sent in one request, to one partition or to
    several, in this order."""
    acks: Literal["all", 1, 0] = "all"
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    producer: str | None = None
    """An idempotent producer of that name; it asks for its id when it first produces. Of one that
    has begun a transaction, the records belong to that."""
    sequence: Annotated[int, Meta(ge=0)] | None = None
    """Of the first record, with a producer. Left out: the one after all that it has sent; the same
    again is a retry."""
    base_offset: int = 0
    """In the batch: the offset that is expected under KIP-27, -1 for any. Where ``every_ms`` makes
    each record a batch, those of later records follow, if this is given and not -1."""
    wait_ms: Milliseconds = TIMEOUT_MS
    """How long the broker may wait for other replicas, with acks=all."""
    every_ms: Milliseconds | None = None
    """Each record is a batch of its own, sent so long after the answer to the one before. Left
    out: all are one batch."""
    retry_ms: Milliseconds = 0
    """For so long a batch is sent again to the leader that metadata names, after errors that may
    pass and connections that are lost."""

    def check(self) -> None:
        """It is clear what to send."""
        if not self.batches:
            if not self.records:
                raise ValueError("records is left out (or batches, where there are several)")
            return
        for name in _OF_ONE_BATCH:
            if name in self.model_fields_set:
                raise ValueError(f"batches are given, which have their own {name}")
        if self.every_ms is not None:
            raise ValueError("batches are sent at once, and every_ms is for records")


class RecordError(Answer):
    """A record that is refused."""

    index: int
    message: str | None


class PartitionProduced(Answer):
    """What is answered for one partition."""

    topic: str
    partition: int
    error: str
    """Kafka's name of the error, ``NONE`` for none."""
    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: LeaderAnswer | None


class ProduceAnswer(ActionAnswer):
    """Of several requests the last one's answer; of several partitions the first one's with an
    error, or the first one's.
    """

    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: LeaderAnswer | None
    partitions: tuple[PartitionProduced, ...]
    """Of the last answer, in the order in which they were sent."""
    sent: int
    """Batches, each counted once."""
    acknowledged: int
    """Batches."""
    attempts: int
    """Requests."""


class _Counts(Struct):
    sent: int = 0
    acknowledged: int = 0
    attempts: int = 0


async def _produce(
    clients: ScenarioClients, context: ActionContext, body: ProduceBody
) -> ProduceAnswer:
    """Send the records: all in one request, or each in one.

    :raises KafkaClientError: When no answer came to the last one that was sent.
    """
    counts = _Counts()
    produced: dict[Partition, Produced] = {}
    for at, batches in enumerate(_requests(body)):
        if at and body.every_ms:
            await asyncio.sleep(body.every_ms / 1000)
        counts.sent += len(batches)
        produced = await _send(clients, context, body, batches, counts)
        if any(each.error != ErrorCode.NONE for each in produced.values()):
            break
        counts.acknowledged += len(batches) if body.acks != 0 else 0
    return _answer(
        context,
        produced,
        sent=counts.sent,
        acknowledged=counts.acknowledged,
        attempts=counts.attempts,
    )


async def _send(
    clients: ScenarioClients,
    context: ActionContext,
    body: ProduceBody,
    batches: Sequence[PartitionBatch],
    counts: _Counts,
) -> dict[Partition, Produced]:
    """One request, and again what is refused of it for as long as the action says."""
    first_partition = {"topic": batches[0].topic, "partition": batches[0].partition}
    first = body.model_copy(update=first_partition)
    connection = await _first_connection(clients, context, first)
    encoded = await clients.state(Producers).encode(
        connection,
        context,
        batches,
        producer_name=body.producer,
        codec=Codec[body.compression.upper()],
    )
    loop = asyncio.get_running_loop()
    deadline = loop.time() + body.retry_ms / 1000
    done: dict[Partition, Produced] = {}
    while True:
        counts.attempts += 1
        try:
            done |= await _attempt(connection, encoded, context, body)
            again = [each for each, came in done.items() if came.error in RETRIABLE]
            if not again or loop.time() >= deadline:
                return done
            encoded = replace(encoded, records={each: encoded.records[each] for each in again})
        except KafkaClientError:
            if loop.time() >= deadline:
                raise
        connection = await _retry_connection(context, first, deadline)


async def _first_connection(
    clients: ScenarioClients, context: ActionContext, body: ProduceBody
) -> Connection:
    if not body.retry_ms:
        connection, _ = await clients.partition_connection(context, body)
        return connection
    deadline = asyncio.get_running_loop().time() + body.retry_ms / 1000
    return await _leader_connection(context, body, deadline)


async def _retry_connection(
    context: ActionContext, body: ProduceBody, deadline: float
) -> Connection:
    """Whom to ask now, after a while."""
    await asyncio.sleep(_RETRY_BACKOFF_S)
    context.client.forget()
    return await _leader_connection(context, body, deadline)


async def _leader_connection(
    context: ActionContext, body: ProduceBody, deadline: float
) -> Connection:
    """The leader as metadata names it; context for until there is one that is reached."""
    while True:
        try:
            leader = await context.client.leader(
                body.topic, body.partition, timeout_s=context.timeout_s
            )
        except KafkaClientError:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(_RETRY_BACKOFF_S)
            context.client.forget()
        else:
            context.broker = None
            return leader


async def _attempt(
    connection: Connection,
    encoded: EncodedBatches,
    context: ActionContext,
    body: ProduceBody,
) -> dict[Partition, Produced]:
    """What is answered for each partition; nothing with acks=0."""
    answers = await produce_set(
        connection,
        encoded.records,
        acks=_ACKS[body.acks],
        wait_ms=body.wait_ms,
        transactional_id=encoded.transactional_id,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return {each: _duplicate_as_success(came) for each, came in (answers or {}).items()}


def _requests(body: ProduceBody) -> Iterator[Sequence[PartitionBatch]]:
    """The batches of each request."""
    if body.batches:
        yield [_batch(each, body) for each in body.batches]
        return
    is_given = "base_offset" in body.model_fields_set and body.base_offset != UNSPECIFIED
    parts = [body.records] if body.every_ms is None else [(each,) for each in body.records]
    for at, records in enumerate(parts):
        batch = BatchBody(
            records=records,
            sequence=None if body.sequence is None else body.sequence + at,
            base_offset=body.base_offset + at if is_given else body.base_offset,
        )
        yield [_batch(batch, body)]


def _batch(batch: BatchBody, body: ProduceBody) -> PartitionBatch:
    return PartitionBatch(
        topic=body.topic if batch.topic is None else batch.topic,
        partition=body.partition if batch.partition is None else batch.partition,
        content=batch,
    )


def _answer(
    context: ActionContext,
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
        **context.answer_fields(shown.error, shown),
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
    """Fields that a partition and the whole action have in common."""

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


def _duplicate_as_success(produced: Produced) -> Produced:
    """A batch that is in the log already: its producer takes it for written."""
    if produced.error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return replace(produced, error=ErrorCode.NONE)
    return produced


ACTIONS: Final = (
    Action("produce", "Produce", ProduceBody, ProduceAnswer, "Send records.", _produce),
)
