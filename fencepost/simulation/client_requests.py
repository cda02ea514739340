"""The requests of simulated clients: one function each, which calls the broker's handler."""

from collections.abc import Mapping
from typing import Final, cast

from fencepost.broker.core.context import Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from fencepost.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
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
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.schedule import TOPIC

NEWEST_BY_NAME: Final = 12
"""Of Fetch and Produce: the newest version that names topics, and has no ids."""
LATEST: Final = -1
EARLIEST: Final = -2
NO_EPOCH: Final = -1
_PRODUCE: Final = BY_NAME["produce"]
_FETCH: Final = BY_NAME["fetch"]
_LIST_OFFSETS: Final = BY_NAME["list_offsets"]
_METADATA: Final = BY_NAME["metadata"]
_OFFSET_FOR_LEADER_EPOCH: Final = BY_NAME["offset_for_leader_epoch"]
_ALTER_PARTITION_REASSIGNMENTS: Final = BY_NAME["alter_partition_reassignments"]
_ELECT_LEADERS: Final = BY_NAME["elect_leaders"]
_INCREMENTAL_ALTER_CONFIGS: Final = BY_NAME["incremental_alter_configs"]
_DELETE_RECORDS: Final = BY_NAME["delete_records"]
_FIND_COORDINATOR: Final = BY_NAME["find_coordinator"]
_OFFSET_COMMIT: Final = BY_NAME["offset_commit"]
_OFFSET_FETCH: Final = BY_NAME["offset_fetch"]
_LIST_VERSION: Final = 9
_METADATA_VERSION: Final = 9
_OFFSETS_VERSION: Final = 9
"""Of OffsetCommit and OffsetFetch: the newest that names topics."""
_FIND_VERSION: Final = 3
_PREFERRED: Final = 0
_SET: Final = 0
_TOPIC_RESOURCE: Final = 2
_CONSUMER: Final = -1
_HIGH_WATERMARK: Final = -1
_TIMEOUT_MS: Final = 20_000
_EVERYTHING: Final = 1 << 20
_HOST: Final = "192.0.2.1"


