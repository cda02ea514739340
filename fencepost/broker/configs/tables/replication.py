"""Broker configs of topics, replication and elections.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
auto.create.topics.enable BOOLEAN true acts
    Whether asking for a topic that does not exist creates it.
auto.leader.rebalance.enable BOOLEAN true inert:rebalance also:false
    Whether leadership returns to preferred leaders by itself.
default.replication.factor INT 1 acts
    Replicas of a topic that is created without saying how many.
delete.topic.enable BOOLEAN true acts
    Whether topics may be deleted.
follower.replication.throttled.rate LONG 9223372036854775807 >=0 cluster-wide hidden inert:quotas
    Bytes a second that throttled followers may fetch.
leader.imbalance.check.interval.seconds LONG 300 >=1 inert:rebalance
    How often leadership is checked against preferred leaders, in seconds.
leader.replication.throttled.rate LONG 9223372036854775807 >=0 cluster-wide hidden inert:quotas
    Bytes a second that leaders send to throttled followers.
min.insync.replicas INT 1 >=1 cluster-wide acts
    In-sync replicas that an acks=all produce needs.
num.partitions INT 1 >=1 acts
    Partitions of a topic that is created without saying how many.
num.recovery.threads.per.data.dir INT 2 >=1 cluster-wide inert:threads
    Threads that recover each directory at start.
num.replica.alter.log.dirs.threads INT - inert:threads
    Threads that move replicas between directories.
num.replica.fetchers INT 1 >=1 cluster-wide inert:threads
    Threads that fetch from each leader.
replica.alter.log.dirs.io.max.bytes.per.second LONG 9223372036854775807 >=0 cluster-wide hidden \
inert:quotas
    Bytes a second that moves between directories may take.
replica.fetch.backoff.ms INT 1000 >=0 acts
    How long a follower rests after an error, in ms.
replica.fetch.max.bytes INT 1048576 >=0 acts
    Bytes a follower asks for from one partition.
replica.fetch.min.bytes INT 1 inert:followers
    Bytes a follower waits for.
replica.fetch.response.max.bytes INT 10485760 >=0 acts
    Bytes a follower asks for in one answer.
replica.fetch.wait.max.ms INT 500 inert:followers
    How long a follower's fetch may wait at the leader, in ms.
replica.high.watermark.checkpoint.interval.ms LONG 5000 >=1 acts
    How often high watermarks are written, in ms; a broker that was killed starts with those.
replica.lag.time.max.ms LONG 30000 >=1 acts
    How long a follower may lag before it leaves the ISR, in ms.
replica.selector.class STRING - one-of:\
org.apache.kafka.common.replica.LeaderSelector,\
org.apache.kafka.common.replica.RackAwareReplicaSelector acts
    Class that chooses the replica a consumer reads from (KIP-392); unset, it is the leader.
replica.socket.receive.buffer.bytes INT 65536 inert:followers
    Receive buffer of a follower's connection, in bytes.
replica.socket.timeout.ms INT 30000 inert:followers
    How long a follower waits for an answer, in ms.
unclean.leader.election.enable BOOLEAN false cluster-wide acts
    Whether a replica outside the ISR may lead when nothing else is left.
unclean.leader.election.interval.ms LONG 300000 >=1 hidden inert:unclean
    How often leaderless partitions are looked for, in ms.
"""
