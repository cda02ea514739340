"""WriteTxnMarkers (27), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class WritableTxnMarkerTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class WritableTxnMarker(Struct, frozen=True, kw_only=True, gc=False):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0  # v2+


class WriteTxnMarkersRequest(Struct, frozen=True, kw_only=True, gc=False):
    markers: tuple[WritableTxnMarker, ...] = ()


class WritableTxnMarkerPartitionResult(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0


class WritableTxnMarkerTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Struct, frozen=True, kw_only=True, gc=False):
    producer_id: int = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


class WriteTxnMarkersResponse(Struct, frozen=True, kw_only=True, gc=False):
    markers: tuple[WritableTxnMarkerResult, ...] = ()
