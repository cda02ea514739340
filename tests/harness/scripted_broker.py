"""A cluster of one partition that answers each request as a script says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast
from uuid import UUID

import pytest

from fencepost.client import (
    Appender,
    Client,
    Connection,
    Disconnected,
    NewRecord,
    Partition,
    Sequenced,
    Unreachable,
)
from fencepost.client.batches import NOT_SEQUENCED, decode_records, encode_records
from fencepost.client.cluster import ClusterMetadata, PartitionMetadata, TopicMetadata
from fencepost.client.connection import PRODUCE, Call
from fencepost.client.retry import Deadline
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.expected_offsets import Mismatch
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from fencepost.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from fencepost.protocol.records import iter_headers, peek_header, stamp

if TYPE_CHECKING:
    from fencepost.protocol.apis import Api
    from fencepost.protocol.byte_utils import Buffer

Q = TypeVar("Q")
R = TypeVar("R")

ORDERS: Final = Partition(topic="orders", index=0)
TOPIC_ID: Final = UUID(int=7)
T0: Final = 1_700_000_000_000


def records(*values: str, timestamp: int = T0) -> list[NewRecord]:
    return [
        NewRecord(key=each[:1].encode(), value=each.encode(), timestamp=timestamp)
        for each in values
    ]


@dataclass(slots=True)
class Log:
    """Of one partition; by default everything is below the high watermark."""

    batches: list[bytearray] = field(default_factory=list)
    start: int = 0
    end: int = 0
    replicated: int | None = None
    """The high watermark; None: where the log ends."""
    code: int = ErrorCode.EXPECTED_OFFSET_MISMATCH
    """Of a mismatch."""
    checks: bool = True

    @property
    def high_watermark(self) -> int:
        return self.end if self.replicated is None else min(self.replicated, self.end)

    @property
    def values(self) -> list[str]:
        """What is in it, for reading."""
        found = decode_records(self.batches, 0).records
        return [(each.value or b"").decode() for each in found]

    def put(self, batches: Buffer) -> int:
        """Append batches as they are, wherever they were expected."""
        first = self.end
        for at, header in iter_headers(batches):
            one = bytearray(memoryview(batches)[at : at + header.size])
            stamp(one, 0, header, base_offset=self.end, leader_epoch=0)
            self.batches.append(one)
            self.end += header.record_count
        return first

    def write(self, *values: str, timestamp: int = T0, by: Sequenced = NOT_SEQUENCED) -> None:
        """Append another producer's records."""
        self.put(encode_records(records(*values, timestamp=timestamp), sequenced=by))

    def truncate(self, end: int) -> None:
        """Lose the last records, by whole batches."""
        while self.batches and peek_header(self.batches[-1]).next_offset > end:
            self.batches.pop()
        self.end = end

    def append(self, batches: Buffer) -> PartitionProduceResponse:
        """As a topic does that checks expected offsets."""
        at = self.end
        for _, header in iter_headers(batches):
            if self.checks and header.base_offset != at:
                mismatch = Mismatch(header.base_offset, at)
                return refused(self.code, str(mismatch))
            at += header.record_count
        return PartitionProduceResponse(base_offset=self.put(batches))


def refused(code: int, record_error: str | None = None) -> PartitionProduceResponse:
    errors = (
        ()
        if record_error is None
        else (BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=record_error),)
    )
    return PartitionProduceResponse(error_code=code, base_offset=-1, record_errors=errors)


Step: TypeAlias = Callable[["Cluster", "Buffer"], PartitionProduceResponse]
"""How one Produce ends."""