class ClientRequests:
    """One client, which asks.

    :param ask: Takes what it asks to brokers.
    :param name: Its client id.
    """

    __slots__ = ("_peer", "_sender")

    def __init__(self, ask: RequestSender, name: str) -> None:
        self._sender = ask
        self._peer = Peer(connection_id=name, host=_HOST)

    def produce(self, broker: Broker, records: Mapping[int, Buffer], *, acks: int) -> object:
        """Send batches, by partition, in one request; a response or a wait for it."""
        data = tuple(PartitionProduceData(index=at, records=batch) for at, batch in records.items())
        request = ProduceRequest(
            acks=acks,
            timeout_ms=_TIMEOUT_MS,
            topic_data=(TopicProduceData(name=TOPIC, partition_data=data),),
        )
        return self._send(broker, _PRODUCE, NEWEST_BY_NAME, request)

    def fetch(
        self, broker: Broker, index: int, version: int, *, offset: int, epoch: int, last_epoch: int
    ) -> FetchResponse | Wait[FetchResponse]:
        """Read all that comes after an offset; a wait where it is read from the tier.

        :param epoch: The leader's, as far as the client knows.
        :param last_epoch: Of the record before the offset; -1 where Fetch does not ask for it.
        """
        partition = FetchPartition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=_EVERYTHING,
        )
        request = FetchRequest(
            max_bytes=_EVERYTHING, topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),)
        )
        return cast(
            "FetchResponse | Wait[FetchResponse]", self._send(broker, _FETCH, version, request)
        )

    def epoch_end(self, broker: Broker, index: int, *, epoch: int, asked: int) -> EpochEndOffset:
        """Where an epoch ends in the leader's log.

        :param epoch: The leader's, as far as the client knows.
        """
        partition = OffsetForLeaderPartition(
            partition=index, current_leader_epoch=epoch, leader_epoch=asked
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=(OffsetForLeaderTopic(topic=TOPIC, partitions=(partition,)),),
        )
        answer = self._send(
            broker, _OFFSET_FOR_LEADER_EPOCH, _OFFSET_FOR_LEADER_EPOCH.max_version, request
        )
        return cast(OffsetForLeaderEpochResponse, answer).topics[0].partitions[0]

    def list_offset(
        self, broker: Broker, index: int, timestamp: int, *, epoch: int
    ) -> ListOffsetsPartitionResponse:
        """An offset by its special timestamp."""
        partition = ListOffsetsPartition(
            partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
        )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, topics=(ListOffsetsTopic(name=TOPIC, partitions=(partition,)),)
        )
        answer = self._send(broker, _LIST_OFFSETS, _LIST_VERSION, request)
        return cast(ListOffsetsResponse, answer).topics[0].partitions[0]

    def leader_epoch(self, broker: Broker, index: int) -> int:
        """The leader epoch of a broker's metadata; -1 where it does not know the partition."""
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=TOPIC),), allow_auto_topic_creation=False
        )
        answer = self._send(broker, _METADATA, _METADATA_VERSION, request)
        partitions = cast(MetadataResponse, answer).topics[0].partitions
        return next((p.leader_epoch for p in partitions if p.partition_index == index), NO_EPOCH)

    def delete_records(self, broker: Broker, index: int) -> None:
        """Delete all records below the high watermark; the answer is not waited for."""
        partition = DeleteRecordsPartition(partition_index=index, offset=_HIGH_WATERMARK)
        request = DeleteRecordsRequest(
            timeout_ms=_TIMEOUT_MS,
            topics=(DeleteRecordsTopic(name=TOPIC, partitions=(partition,)),),
        )
        self._send(broker, _DELETE_RECORDS, _DELETE_RECORDS.max_version, request)

    def reassign(self, broker: Broker, index: int, target: tuple[int, ...] | None) -> None:
        """Give a partition other replicas; None takes back what is in progress."""
        partition = ReassignablePartition(partition_index=index, replicas=target)
        request = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=TOPIC, partitions=(partition,)),)
        )
        api = _ALTER_PARTITION_REASSIGNMENTS
        self._send(broker, api, api.max_version, request)

    def elect_preferred(self, broker: Broker, index: int) -> None:
        """Have the preferred leader elected; the answer is not waited for."""
        request = ElectLeadersRequest(
            election_type=_PREFERRED,
            topic_partitions=(TopicPartitions(topic=TOPIC, partitions=(index,)),),
        )
        self._send(broker, _ELECT_LEADERS, _ELECT_LEADERS.max_version, request)

    def configure(self, broker: Broker, name: str, value: str) -> None:
        """Set a config of the topic; the answer is not waited for."""
        config = AlterableConfig(name=name, config_operation=_SET, value=value)
        resource = AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=TOPIC, configs=(config,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        api = _INCREMENTAL_ALTER_CONFIGS
        self._send(broker, api, api.max_version, request)

    # -- groups ---------------------------------------------------------------------------------

    def coordinator(self, broker: Broker, group: str) -> int:
        """The broker that coordinates a group, as another one knows; -1 where there is none."""
        answer = self._send(
            broker, _FIND_COORDINATOR, _FIND_VERSION, FindCoordinatorRequest(key=group)
        )
        return cast(FindCoordinatorResponse, answer).node_id

    def commit(
        self, broker: Broker, group: str, index: int, *, offset: int, epoch: int
    ) -> OffsetCommitResponse | Wait[OffsetCommitResponse]:
        """Say how far a group has come that has no members.

        :param epoch: Of the record before the offset; -1 where there is none.
        """
        partition = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_leader_epoch=epoch
        )
        request = OffsetCommitRequest(
            group_id=group,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        answer = self._send(broker, _OFFSET_COMMIT, _OFFSETS_VERSION, request)
        return cast("OffsetCommitResponse | Wait[OffsetCommitResponse]", answer)

    def committed(self, broker: Broker, group: str, index: int) -> None:
        """Request the committed offset of a group; the answer is ignored."""
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(index,))
        wanted = OffsetFetchRequestGroup(group_id=group, topics=(topic,))
        request = OffsetFetchRequest(groups=(wanted,))
        self._send(broker, _OFFSET_FETCH, _OFFSETS_VERSION, request)

    def _send(self, broker: Broker, api: Api, version: int, request: object) -> object:
        return self._sender(broker, api, version, request, self._peer)
