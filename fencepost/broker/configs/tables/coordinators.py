"""Broker configs of classic groups, committed offsets, producer ids and transactions.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
add.partitions.to.txn.retry.backoff.max.ms INT 100 >=0 inert:transactions
    Longest wait of the server before it adds partitions to a transaction again, in ms.
add.partitions.to.txn.retry.backoff.ms INT 20 >=1 inert:transactions
    First wait of the server before it adds partitions to a transaction again, in ms.
group.coordinator.append.linger.ms INT -1 >=-1 inert:linger
    How long the group coordinator gathers writes, in ms; -1 adapts.
group.coordinator.background.threads INT 2 >=1 inert:threads
    Threads of the group coordinator for background work.
group.coordinator.cached.buffer.max.bytes INT 1048588 >=524288 cluster-wide inert:linger
    Largest buffer the group coordinator keeps for reuse, in bytes.
group.coordinator.rebalance.protocols LIST classic,consumer,streams \
one-of:consumer,classic,share,streams inert:protocols
    Group protocols that are served.
group.coordinator.threads INT 4 >=1 inert:threads
    Threads of the group coordinator.
group.initial.rebalance.delay.ms INT 3000 acts
    How long an empty group waits for more members before its first rebalance, in ms.
group.max.session.timeout.ms INT 1800000 acts
    Longest session timeout a member may ask for, in ms.
group.max.size INT 2147483647 >=1 acts
    Most members of a group.
group.min.session.timeout.ms INT 6000 acts
    Shortest session timeout a member may ask for, in ms.
offset.metadata.max.bytes INT 4096 acts
    Longest metadata text of a committed offset, in bytes.
offsets.commit.timeout.ms INT 5000 >=1 acts
    How long a commit waits for the offsets topic's replicas, in ms.
offsets.load.buffer.size INT 5242880 >=1 inert:loading
    Bytes read at a time when committed offsets are loaded.
offsets.retention.check.interval.ms LONG 600000 >=1 acts
    How often expired offsets are looked for, in ms.
offsets.retention.minutes INT 10080 >=1 acts
    How long offsets outlive their group's last use, in minutes.
offsets.topic.compression.codec INT 0 inert:loading
    Codec of the offsets topic, by number.
offsets.topic.num.partitions INT 50 >=1 acts
    Partitions of the offsets topic.
offsets.topic.replication.factor SHORT 3 >=1 acts
    Replicas of the offsets topic.
offsets.topic.segment.bytes INT 104857600 >=1 acts
    Segment size of the offsets topic, in bytes.
producer.id.expiration.check.interval.ms INT 600000 >=1 hidden inert:delay
    How often expired producer ids are looked for, in ms.
producer.id.expiration.ms INT 86400000 >=1 cluster-wide acts
    How long a partition remembers an idle producer id, in ms.
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 10000 >=1 inert:transactions
    How often overdue transactions are aborted, in ms.
transaction.max.timeout.ms INT 900000 >=1 inert:transactions
    Longest transaction timeout a producer may ask for, in ms.
transaction.partition.verification.enable BOOLEAN true cluster-wide inert:transactions
    Whether a partition checks that it is part of the transaction it is written in.
transaction.remove.expired.transaction.cleanup.interval.ms INT 3600000 >=1 inert:transactions
    How often expired transactional ids are removed, in ms.
transaction.state.log.load.buffer.size INT 5242880 >=1 inert:transactions
    Bytes read at a time when transactions are loaded.
transaction.state.log.min.isr INT 2 >=1 inert:transactions
    In-sync replicas that the transaction topic needs.
transaction.state.log.num.partitions INT 50 >=1 inert:transactions
    Partitions of the transaction topic.
transaction.state.log.replication.factor SHORT 3 >=1 inert:transactions
    Replicas of the transaction topic.
transaction.state.log.segment.bytes INT 104857600 >=1 inert:transactions
    Segment size of the transaction topic, in bytes.
transaction.two.phase.commit.enable BOOLEAN false inert:transactions
    Whether producers may take part in two-phase commits (KIP-939).
transactional.id.expiration.ms INT 604800000 >=1 inert:transactions
    How long an idle transactional id is remembered, in ms.
"""
