"""What requests about assigned partitions act on: the state that a consumer's parts share."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fencepost.client.consumer.assignment import Assignment
from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.metadata_refresh import MetadataRefresh
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.position import AssignedPartition
from fencepost.client.errors import RETRIABLE
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode

CONSUMER: Final = -1
"""The replica id of what is no replica."""


class ConsumerContext(Struct, frozen=True, kw_only=True, eq=False):
    """The assigned partitions, and their leaders as metadata has them."""

    assignment: Assignment
    metadata: ClusterMetadata
    refresh: MetadataRefresh
    nodes: Nodes
    config: ConsumerConfig
    fail: Callable[[Exception], None]
    """Takes an error after which the consumer cannot go on."""

    def refuse(self, api: Api, partition: AssignedPartition, code: int, now: int) -> None:
        """Report an error that does not pass by itself."""
        where = partition.partition
        self.fail(RequestRefused(f"{api.title} of {where.topic}-{where.index}", code))
        partition.retry.pause(now)


def may_pass(code: int) -> bool:
    """Whether an error may pass by itself, with newer metadata."""
    return code in RETRIABLE or code == ErrorCode.UNKNOWN_SERVER_ERROR
