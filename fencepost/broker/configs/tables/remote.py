"""Broker configs of tiered storage (KIP-405, KIP-1023).

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
follower.fetch.last.tiered.offset.enable BOOLEAN false cluster-wide acts
    Whether an empty follower starts behind what is tiered, from metadata.version 29 on (KIP-1023).
remote.fetch.max.wait.ms INT 500 >=1 cluster-wide acts
    How long a Fetch waits for tiered records, in ms.
remote.list.offsets.request.timeout.ms LONG 30000 >=1 cluster-wide acts
    How long a ListOffsets waits for the tier, in ms.
remote.log.index.file.cache.total.size.bytes LONG 1073741824 >=1 cluster-wide acts
    Space for indexes fetched from the tier, in bytes.
remote.log.index.file.cache.ttl.ms LONG 900000 >=-1 hidden inert:tier
    How long an unused index fetched from the tier is kept, in ms.
remote.log.manager.copier.thread.pool.size INT 10 >=1 cluster-wide inert:threads
    Threads that copy segments to the tier.
remote.log.manager.copy.max.bytes.per.second LONG 9223372036854775807 >=1 cluster-wide inert:quotas
    Bytes a second that go to the tier.
remote.log.manager.copy.quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure copies to the tier.
remote.log.manager.copy.quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
remote.log.manager.expiration.thread.pool.size INT 10 >=1 cluster-wide inert:threads
    Threads that delete expired segments from the tier.
remote.log.manager.fetch.max.bytes.per.second LONG 9223372036854775807 >=1 cluster-wide inert:quotas
    Bytes a second that come from the tier.
remote.log.manager.fetch.quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure reads of the tier.
remote.log.manager.fetch.quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
remote.log.manager.follower.thread.pool.size INT 2 >=1 cluster-wide inert:threads
    Threads by which followers learn what is tiered.
remote.log.manager.task.interval.ms LONG 30000 >=1 acts
    How often segments are copied and expired, in ms.
remote.log.manager.task.retry.backoff.max.ms LONG 30000 >=1 hidden inert:tier_retries
    Longest wait before a failed task is repeated, in ms.
remote.log.manager.task.retry.backoff.ms LONG 500 >=1 hidden inert:tier_retries
    First wait before a failed task is repeated, in ms.
remote.log.manager.task.retry.jitter DOUBLE 0.2 0..0.5 hidden inert:tier_retries
    Share of that wait that is random.
remote.log.manager.thread.pool.size INT 2 >=1 inert:threads
    Threads by which followers learn what is tiered, by the older name.
remote.log.metadata.custom.metadata.max.bytes INT 128 >=0 inert:tier_metadata
    Largest custom metadata of a tiered segment, in bytes.
remote.log.metadata.manager.class.name STRING \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager non-empty \
inert:tier_metadata
    Class that keeps the tier's metadata.
remote.log.metadata.manager.class.path STRING - inert:tier_metadata
    Where that class is found.
remote.log.metadata.manager.impl.prefix STRING rlmm.config. non-empty inert:tier_metadata
    Prefix of the configs that are passed to that class.
remote.log.metadata.manager.listener.name STRING - non-empty inert:tier_metadata
    Listener by which that class reaches this broker.
remote.log.reader.max.pending.tasks INT 100 >=1 inert:threads
    Reads of the tier that may queue.
remote.log.reader.threads INT 10 >=1 cluster-wide inert:threads
    Threads that read the tier.
remote.log.storage.manager.class.name STRING - non-empty inert:tier_storage
    Class that stores segments in the tier.
remote.log.storage.manager.class.path STRING - inert:tier_storage
    Where that class is found.
remote.log.storage.manager.impl.prefix STRING rsm.config. non-empty inert:tier_storage
    Prefix of the configs that are passed to that class.
remote.log.storage.system.enable BOOLEAN false acts
    Whether this broker serves tiered storage at all.
"""
