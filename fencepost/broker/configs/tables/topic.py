"""Topic configs.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
cleanup.policy LIST delete one-of:compact,delete acts
    What becomes of old records: delete, compact, both, or (empty) neither.
compression.gzip.level INT -1 1..9|-1 acts
    Level of gzip where compression.type recompresses with it.
compression.lz4.level INT 9 1..17 acts
    Level of lz4 where compression.type recompresses with it.
compression.type STRING producer one-of:uncompressed,zstd,lz4,snappy,gzip,producer acts
    Codec that batches are stored with; producer keeps each batch as it came.
compression.zstd.level INT 3 -131072..22 acts
    Level of zstd where compression.type recompresses with it.
delete.retention.ms LONG 86400000 >=0 acts
    How long tombstones outlive compaction, in ms.
file.delete.delay.ms LONG 60000 >=0 inert:deletion
    How long a deleted segment's file remains, in ms.
flush.messages LONG 9223372036854775807 >=1 on-disk:flush
    Records in a partition before they are forced to disk.
flush.ms LONG 9223372036854775807 >=0 on-disk:flush
    How long a record may wait to be forced to disk, in ms.
follower.replication.throttled.replicas LIST "" throttled-replicas inert:quotas
    Replicas whose fetching is throttled, as partition:broker, or * for all.
index.interval.bytes INT 4096 >=0 on-disk:index
    Bytes between two entries of the offset index.
internal.segment.bytes INT - hidden acts
    Size at which the active segment is closed, below what segment.bytes allows; for tests.
leader.replication.throttled.replicas LIST "" throttled-replicas inert:quotas
    Replicas whose leaders are throttled, as partition:broker, or * for all.
local.retention.bytes LONG -2 >=-2 acts
    Bytes of a tiered partition that stay local; -2 means retention.bytes.
local.retention.ms LONG -2 >=-2 acts
    How long a tiered record stays local, in ms; -2 means retention.ms.
max.compaction.lag.ms LONG 9223372036854775807 >=1 acts
    When a record must have been compacted at the latest, in ms after it was written.
max.message.bytes INT 1048588 >=0 acts
    Largest batch this topic accepts, in bytes.
message.timestamp.after.max.ms LONG 3600000 >=0 acts
    How far ahead of the broker's clock a record's timestamp may be, in ms.
message.timestamp.before.max.ms LONG 9223372036854775807 >=0 acts
    How far behind the broker's clock a record's timestamp may be, in ms.
message.timestamp.type STRING CreateTime one-of:CreateTime,LogAppendTime acts
    Whose clock stamps records: the producer's or, at append time, the broker's.
min.cleanable.dirty.ratio DOUBLE 0.5 0..1 acts
    Share of a log that must be uncompacted before it is compacted.
min.compaction.lag.ms LONG 0 >=0 acts
    How long a record stays uncompacted at least, in ms.
min.insync.replicas INT 1 >=1 acts
    In-sync replicas that an acks=all produce needs.
preallocate BOOLEAN false inert:preallocation
    Whether a segment's file is made at its full size.
remote.log.copy.disable BOOLEAN false acts
    Whether the tier only keeps what it has and takes nothing new.
remote.log.delete.on.disable BOOLEAN false acts
    Whether tiered data goes when tiering is switched off.
remote.storage.enable BOOLEAN false acts
    Whether this topic's closed segments go to the tier.
retention.bytes LONG -1 acts
    Bytes a partition keeps before old segments are deleted; -1 for no limit.
retention.ms LONG 604800000 >=-1 acts
    How long records are kept, in ms; -1 for ever.
segment.bytes INT 1073741824 >=1048576 acts
    Size at which the active segment is closed, in bytes.
segment.index.bytes INT 10485760 >=4 on-disk:index
    Largest offset index, in bytes.
segment.jitter.ms LONG 0 >=0 inert:jitter
    Most that is taken off segment.ms at random, in ms.
segment.ms LONG 604800000 >=1 acts
    Age at which the active segment is closed, in ms.
unclean.leader.election.enable BOOLEAN false acts
    Whether a replica outside the ISR may lead when nothing else is left.
"""