def carried_out(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
    return cluster.log.append(batches)


def lost_answer(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
    """It is appended, and no answer comes."""
    cluster.log.append(batches)
    raise Disconnected("the answer is lost")


def lost_request(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
    raise Disconnected("the request is lost")


def first_batches_only(count: int) -> Step:
    """An election leaves this many of the batches, and no answer comes."""

    def step(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        for at, header in list(iter_headers(batches))[:count]:
            cluster.log.append(memoryview(batches)[at : at + header.size])
        raise Disconnected("the leader is gone")

    return step


def answered(code: int) -> Step:
    """It is not appended."""
    return lambda _cluster, _batches: refused(code)


def appended_but(code: int) -> Step:
    """It is appended, and the answer is an error."""

    def step(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        cluster.log.append(batches)
        return refused(code)

    return step


def then(step: Step, event: Callable[[Log], object]) -> Step:
    """Something happens to the log right behind."""

    def both(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        try:
            return step(cluster, batches)
        finally:
            event(cluster.log)

    return both


def before(event: Callable[[Log], object], step: Step) -> Step:
    """Something happens to the log right before."""

    def both(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        event(cluster.log)
        return step(cluster, batches)

    return both


def and_nobody_answers(step: Step) -> Step:
    """From then on all brokers are gone."""

    def both(cluster: Cluster, batches: Buffer) -> PartitionProduceResponse:
        try:
            return step(cluster, batches)
        finally:
            cluster.leaders.clear()

    return both


def nothing(log: Log) -> None:
    """What happens to a log that is left alone."""


@dataclass(slots=True)
class Cluster:
    """Three brokers, of which one leads."""

    log: Log = field(default_factory=Log)
    script: list[Step] = field(default_factory=list)
    """Of one Produce each; behind the last, all are carried out."""
    reads: list[Callable[[Log], object]] = field(default_factory=list)
    """What happens right before a Fetch, one each."""
    version: int = 13
    leaders: dict[int, tuple[int, int]] = field(default_factory=lambda: {1: (1, 0)})
    """Leader and its epoch, as each broker that answers believes."""
    sent: list[int] = field(default_factory=list)
    """The base offset of each Produce."""
    asked: list[int] = field(default_factory=list)
    """The broker of each Produce."""
    fetched: list[int] = field(default_factory=list)
    """The offset of each Fetch."""
    requests: list[object] = field(default_factory=list)
    fetch_error: int = 0
    producer_ids: int = 0
    """How many there are."""
    no_producer_id: list[int] = field(default_factory=list)
    """The error of each InitProducerId; behind the last, there are producer ids."""
    under_way: int = 0
    most_under_way: int = 0


class ScriptedConnection(Connection):
    def __init__(self, cluster: Cluster, broker: int) -> None:
        self.cluster = cluster
        self.broker = broker

    async def best_version(self, api: Api, *, timeout_s: float = 0) -> int:
        return self.cluster.version if api is PRODUCE.api else api.max_version

    async def ask(self, call: Call[Q, R], request: Q, version: int, *, timeout_s: float = 0) -> R:
        cluster = self.cluster
        cluster.under_way += 1
        cluster.most_under_way = max(cluster.most_under_way, cluster.under_way)
        try:
            await asyncio.sleep(0)
            return cast("R", self._answer(request, version))
        finally:
            cluster.under_way -= 1

    def _answer(self, request: object, version: int) -> object:
        self.cluster.requests.append(request)
        if isinstance(request, ProduceRequest):
            return self._produce(request, version)
        if isinstance(request, FetchRequest):
            return self._fetch(request)
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets()
        assert isinstance(request, InitProducerIdRequest)
        if self.cluster.no_producer_id:
            return InitProducerIdResponse(error_code=self.cluster.no_producer_id.pop(0))
        self.cluster.producer_ids += 1
        return InitProducerIdResponse(
            producer_id=1000 + self.cluster.producer_ids, producer_epoch=0
        )

    def _produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        cluster = self.cluster
        (topic,) = request.topic_data
        (part,) = topic.partition_data
        assert part.records is not None
        cluster.sent.append(peek_header(part.records).base_offset)
        cluster.asked.append(self.broker)
        step = cluster.script.pop(0) if cluster.script else carried_out
        answer = step(cluster, part.records)
        if version < 8:  # that has no room for them
            answer = PartitionProduceResponse(
                error_code=answer.error_code, base_offset=answer.base_offset
            )
        responses = TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=(answer,)
        )
        return ProduceResponse(responses=(responses,))

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        cluster = self.cluster
        (topic,) = request.topics
        (part,) = topic.partitions
        cluster.fetched.append(part.fetch_offset)
        if cluster.reads:
            cluster.reads.pop(0)(cluster.log)
        log, offset = cluster.log, part.fetch_offset
        error, found = cluster.fetch_error, []
        if not error and not log.start <= offset <= log.end:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        elif not error:
            found = [each for each in log.batches if self._is_asked(each, offset)]
        data = PartitionData(
            error_code=error,
            high_watermark=log.high_watermark,
            log_start_offset=-1 if error else log.start,  # as Kafka answers
            records=tuple(found),
        )
        return FetchResponse(
            responses=(FetchableTopicResponse(topic_id=topic.topic_id, partitions=(data,)),)
        )

    def _list_offsets(self) -> ListOffsetsResponse:
        part = ListOffsetsPartitionResponse(offset=self.cluster.log.start)
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(partitions=(part,)),))

    def _is_asked(self, batch: bytearray, offset: int) -> bool:
        header = peek_header(batch)
        return header.next_offset > offset and header.base_offset < self.cluster.log.high_watermark


class ScriptedClient(Client):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__("nowhere:1")
        self.cluster = cluster

    async def broker(self, broker_id: int, *, timeout_s: float = 0) -> Connection:
        return ScriptedConnection(self.cluster, broker_id)

    async def any_broker(self, *, timeout_s: float = 0) -> Connection:
        self._require_somebody()
        return ScriptedConnection(self.cluster, 1)

    async def ask_all(
        self, topic: str, *, timeout_s: float = 0, linger_s: float = 0
    ) -> list[ClusterMetadata]:
        self._require_somebody()
        return [_metadata(leader, epoch) for leader, epoch in self.cluster.leaders.values()]

    def _require_somebody(self) -> None:
        if not self.cluster.leaders:
            raise Unreachable("no broker accepts")


def _metadata(leader: int, epoch: int) -> ClusterMetadata:
    replicas = (1, 2, 3)
    partition = PartitionMetadata(
        error=0, leader=leader, leader_epoch=epoch, replicas=replicas, isr=replicas, offline=()
    )
    topic = TopicMetadata(error=0, topic_id=TOPIC_ID, partitions={0: partition})
    return ClusterMetadata(
        version=13, throttle_time_ms=0, brokers={}, controller=1, topics={"orders": topic}
    )


class Hurried(Deadline):
    """Its time passes in pauses alone, and they take none."""

    def __init__(self, deadline_s: float, attempt_s: float) -> None:
        super().__init__(deadline_s, attempt_s)
        self._left_s = deadline_s

    @property
    def remaining_s(self) -> float:
        return max(self._left_s, 0)

    async def backoff(self) -> None:
        self._left_s -= 0.05
        await asyncio.sleep(0)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline that passes does so at once."""
    monkeypatch.setattr("fencepost.client.appender.Deadline", Hurried)


def appender(cluster: Cluster, *, deadline_s: float = 5.0, **settings: Any) -> Appender:  # noqa: ANN401  # Appender's own
    return Appender(ScriptedClient(cluster), ORDERS, deadline_s=deadline_s, **settings)


def cluster_with(*values: str, script: Sequence[Step] = (), version: int = 13) -> Cluster:
    """One whose log has some records already."""
    made = Cluster(script=list(script), version=version)
    if values:
        made.log.write(*values)
    return made
