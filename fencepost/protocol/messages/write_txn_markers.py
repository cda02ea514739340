"""WriteTxnMarkers (27), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class WritableTxnMarkerTopic:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class WritableTxnMarker:
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersRequest:
    markers: tuple[WritableTxnMarker, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class WritableTxnMarkerPartitionResult:
    partition_index: int = 0
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class WritableTxnMarkerTopicResult:
    name: str = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class WritableTxnMarkerResult:
    producer_id: int = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersResponse:
    markers: tuple[WritableTxnMarkerResult, ...] = ()
