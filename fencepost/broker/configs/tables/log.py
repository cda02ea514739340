"""Broker configs of logs: segments, retention, compaction, timestamps, and topic defaults.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
compression.gzip.level INT -1 1..9|-1 cluster-wide acts
    Level of gzip where compression.type recompresses with it.
compression.lz4.level INT 9 1..17 cluster-wide acts
    Level of lz4 where compression.type recompresses with it.
compression.type STRING producer one-of:uncompressed,zstd,lz4,snappy,gzip,producer cluster-wide acts
    Codec that batches are stored with; producer keeps each batch as it came.
compression.zstd.level INT 3 -131072..22 cluster-wide acts
    Level of zstd where compression.type recompresses with it.
log.cleaner.backoff.ms LONG 15000 >=0 cluster-wide acts
    How long the log cleaner rests before it looks for logs to compact again, in ms.
log.cleaner.dedupe.buffer.size LONG 134217728 cluster-wide inert:cleaner
    Memory for the key map of all cleaner threads, in bytes.
log.cleaner.delete.retention.ms LONG 86400000 >=0 cluster-wide acts
    How long tombstones outlive compaction, in ms.
log.cleaner.enable BOOLEAN true acts
    Whether logs are compacted at all.
log.cleaner.io.buffer.load.factor DOUBLE 0.9 cluster-wide inert:cleaner
    How full the key map may become.
log.cleaner.io.buffer.size INT 524288 >=0 cluster-wide inert:cleaner
    Memory for the input and output of all cleaner threads, in bytes.
log.cleaner.io.max.bytes.per.second DOUBLE 1.7976931348623157E308 cluster-wide inert:quotas
    Ceiling of what the cleaner reads and writes, in bytes a second.
log.cleaner.max.compaction.lag.ms LONG 9223372036854775807 >=1 cluster-wide acts
    When a record must have been compacted at the latest, in ms after it was written.
log.cleaner.min.cleanable.ratio DOUBLE 0.5 0..1 cluster-wide acts
    Share of a log that must be uncompacted before it is compacted.
log.cleaner.min.compaction.lag.ms LONG 0 >=0 cluster-wide acts
    How long a record stays uncompacted at least, in ms.
log.cleaner.threads INT 1 >=0 cluster-wide inert:threads
    Threads that compact logs.
log.cleanup.policy LIST delete one-of:compact,delete cluster-wide acts
    What becomes of old records: delete, compact, both, or (empty) neither.
log.dir LIST /tmp/kafka-logs fixed:directories
    Directories of the logs, where log.dirs is not set.
log.dir.failure.timeout.ms LONG 30000 >=1 inert:failures
    How long a failed directory may go unreported before the broker stops, in ms.
log.dirs LIST - fixed:directories
    Directories of the logs.
log.flush.interval.messages LONG 9223372036854775807 >=1 cluster-wide on-disk:flush
    Records in a partition before they are forced to disk.
log.flush.interval.ms LONG - cluster-wide on-disk:flush
    How long a record may wait to be forced to disk, in ms.
log.flush.offset.checkpoint.interval.ms INT 60000 >=0 on-disk:in_memory
    How often the recovery point is written, in ms.
log.flush.scheduler.interval.ms LONG 9223372036854775807 on-disk:flush
    How often it is checked whether a log must be forced to disk, in ms.
log.flush.start.offset.checkpoint.interval.ms INT 60000 >=0 on-disk:in_memory
    How often log start offsets are written, in ms.
log.index.interval.bytes INT 4096 >=0 cluster-wide on-disk:index
    Bytes between two entries of the offset index.
log.index.size.max.bytes INT 10485760 >=4 cluster-wide on-disk:index
    Largest offset index, in bytes.
log.initial.task.delay.ms LONG 30000 >=0 hidden inert:delay
    How long a broker waits before it first looks after its logs, in ms.
log.local.retention.bytes LONG -2 >=-2 cluster-wide acts
    Bytes of a tiered partition that stay local; -2 means log.retention.bytes.
log.local.retention.ms LONG -2 >=-2 cluster-wide acts
    How long a tiered record stays local, in ms; -2 means log.retention.ms.
log.message.timestamp.after.max.ms LONG 3600000 >=0 cluster-wide acts
    How far ahead of the broker's clock a record's timestamp may be, in ms.
log.message.timestamp.before.max.ms LONG 9223372036854775807 >=0 cluster-wide acts
    How far behind the broker's clock a record's timestamp may be, in ms.
log.message.timestamp.type STRING CreateTime one-of:CreateTime,LogAppendTime cluster-wide acts
    Whose clock stamps records: the producer's or, at append time, the broker's.
log.preallocate BOOLEAN false cluster-wide inert:preallocation
    Whether a segment's file is made at its full size.
log.retention.bytes LONG -1 cluster-wide acts
    Bytes a partition keeps before old segments are deleted; -1 for no limit.
log.retention.check.interval.ms LONG 300000 >=1 acts
    How often expired segments are looked for, in ms.
log.retention.hours INT 168 acts
    How long records are kept, in hours, where neither minutes nor ms say it.
log.retention.minutes INT - acts
    How long records are kept, in minutes, where log.retention.ms does not say it.
log.retention.ms LONG - cluster-wide acts
    How long records are kept, in ms; -1 for ever.
log.roll.hours INT 168 >=1 acts
    Age at which the active segment is closed, in hours, where log.roll.ms does not say it.
log.roll.jitter.hours INT 0 >=0 inert:jitter
    Most that is taken off the age of a segment at random, in hours.
log.roll.jitter.ms LONG - cluster-wide inert:jitter
    Most that is taken off the age of a segment at random, in ms.
log.roll.ms LONG - cluster-wide acts
    Age at which the active segment is closed, in ms.
log.segment.bytes INT 1073741824 >=1048576 cluster-wide acts
    Size at which the active segment is closed, in bytes.
log.segment.delete.delay.ms LONG 60000 >=0 cluster-wide inert:deletion
    How long a deleted segment's file remains, in ms.
message.max.bytes INT 1048588 >=0 cluster-wide acts
    Largest batch a topic accepts, in bytes.
"""
