"""The requests of transactional producers and of read_committed consumers, one function each."""

from typing import Final, TypeVar, cast

from fencepost.broker.core.context import Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from fencepost.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from fencepost.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.transactions.ledger import ProducerEpoch

TRANSACTION_TIMEOUT_MS: Final = 30_000
_PRODUCE_TIMEOUT_MS: Final = 20_000
_INIT_VERSION: Final = 5
_ADD_VERSION: Final = 3
"""The newest of clients: brokers send the newer ones."""
_FIND_VERSION: Final = 3
_FETCH_VERSION: Final = 12
"""The newest that names topics."""
_TRANSACTION_KEY: Final = 1
_READ_COMMITTED: Final = 1
_ALL_REPLICAS: Final = -1
_EVERYTHING: Final = 1 << 20
HOST: Final = "192.0.2.1"

_ResponseT = TypeVar("_ResponseT")


class TransactionalRequests:
    """One transactional client, which asks.

    :param ask: Takes what it asks to brokers.
    :param name: Its client id.
    :param is_new_flow: Whether it follows the flow of ``transaction.version`` 2 (KIP-890).
    """

    __slots__ = ("_ask", "_end_version", "_peer", "_produce_version")

    def __init__(self, ask: RequestSender, name: str, *, is_new_flow: bool) -> None:
        self._ask = ask
        self._peer = Peer(connection_id=name, host=HOST)
        self._end_version = 5 if is_new_flow else 4
        self._produce_version = 12 if is_new_flow else 11

    def find_coordinator(self, broker: Broker, transactional_id: str) -> int:
        """The broker that coordinates an id, as another one knows; -1 where there is none."""
        request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION_KEY)
        answer = self._send(broker, BY_NAME["find_coordinator"], _FIND_VERSION, request)
        return cast(FindCoordinatorResponse, answer).node_id

    def init(
        self, broker: Broker, transactional_id: str, expected: ProducerEpoch | None
    ) -> Wait[InitProducerIdResponse]:
        """InitProducerId.

        :param expected: The id and epoch of a producer that goes on after an error (KIP-360).
        """
        producer_id, epoch = expected or (-1, -1)
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self._send(broker, BY_NAME["init_producer_id"], _INIT_VERSION, request)
        return wait_for(cast("InitProducerIdResponse | Wait[InitProducerIdResponse]", answer))

    def add_partition(
        self, broker: Broker, transactional_id: str, producer: ProducerEpoch, index: int
    ) -> Wait[AddPartitionsToTxnResponse]:
        """AddPartitionsToTxn, with one partition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(index,)),),
        )
        answer = self._send(broker, BY_NAME["add_partitions_to_txn"], _ADD_VERSION, request)
        return wait_for(
            cast("AddPartitionsToTxnResponse | Wait[AddPartitionsToTxnResponse]", answer)
        )

    def produce(
        self, broker: Broker, transactional_id: str, index: int, batch: bytes
    ) -> Wait[ProduceResponse]:
        """Produce one batch with acks=all."""
        data = PartitionProduceData(index=index, records=bytearray(batch))
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),),
        )
        answer = self._send(broker, BY_NAME["produce"], self._produce_version, request)
        return wait_for(cast("ProduceResponse | Wait[ProduceResponse]", answer))

    def end(
        self, broker: Broker, transactional_id: str, producer: ProducerEpoch, *, commits: bool
    ) -> Wait[EndTxnResponse]:
        """EndTxn."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=commits,
        )
        answer = self._send(broker, BY_NAME["end_txn"], self._end_version, request)
        return wait_for(cast("EndTxnResponse | Wait[EndTxnResponse]", answer))

    def fetch(self, broker: Broker, index: int, offset: int) -> Wait[FetchResponse]:
        """Read all that a read_committed consumer may read from an offset on."""
        partition = FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=_EVERYTHING
        )
        request = FetchRequest(
            max_bytes=_EVERYTHING,
            isolation_level=_READ_COMMITTED,
            topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),),
        )
        answer = self._send(broker, BY_NAME["fetch"], _FETCH_VERSION, request)
        return wait_for(cast("FetchResponse | Wait[FetchResponse]", answer))

    def _send(self, broker: Broker, api: Api, version: int, request: object) -> object:
        return self._ask(broker, api, version, request, self._peer)


def wait_for(answer: _ResponseT | Wait[_ResponseT]) -> Wait[_ResponseT]:
    """A wait for the answer, also where it is there already."""
    if isinstance(answer, Wait):
        return answer
    wait: Wait[_ResponseT] = Wait()
    wait.complete(answer)
    return wait
