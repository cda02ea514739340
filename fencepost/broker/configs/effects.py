"""Why a config of Kafka's has no effect here: the reasons that refusals give, by key.

A row of a table that says ``inert:threads`` or ``fixed:ids`` names its reason by the key. A config
begins to act when its row says ``acts`` and `settings` or `resolve` hands it to whoever heeds it.
"""

from collections.abc import Mapping
from typing import Final

REASONS: Final[Mapping[str, str]] = {
    # fixed: fencepost's own options decide.
    "directories": "logs are kept in memory",
    "ids": "broker ids run from 1, and --brokers says how many there are",
    "listeners": "--host, --port and --advertise decide where brokers listen",
    "roles": "the controller is part of the process",
    # inert: nothing here would heed it.
    "acl": "there is no authorization",
    "buffers": "socket buffers are left to the operating system",
    "cleaner": "compaction keeps its key map in ordinary memory",
    "consumer_groups": "groups of the consumer protocol, KIP-848, are not served",
    "controller": "the controller hears of its brokers without heartbeats",
    "delay": "background work starts with the broker",
    "disk": "logs are kept in memory",
    "flush": "nothing is ever forced to disk",
    "followers": "followers fetch at once and without sockets",
    "index": "there are no index files",
    "inter_broker": "brokers reach each other within the process",
    "jitter": "segments are closed exactly when segment.ms says",
    "jmx": "metrics are served by /metrics of the control port",
    "linger": "coordinators write at once",
    "loading": "coordinators keep their records as they are in memory",
    "overrides": "max.connections.per.ip holds for every address",
    "plugins": "Java classes cannot be loaded",
    "protocols": "ApiVersions says which group protocols are served",
    "purgatory": "a waiting request is dropped as soon as it is answered",
    "queues": "requests are taken up in turn, and socket.request.max.bytes bounds each",
    "quorum": "the controller is part of the process and keeps no metadata log",
    "quotas": "nothing is throttled by rate; the control API's faults can throttle a client",
    "rebalance": "leadership moves only when it must or is told to",
    "sasl": "SASL is not served",
    "share_groups": "share groups, KIP-932, are not served",
    "shutdown": "the control API says how a broker goes: stop or kill",
    "streams_groups": "streams groups, KIP-1071, are not served",
    "subscriptions": "clients are never asked for metrics",
    "threads": "one event loop does the work, there are no thread pools",
    "tier": "tiered storage is not served",
    "tls": "TLS is not served",
    "tokens": "delegation tokens are not served",
    "transactions": "transactions are not served",
    "unclean": "a partition without a leader elects one as soon as it may",
    "unstable": "ApiVersions says which versions are served",
}
