"""A transactional producer in the driver, and leaders whose markers the test sees and refuses."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost.broker import handlers
from fencepost.broker.core.outcomes import HANG_UP, HangUp
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from fencepost.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.harness.driver import NEWEST, Asked, Driver

NO_PRODUCER = (-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMarker:
    """A marker that reached a leader."""

    leader: int
    producer_id: int
    epoch: int
    commit: bool
    topic: str
    partition: int
    coordinator_epoch: int
    version: int


@dataclass
class FakeLeaders:
    """Answers WriteTxnMarkers on all brokers in place of the handler."""

    written: list[WrittenMarker] = field(default_factory=list)
    refusals: dict[tuple[str, int], ErrorCode] = field(default_factory=dict)
    """By topic and partition; others are written."""
    requests: int = 0
    lost: bool = False
    """Whether requests get no answer."""
    answers_later: bool = False
    """Whether requests wait for `answer_all`."""
    unanswered: list[tuple[WriteTxnMarkersRequest, Wait[WriteTxnMarkersResponse]]] = field(
        default_factory=list
    )

    def handle(
        self, ctx: Context, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Wait[WriteTxnMarkersResponse] | HangUp:
        self.requests += 1
        if self.lost:
            return HANG_UP
        if self.answers_later:
            wait: Wait[WriteTxnMarkersResponse] = Wait()
            self.unanswered.append((request, wait))
            return wait
        for marker in request.markers:
            self.written += [
                WrittenMarker(
                    leader=ctx.broker.broker_id,
                    producer_id=marker.producer_id,
                    epoch=marker.producer_epoch,
                    commit=marker.transaction_result,
                    topic=topic.name,
                    partition=index,
                    coordinator_epoch=marker.coordinator_epoch,
                    version=marker.transaction_version,
                )
                for topic in marker.topics
                for index in topic.partition_indexes
                if (topic.name, index) not in self.refusals
            ]
        return self.answer(request)

    def answer_all(self) -> None:
        """Answer the requests that wait."""
        waiting, self.unanswered = self.unanswered, []
        for request, wait in waiting:
            wait.complete(self.answer(request))

    def answer(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.refusals.get(
                                        (topic.name, index), ErrorCode.NONE
                                    ),
                                )
                                for index in topic.partition_indexes
                            ),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in request.markers
            )
        )

    def refuse(self, request: WriteTxnMarkersRequest, error_code: int) -> WriteTxnMarkersResponse:
        raise AssertionError("not called")

    def install(self) -> None:
        handlers._HANDLERS[BY_NAME["write_txn_markers"].key] = self  # type: ignore[assignment]  # it stands for the handler


class Producer:
    """A transactional producer: it finds its coordinator, and remembers its id and epoch."""

    def __init__(self, driver: Driver, transactional_id: str = "t", *, version: int = 5) -> None:
        """:param version: Of EndTxn: from 5 on it follows the flow of transaction.version 2."""
        self.driver = driver
        self.transactional_id = transactional_id
        self.version = version
        self.id, self.epoch = NO_PRODUCER

    @property
    def coordinator(self) -> int:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.transactional_id,))
        found = self.driver.ask(1, "find_coordinator", NEWEST, request)
        assert isinstance(found, FindCoordinatorResponse)
        return found.coordinators[0].node_id

    @property
    def producer(self) -> tuple[int, int]:
        return self.id, self.epoch

    @property
    def shard(self) -> TransactionCoordinatorShard:
        transactions = self.driver.broker(self.coordinator).transactions
        shard = transactions.shard_for(self.transactional_id)
        assert isinstance(shard, TransactionCoordinatorShard)
        return shard

    @property
    def metadata(self) -> TransactionMetadata:
        found = self.shard.find(self.transactional_id)
        assert found is not None
        return found

    @property
    def state(self) -> str:
        return self.metadata.state.title

    def init(
        self,
        expected: tuple[int, int] = NO_PRODUCER,
        *,
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> tuple[ErrorCode, tuple[int, int]]:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        answer = self.driver.ask(self.coordinator, "init_producer_id", version, request)
        assert isinstance(answer, InitProducerIdResponse)
        producer = answer.producer_id, answer.producer_epoch
        if not answer.error_code:
            self.id, self.epoch = producer
        return ErrorCode(answer.error_code), producer

    def add(self, *partitions: int, topic: str = "t", version: int = 3) -> dict[int, ErrorCode]:
        """Add partitions as a producer does; from version 4 on as a leader does."""
        topics = (AddPartitionsToTxnTopic(name=topic, partitions=partitions),)
        return self._ask_for(self.addition(topics, version), version)

    def verify(self, *partitions: int, topic: str = "t") -> dict[int, ErrorCode]:
        topics = (AddPartitionsToTxnTopic(name=topic, partitions=partitions),)
        return self._ask_for(self.addition(topics, 5, verify_only=True), 5)

    def addition(
        self,
        topics: tuple[AddPartitionsToTxnTopic, ...],
        version: int,
        *,
        verify_only: bool = False,
    ) -> AddPartitionsToTxnRequest:
        """A request to add partitions to this producer's transaction."""
        if version < 4:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics,
            )
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            verify_only=verify_only,
            topics=topics,
        )
        return AddPartitionsToTxnRequest(transactions=(transaction,))

    def _ask_for(self, request: AddPartitionsToTxnRequest, version: int) -> dict[int, ErrorCode]:
        answer = self.driver.ask(self.coordinator, "add_partitions_to_txn", version, request)
        assert isinstance(answer, AddPartitionsToTxnResponse)
        topics = [*answer.results_by_topic_v3_and_below]
        for result in answer.results_by_transaction:
            topics += result.topic_results
        return {
            each.partition_index: ErrorCode(each.partition_error_code)
            for topic in topics
            for each in topic.results_by_partition
        }

    def send_end(self, *, commit: bool) -> Asked:
        """EndTxn, which may not be answered yet."""
        return self.driver.send(self.coordinator, "end_txn", self.version, self._end(commit))

    def _end(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def end(self, *, commit: bool) -> ErrorCode:
        """EndTxn; the producer goes on with the epoch that it is answered."""
        asked = self._end(commit)
        response = self.driver.ask(self.coordinator, "end_txn", self.version, asked)
        assert isinstance(response, EndTxnResponse)
        if not response.error_code and response.producer_id != -1:
            self.id, self.epoch = response.producer_id, response.producer_epoch
        return ErrorCode(response.error_code)

    def transact(self, *partitions: int, commit: bool = True) -> None:
        """A whole transaction in the flow of this producer."""
        added = self.add(*partitions, version=5 if self.version >= 5 else 3)
        assert set(added.values()) <= {ErrorCode.NONE}
        assert self.end(commit=commit) is ErrorCode.NONE
