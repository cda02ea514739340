"""The APIs that are called by type: a request of one class, and the class of its answer."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from fencepost.protocol.messages.fetch import FetchRequest, FetchResponse
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from fencepost.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from fencepost.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataResponse
from fencepost.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fencepost.protocol.messages.produce import ProduceRequest, ProduceResponse
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call(Generic[Q, R]):
    """An API with the types of its messages."""

    api: Api


PRODUCE: Final[Call[ProduceRequest, ProduceResponse]] = Call(BY_NAME["produce"])
FETCH: Final[Call[FetchRequest, FetchResponse]] = Call(BY_NAME["fetch"])
LIST_OFFSETS: Final[Call[ListOffsetsRequest, ListOffsetsResponse]] = Call(BY_NAME["list_offsets"])
METADATA: Final[Call[MetadataRequest, MetadataResponse]] = Call(BY_NAME["metadata"])
DESCRIBE_CONFIGS: Final[Call[DescribeConfigsRequest, DescribeConfigsResponse]] = Call(
    BY_NAME["describe_configs"]
)
OFFSET_COMMIT: Final[Call[OffsetCommitRequest, OffsetCommitResponse]] = Call(
    BY_NAME["offset_commit"]
)
OFFSET_FETCH: Final[Call[OffsetFetchRequest, OffsetFetchResponse]] = Call(BY_NAME["offset_fetch"])
FIND_COORDINATOR: Final[Call[FindCoordinatorRequest, FindCoordinatorResponse]] = Call(
    BY_NAME["find_coordinator"]
)
JOIN_GROUP: Final[Call[JoinGroupRequest, JoinGroupResponse]] = Call(BY_NAME["join_group"])
SYNC_GROUP: Final[Call[SyncGroupRequest, SyncGroupResponse]] = Call(BY_NAME["sync_group"])
HEARTBEAT: Final[Call[HeartbeatRequest, HeartbeatResponse]] = Call(BY_NAME["heartbeat"])
LEAVE_GROUP: Final[Call[LeaveGroupRequest, LeaveGroupResponse]] = Call(BY_NAME["leave_group"])
API_VERSIONS: Final[Call[ApiVersionsRequest, ApiVersionsResponse]] = Call(BY_NAME["api_versions"])
INIT_PRODUCER_ID: Final[Call[InitProducerIdRequest, InitProducerIdResponse]] = Call(
    BY_NAME["init_producer_id"]
)
OFFSET_FOR_LEADER_EPOCH: Final[Call[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]] = (
    Call(BY_NAME["offset_for_leader_epoch"])
)
