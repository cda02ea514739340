"""DescribeCluster (60), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribeClusterRequest(Struct, frozen=True, kw_only=True, gc=False):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # v1+
    include_fenced_brokers: bool = False  # v2+


class DescribeClusterBroker(Struct, frozen=True, kw_only=True, gc=False):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False  # v2+


class DescribeClusterResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = -2147483648
    endpoint_type: int = 1  # v1+
