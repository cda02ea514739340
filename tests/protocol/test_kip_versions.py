"""The versions that KIP-320, KIP-207 and KIP-1023 brought, byte for byte.

A body is written in three parts: what comes before the new field, the field, and what comes after.
The version before is the same without the part in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack
from typing import Final

import pytest

from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec.schema import Side
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.protocol.bodies import Message, decode, encode


@dataclass(frozen=True, kw_only=True)
class Row:
    """A message, and its body in the version that brought a field."""

    api: str
    version: int
    side: Side
    message: Message
    before: bytes
    new: bytes = b""
    after: bytes = b""

    def __str__(self) -> str:
        return f"{self.api}-v{self.version}-{self.side}"


TOPIC_T: Final = pack(">ih1si", 1, 1, b"t", 1)
"""One topic, named t, with one partition."""

FETCH: Final = (
    Row(
        api="fetch",
        version=9,
        side="request",
        message=FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1000,
            isolation_level=1,
            topics=(
                FetchTopic(
                    topic="t",
                    partitions=(
                        FetchPartition(
                            partition=7,
                            current_leader_epoch=5,
                            fetch_offset=40,
                            log_start_offset=3,
                            partition_max_bytes=99,
                        ),
                    ),
                ),
            ),
        ),
        before=pack(">iiiibii", -1, 500, 1, 1000, 1, 0, -1) + TOPIC_T + pack(">i", 7),
        new=pack(">i", 5),
        after=pack(">qqi", 40, 3, 99) + pack(">i", 0),
    ),
    Row(
        api="fetch",
        version=9,
        side="response",
        message=FetchResponse(
            throttle_time_ms=2,
            responses=(
                FetchableTopicResponse(
                    topic="t",
                    partitions=(
                        PartitionData(
                            partition_index=7,
                            error_code=74,
                            high_watermark=50,
                            last_stable_offset=49,
                            log_start_offset=3,
                            aborted_transactions=None,
                        ),
                    ),
                ),
            ),
        ),
        before=pack(">ihi", 2, 0, 0) + TOPIC_T + pack(">ihqqqii", 7, 74, 50, 49, 3, -1, -1),
    ),
)
# The version before is not served.
OFFSET_FOR_LEADER_EPOCH: Final = (
    Row(
        api="offset_for_leader_epoch",
        version=2,
        side="request",
        message=OffsetForLeaderEpochRequest(
            topics=(
                OffsetForLeaderTopic(
                    topic="t",
                    partitions=(
                        OffsetForLeaderPartition(
                            partition=7, current_leader_epoch=5, leader_epoch=4
                        ),
                    ),
                ),
            )
        ),
        before=TOPIC_T + pack(">i", 7),
        new=pack(">i", 5),
        after=pack(">i", 4),
    ),
    Row(
        api="offset_for_leader_epoch",
        version=2,
        side="response",
        message=OffsetForLeaderEpochResponse(
            throttle_time_ms=2,
            topics=(
                OffsetForLeaderTopicResult(
                    topic="t",
                    partitions=(
                        EpochEndOffset(error_code=75, partition=7, leader_epoch=4, end_offset=40),
                    ),
                ),
            ),
        ),
        before=b"",
        new=pack(">i", 2),
        after=TOPIC_T + pack(">hiiq", 75, 7, 4, 40),
    ),
)
METADATA: Final = (
    Row(
        api="metadata",
        version=7,
        side="request",
        message=MetadataRequest(
            topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False
        ),
        before=pack(">ih1s?", 1, 1, b"t", False),
    ),
    Row(
        api="metadata",
        version=7,
        side="response",
        message=MetadataResponse(
            throttle_time_ms=2,
            brokers=(MetadataResponseBroker(node_id=1, host="h", port=9092, rack=None),),
            cluster_id="c",
            controller_id=1,
            topics=(
                MetadataResponseTopic(
                    error_code=0,
                    name="t",
                    is_internal=False,
                    partitions=(
                        MetadataResponsePartition(
                            error_code=9,
                            partition_index=7,
                            leader_id=1,
                            leader_epoch=5,
                            replica_nodes=(1, 2),
                            isr_nodes=(1,),
                            offline_replicas=(2,),
                        ),
                    ),
                ),
            ),
        ),
        before=(
            pack(">i", 2)
            + pack(">iih1sih", 1, 1, 1, b"h", 9092, -1)
            + pack(">h1si", 1, b"c", 1)
            + pack(">ihh1s?", 1, 0, 1, b"t", False)
            + pack(">ihii", 1, 9, 7, 1)
        ),
        new=pack(">i", 5),
        after=pack(">iii", 2, 1, 2) + pack(">ii", 1, 1) + pack(">ii", 1, 2),
    ),
)
OFFSET_COMMIT: Final = (
    Row(
        api="offset_commit",
        version=6,
        side="request",
        message=OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=4,
            member_id="m",
            topics=(
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=7,
                            committed_offset=40,
                            committed_leader_epoch=5,
                            committed_metadata="x",
                        ),
                    ),
                ),
            ),
        ),
        before=pack(">h1sih1s", 1, b"g", 4, 1, b"m") + TOPIC_T + pack(">iq", 7, 40),
        new=pack(">i", 5),
        after=pack(">h1s", 1, b"x"),
    ),
    Row(
        api="offset_commit",
        version=6,
        side="response",
        message=OffsetCommitResponse(
            throttle_time_ms=2,
            topics=(
                OffsetCommitResponseTopic(
                    name="t",
                    partitions=(OffsetCommitResponsePartition(partition_index=7, error_code=3),),
                ),
            ),
        ),
        before=pack(">i", 2) + TOPIC_T + pack(">ih", 7, 3),
    ),
)
TXN_OFFSET_COMMIT: Final = (
    Row(
        api="txn_offset_commit",
        version=2,
        side="request",
        message=TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=4,
            producer_epoch=1,
            topics=(
                TxnOffsetCommitRequestTopic(
                    name="t",
                    partitions=(
                        TxnOffsetCommitRequestPartition(
                            partition_index=7,
                            committed_offset=40,
                            committed_leader_epoch=5,
                            committed_metadata="x",
                        ),
                    ),
                ),
            ),
        ),
        before=pack(">h1sh1sqh", 1, b"x", 1, b"g", 4, 1) + TOPIC_T + pack(">iq", 7, 40),
        new=pack(">i", 5),
        after=pack(">h1s", 1, b"x"),
    ),
    Row(
        api="txn_offset_commit",
        version=2,
        side="response",
        message=TxnOffsetCommitResponse(
            throttle_time_ms=2,
            topics=(
                TxnOffsetCommitResponseTopic(
                    name="t",
                    partitions=(TxnOffsetCommitResponsePartition(partition_index=7, error_code=3),),
                ),
            ),
        ),
        before=pack(">i", 2) + TOPIC_T + pack(">ih", 7, 3),
    ),
)
OFFSET_FETCH: Final = (
    Row(
        api="offset_fetch",
        version=5,
        side="request",
        message=OffsetFetchRequest(
            group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(7,)),)
        ),
        before=pack(">h1s", 1, b"g") + TOPIC_T + pack(">i", 7),
    ),
    Row(
        api="offset_fetch",
        version=5,
        side="response",
        message=OffsetFetchResponse(
            throttle_time_ms=2,
            topics=(
                OffsetFetchResponseTopic(
                    name="t",
                    partitions=(
                        OffsetFetchResponsePartition(
                            partition_index=7,
                            committed_offset=40,
                            committed_leader_epoch=5,
                            metadata="x",
                            error_code=3,
                        ),
                    ),
                ),
            ),
            error_code=16,
        ),
        before=pack(">i", 2) + TOPIC_T + pack(">iq", 7, 40),
        new=pack(">i", 5),
        after=pack(">h1sh", 1, b"x", 3) + pack(">h", 16),
    ),
)


def lookup(version: int, side: Side, message: Message, *parts: bytes) -> Row:
    before, new, after = (*parts, b"", b"")[:3]
    return Row(
        api="list_offsets",
        version=version,
        side=side,
        message=message,
        before=before,
        new=new,
        after=after,
    )


def lookup_request(**fields: int) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=7, timestamp=-2, current_leader_epoch=5)
    topic = ListOffsetsTopic(name="t", partitions=(partition,))
    return ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=(topic,), **fields)


FOUND: Final = ListOffsetsResponse(
    throttle_time_ms=2,
    topics=(
        ListOffsetsTopicResponse(
            name="t",
            partitions=(
                ListOffsetsPartitionResponse(
                    partition_index=7,
                    error_code=78,
                    timestamp=1_600_000_000_000,
                    offset=40,
                    leader_epoch=5,
                ),
            ),
        ),
    ),
)
_ASKED: Final = pack(">ib", -1, 1) + TOPIC_T + pack(">i", 7)
_FOUND: Final = pack(">i", 2) + TOPIC_T + pack(">ihqq", 7, 78, 1_600_000_000_000, 40)
# Compact arrays and strings, and a tag section for each struct, since v6.
_COMPACT_T: Final = b"\2\2t\2"
LIST_OFFSETS: Final = (
    # KIP-320: epochs.
    lookup(4, "request", lookup_request(), _ASKED, pack(">i", 5), pack(">q", -2)),
    lookup(4, "response", FOUND, _FOUND, pack(">i", 5)),
    # KIP-207: an error, and no field.
    lookup(5, "request", lookup_request(), _ASKED + pack(">iq", 5, -2)),
    lookup(5, "response", FOUND, _FOUND + pack(">i", 5)),
    # KIP-1023: a target, and no field. The time-out came with v10, and with KIP-1075.
    lookup(
        11,
        "request",
        lookup_request(timeout_ms=30),
        pack(">ib", -1, 1) + _COMPACT_T + pack(">iiq", 7, 5, -2) + b"\0\0" + pack(">i", 30) + b"\0",
    ),
    lookup(
        11,
        "response",
        FOUND,
        pack(">i", 2) + _COMPACT_T + pack(">ihqqi", 7, 78, 1_600_000_000_000, 40, 5) + b"\0\0\0",
    ),
)
ROWS: Final = (
    *FETCH,
    *OFFSET_FOR_LEADER_EPOCH,
    *METADATA,
    *OFFSET_COMMIT,
    *TXN_OFFSET_COMMIT,
    *OFFSET_FETCH,
    *LIST_OFFSETS,
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_version_has_the_field_that_its_kip_says(row: Row) -> None:
    body = row.before + row.new + row.after
    assert encode(row.api, row.version, row.side, row.message) == body
    assert decode(row.api, row.version, row.side, body) == row.message


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.version > BY_NAME[row.api].min_version], ids=str
)
def test_and_differs_from_the_version_before_by_nothing_else(row: Row) -> None:
    assert encode(row.api, row.version - 1, row.side, row.message) == row.before + row.after
