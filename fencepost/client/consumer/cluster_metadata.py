"""Who leads: the newest metadata of each partition, whose leader epoch never goes back.

Brokers may answer with older metadata than another broker did, or than a record or a committed
offset shows (KIP-232). So each partition has the largest epoch that was seen anywhere. Metadata
with a smaller one is not taken; while the epoch is larger than that of the metadata, no leader is
known, and metadata is asked for until it has caught up.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from msgspec import Struct

from fencepost.client.consumer.nodes import Address
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_EPOCH: Final = -1
_NO_ID: Final = UUID(int=0)


class LeaderAndEpoch(Struct, frozen=True, kw_only=True):
    """A partition's leader, as far as it is known."""

    leader: int | None = None
    """Broker id."""
    epoch: int = NO_EPOCH
    """-1 where brokers are too old to say (Metadata before version 7)."""


UNKNOWN_LEADER: Final = LeaderAndEpoch()


class ClusterMetadata:
    """The topics of a cluster, as its brokers' answers have shown them."""

    def __init__(self) -> None:
        self.brokers: dict[int, Address] = {}
        self.refused: dict[str, int] = {}
        """Topics that the last answer refused, with the error."""
        self._leaders: dict[Partition, LeaderAndEpoch] = {}
        self._epochs: dict[Partition, int] = {}
        """The largest leader epoch that was seen."""
        self._topic_ids: dict[str, UUID] = {}
        self._counts: dict[str, int] = {}

    def leader(self, partition: Partition) -> LeaderAndEpoch:
        """A partition's leader; without one while its metadata is older than the epoch seen."""
        found = self._leaders.get(partition, UNKNOWN_LEADER)
        epoch = self._epochs.get(partition)
        if epoch is None or found.epoch == epoch:
            return found
        return LeaderAndEpoch(epoch=epoch)

    def topic_id(self, topic: str) -> UUID | None:
        """The id of a topic; None where brokers have not said it (Metadata before version 10)."""
        return self._topic_ids.get(topic)

    def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic has; None while no metadata says so."""
        return self._counts.get(topic)

    def has_leaders(self, partitions: Iterable[Partition]) -> bool:
        """Whether there is a leader to ask of each partition."""
        return all(self.leader(each).leader is not None for each in partitions)

    def see_epoch(self, partition: Partition, epoch: int | None) -> bool:
        """A leader epoch was seen elsewhere than in metadata; whether it is a newer one."""
        if epoch is None or epoch <= self._epochs.get(partition, NO_EPOCH):
            return False
        self._epochs[partition] = epoch
        return True

    def see_leader(
        self, partition: Partition, leader: LeaderAndEpoch, addresses: Mapping[int, Address]
    ) -> bool:
        """A broker named another leader in its answer (KIP-951); whether it is a newer one.

        :param addresses: Of the leaders that the answer names.
        """
        if leader.leader is None or leader.leader not in {**self.brokers, **addresses}:
            return False
        if leader.epoch <= self._leaders.get(partition, UNKNOWN_LEADER).epoch:
            return False
        if leader.epoch < self._epochs.get(partition, NO_EPOCH):
            return False
        self.brokers.update(addresses)
        self._leaders[partition] = leader
        self._epochs[partition] = leader.epoch
        return True

    def update(self, response: MetadataResponse) -> bool:
        """Take what an answer says of its topics; whether any leader changed."""
        before = dict(self._leaders)
        self.brokers = {each.node_id: (each.host, each.port) for each in response.brokers}
        self.refused = {}
        for topic in response.topics:
            self._update_topic(topic)
        return self._leaders != before

    def _update_topic(self, topic: MetadataResponseTopic) -> None:
        name = topic.name or ""
        if topic.error_code not in {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}:
            self.refused[name] = topic.error_code
            return
        if topic.topic_id not in {None, _NO_ID}:
            if self._topic_ids.get(name, topic.topic_id) != topic.topic_id:
                self._forget(name)
            assert topic.topic_id is not None
            self._topic_ids[name] = topic.topic_id
        self._counts[name] = len(topic.partitions)
        for each in topic.partitions:
            self._update_partition(Partition(topic=name, index=each.partition_index), each)

    def _update_partition(self, partition: Partition, found: MetadataResponsePartition) -> None:
        seen = self._epochs.get(partition, NO_EPOCH)
        if NO_EPOCH < found.leader_epoch < seen:
            return
        leader = found.leader_id if found.leader_id in self.brokers else None
        self._leaders[partition] = LeaderAndEpoch(leader=leader, epoch=found.leader_epoch)
        if found.leader_epoch == NO_EPOCH:  # of an old broker: no epoch can be relied on
            self._epochs.pop(partition, None)
        else:
            self._epochs[partition] = found.leader_epoch

    def _forget(self, topic: str) -> None:
        """Another topic has its name now, and its epochs begin again."""
        for partition in [each for each in self._epochs if each.topic == topic]:
            del self._epochs[partition]
        for partition in [each for each in self._leaders if each.topic == topic]:
            del self._leaders[partition]
