"""Produce, as the producers of a scenario do it: idempotent or not, once or for a while."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fencepost.client.batches import NOT_SEQUENCED, NewRecord, Sequenced, encode_records
from fencepost.client.cluster import init_producer_id
from fencepost.client.connection import Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import Partition, Produced
from fencepost.client.partitions import produce
from fencepost.control.scenario.action_answers import LeaderAnswer, ProduceAnswer, RecordError
from fencepost.control.scenario.action_bodies import ProduceBody, RecordBody
from fencepost.control.scenario.asked import Asked, Session
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode

_ACKS: Final = {"all": -1, 1: 1, 0: 0}
_PAUSE_S: Final = 0.02
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
"""What is known with acks=0."""


@dataclass(slots=True)
class _Producer:
    """An idempotent producer."""

    producer_id: int
    producer_epoch: int
    next_sequence: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, partition: Partition, count: int, stated: int | None) -> Sequenced:
        """The sequence numbers of so many records."""
        key = (partition.topic, partition.index)
        expected = self.next_sequence.get(key, 0)
        base = expected if stated is None else stated
        self.next_sequence[key] = max(expected, base + count)
        return Sequenced(
            producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=base
        )


@dataclass(slots=True)
class _Tally:
    sent: int = 0
    acknowledged: int = 0
    attempts: int = 0


class Producing:
    """The producers of a scenario, by their names."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producers: dict[str, asyncio.Future[_Producer]] = {}

    async def produce(self, asked: Asked, body: ProduceBody) -> ProduceAnswer:
        """Send the records, as one batch or as many.

        :raises KafkaClientError: When no answer came to the last one that was sent.
        """
        records = await self._records(body)
        parts = [records] if body.every_ms is None else [[each] for each in records]
        tally = _Tally()
        produced = _NOT_ANSWERED
        for at, part in enumerate(parts):
            if at and body.every_ms:
                await asyncio.sleep(body.every_ms / 1000)
            stated = None if body.sequence is None else body.sequence + at
            tally.sent += 1
            produced = await self._send(asked, body, part, stated, tally)
            if produced.error != ErrorCode.NONE:
                break
            tally.acknowledged += body.acks != 0
        return _answer(asked, produced, tally)

    async def _send(
        self,
        asked: Asked,
        body: ProduceBody,
        records: Sequence[NewRecord],
        stated: int | None,
        tally: _Tally,
    ) -> Produced:
        """One batch, sent again for as long as the action says."""
        connection, partition = await self._whom(asked, body)
        sequenced = await self._sequenced(connection, asked, body, partition, len(records), stated)
        batch = encode_records(
            records,
            base_offset=body.base_offset,
            codec=Codec[body.compression.upper()],
            sequenced=sequenced,
        )
        loop = asyncio.get_running_loop()
        deadline = loop.time() + body.retry_ms / 1000
        while True:
            tally.attempts += 1
            try:
                produced = await self._attempt(connection, partition, batch, asked, body)
                if produced.error == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    return _acknowledged(produced)
                if produced.error not in RETRIABLE or loop.time() >= deadline:
                    return produced
            except KafkaClientError:
                if loop.time() >= deadline:
                    raise
            connection = await self._next(asked, body, deadline)

    async def _whom(self, asked: Asked, body: ProduceBody) -> tuple[Connection, Partition]:
        if not body.retry_ms:
            return await self._session.partition(asked, body)
        led = await self._session.truth.led(body.topic, body.partition)
        deadline = asyncio.get_running_loop().time() + body.retry_ms / 1000
        return await self._led(asked, body, deadline), led.partition

    async def _next(self, asked: Asked, body: ProduceBody, deadline: float) -> Connection:
        """Whom to ask now, after a while."""
        await asyncio.sleep(_PAUSE_S)
        asked.client.forget()
        return await self._led(asked, body, deadline)

    async def _led(self, asked: Asked, body: ProduceBody, deadline: float) -> Connection:
        """The leader as metadata names it; asked for until there is one that is reached."""
        while True:
            try:
                leader = await asked.client.leader(
                    body.topic, body.partition, timeout_s=asked.timeout_s
                )
            except KafkaClientError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(_PAUSE_S)
                asked.client.forget()
            else:
                asked.broker = None
                return leader

    async def _attempt(
        self,
        connection: Connection,
        partition: Partition,
        batch: Buffer,
        asked: Asked,
        body: ProduceBody,
    ) -> Produced:
        answer = await produce(
            connection,
            partition,
            batch,
            acks=_ACKS[body.acks],
            wait_ms=body.wait_ms,
            version=body.version,
            timeout_s=asked.timeout_s,
        )
        return _NOT_ANSWERED if answer is None else answer

    # -- who produces what ----------------------------------------------------------------------

    async def _sequenced(
        self,
        connection: Connection,
        asked: Asked,
        body: ProduceBody,
        partition: Partition,
        count: int,
        stated: int | None,
    ) -> Sequenced:
        if body.producer is None:
            return NOT_SEQUENCED
        waiting = self._producers.get(body.producer)
        if waiting is None:
            waiting = asyncio.ensure_future(_identified(connection, asked.timeout_s))
            self._producers[body.producer] = waiting
        try:
            producer = await waiting
        except KafkaClientError:
            del self._producers[body.producer]
            raise
        return producer.take(partition, count, stated)

    async def _records(self, body: ProduceBody) -> list[NewRecord]:
        now_ms = await self._session.truth.now_ms()
        return [_new_record(each, now_ms) for each in body.records]


async def _identified(connection: Connection, timeout_s: float) -> _Producer:
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


def _acknowledged(produced: Produced) -> Produced:
    """A batch that is in the log already: its producer takes it for written."""
    return replace(produced, error=ErrorCode.NONE)


def _answer(asked: Asked, produced: Produced, tally: _Tally) -> ProduceAnswer:
    leader = produced.leader
    return ProduceAnswer(
        **asked.answered(produced.error, produced),
        message=produced.message,
        base_offset=produced.base_offset,
        log_append_time_ms=produced.log_append_time_ms,
        log_start_offset=produced.log_start_offset,
        record_errors=tuple(
            RecordError(index=index, message=message) for index, message in produced.record_errors
        ),
        leader=None if leader is None else LeaderAnswer(id=leader[0], epoch=leader[1]),
        sent=tally.sent,
        acknowledged=tally.acknowledged,
        attempts=tally.attempts,
    )
