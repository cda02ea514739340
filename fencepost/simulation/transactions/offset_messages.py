"""The requests of transactional producers and of consumers for the committed offsets of groups."""

from typing import Final, cast

from fencepost.broker.core.context import Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.transactions.ledger import ProducerEpoch
from fencepost.simulation.transactions.messages import HOST, wait_for

_FIND_VERSION: Final = 3
_ADD_VERSION: Final = 3
_FETCH_VERSION: Final = 9
"""The newest that names topics."""


class OffsetRequests:
    """One client of a group, which asks.

    :param ask: Takes what it asks to brokers.
    :param name: Its client id.
    :param is_new_flow: Whether it follows the flow of ``transaction.version`` 2 (KIP-890).
    """

    __slots__ = ("_ask", "_commit_version", "_peer")

    def __init__(self, ask: RequestSender, name: str, *, is_new_flow: bool) -> None:
        self._ask = ask
        self._peer = Peer(connection_id=name, host=HOST)
        self._commit_version = 5 if is_new_flow else 4

    def find_coordinator(self, broker: Broker, group: str) -> int:
        """The broker that coordinates a group, as another one knows; -1 where there is none."""
        request = FindCoordinatorRequest(key=group)
        answer = self._send(broker, BY_NAME["find_coordinator"], _FIND_VERSION, request)
        return cast(FindCoordinatorResponse, answer).node_id

    def add_group(
        self, broker: Broker, transactional_id: str, producer: ProducerEpoch, group: str
    ) -> Wait[AddOffsetsToTxnResponse]:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=group,
        )
        answer = self._send(broker, BY_NAME["add_offsets_to_txn"], _ADD_VERSION, request)
        return wait_for(cast("AddOffsetsToTxnResponse | Wait[AddOffsetsToTxnResponse]", answer))

    def commit(
        self,
        broker: Broker,
        transactional_id: str,
        producer: ProducerEpoch,
        group: str,
        index: int,
        offset: int,
    ) -> Wait[TxnOffsetCommitResponse]:
        """TxnOffsetCommit, of one partition, by no member of the group."""
        partition = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        answer = self._send(broker, BY_NAME["txn_offset_commit"], self._commit_version, request)
        return wait_for(cast("TxnOffsetCommitResponse | Wait[TxnOffsetCommitResponse]", answer))

    def committed(
        self, broker: Broker, group: str, index: int, *, is_stable: bool
    ) -> Wait[OffsetFetchResponse]:
        """OffsetFetch, of one partition; `offset_of` reads the answer.

        :param is_stable: Whether an open transaction that has committed another offset is an error
            (KIP-447).
        """
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(index,))
        wanted = OffsetFetchRequestGroup(group_id=group, topics=(topic,))
        request = OffsetFetchRequest(groups=(wanted,), require_stable=is_stable)
        answer = self._send(broker, BY_NAME["offset_fetch"], _FETCH_VERSION, request)
        return wait_for(cast("OffsetFetchResponse | Wait[OffsetFetchResponse]", answer))

    def _send(self, broker: Broker, api: Api, version: int, request: object) -> object:
        return self._ask(broker, api, version, request, self._peer)


def offset_of(answer: OffsetFetchResponse) -> int | None:
    """A committed offset, -1 for none; None instead of it with an error."""
    group = answer.groups[0]
    if group.error_code:
        return None
    partition = group.topics[0].partitions[0]
    return None if partition.error_code else partition.committed_offset
