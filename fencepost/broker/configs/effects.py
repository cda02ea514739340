"""Why a config of Kafka's has no effect here: the reasons that refusals give, by key.

A row of a table that says ``inert:threads`` or ``fixed:ids`` names its reason by the key. A config
begins to act when its row says ``acts`` and `settings` or `resolve` hands it to whoever heeds it.
"""

from collections.abc import Mapping
from typing import Final

REASONS: Final[Mapping[str, str]] = {
    # fixed: fencepost's own options decide.
    "directories": "--data-dir says where logs are kept, and without it they are in memory",
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
    "deletion": "what is deleted goes at once",
    "failures": "the controller hears of a failed log at once",
    "flush": "nothing is ever forced to disk without --data-dir",
    "followers": "followers fetch at once and without sockets",
    "index": "there are no index files without --data-dir",
    "in_memory": "logs are kept in memory without --data-dir",
    "inter_broker": "brokers reach each other within the process",
    "jitter": "segments are closed exactly when segment.ms says",
    "jmx": "metrics are served by /metrics of the control port",
    "linger": "coordinators write at once",
    "loading": "coordinators keep their records as they are in memory",
    "one_directory": "a broker has one log directory, or none",
    "overrides": "max.connections.per.ip holds for every address",
    "plugins": "Java classes cannot be loaded",
    "protocols": "ApiVersions says which group protocols are served",
    "preallocation": "logs are kept in memory, or in files that grow with what is written",
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
    "tier": "indexes from the tier are kept while there is room for them",
    "tier_metadata": "the metadata of tiered segments lie in the tier, beside them",
    "tier_retries": "what fails in the tier is done again at the next run of the task",
    "tier_storage": "--remote says where the tier is",
    "tls": "TLS is not served",
    "tokens": "delegation tokens are not served",
    "transactions": "transactions are not served",
    "unclean": "a partition without a leader elects one as soon as it may",
    "unstable": "ApiVersions says which versions are served",
}
