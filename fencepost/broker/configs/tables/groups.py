"""Broker configs of the newer groups: consumer (KIP-848), share (KIP-932), streams (KIP-1071).

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
group.consumer.assignment.interval.ms INT 1000 >=0 cluster-wide inert:consumer_groups
    Shortest time between two assignments of a consumer group, in ms.
group.consumer.assignors LIST uniform,range inert:consumer_groups
    Server-side assignors of consumer groups, the default first.
group.consumer.heartbeat.interval.ms INT 5000 >=1 inert:consumer_groups
    Heartbeat interval of consumer group members, in ms.
group.consumer.max.assignment.interval.ms INT 15000 >=0 inert:consumer_groups
    Largest consumer.assignment.interval.ms a group may have.
group.consumer.max.heartbeat.interval.ms INT 15000 >=1 inert:consumer_groups
    Largest consumer.heartbeat.interval.ms a group may have.
group.consumer.max.session.timeout.ms INT 60000 >=1 inert:consumer_groups
    Largest consumer.session.timeout.ms a group may have.
group.consumer.max.size INT 2147483647 >=1 inert:consumer_groups
    Most members of a consumer group.
group.consumer.migration.policy STRING bidirectional \
any-case:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL inert:consumer_groups
    Which way groups may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms INT 0 >=0 inert:consumer_groups
    Smallest consumer.assignment.interval.ms a group may have.
group.consumer.min.heartbeat.interval.ms INT 5000 >=1 inert:consumer_groups
    Smallest consumer.heartbeat.interval.ms a group may have.
group.consumer.min.session.timeout.ms INT 45000 >=1 inert:consumer_groups
    Smallest consumer.session.timeout.ms a group may have.
group.consumer.regex.refresh.interval.ms INT 600000 >=10000 hidden inert:consumer_groups
    How often subscribed patterns are matched anew, in ms.
group.consumer.session.timeout.ms INT 45000 >=1 inert:consumer_groups
    Silence after which a consumer group drops a member, in ms.
group.share.assignment.interval.ms INT 1000 >=0 cluster-wide inert:share_groups
    Shortest time between two assignments of a share group, in ms.
group.share.assignors LIST simple inert:share_groups
    Server-side assignors of share groups.
group.share.delivery.count.limit INT 5 2..10 inert:share_groups
    How often a record may be delivered to a share group.
group.share.heartbeat.interval.ms INT 5000 >=1 inert:share_groups
    Heartbeat interval of share group members, in ms.
group.share.initialize.retry.interval.ms INT 30000 >=1 hidden inert:share_groups
    Wait before a share group's state is initialised again, in ms.
group.share.max.assignment.interval.ms INT 15000 >=0 inert:share_groups
    Largest share.assignment.interval.ms a group may have.
group.share.max.delivery.count.limit INT 10 5..25 inert:share_groups
    Largest share.delivery.count.limit a group may have.
group.share.max.heartbeat.interval.ms INT 15000 >=1 inert:share_groups
    Largest share.heartbeat.interval.ms a group may have.
group.share.max.partition.max.record.locks INT 4000 2000..10000 inert:share_groups
    Largest share.partition.max.record.locks a group may have.
group.share.max.record.lock.duration.ms INT 60000 30000..3600000 inert:share_groups
    Largest share.record.lock.duration.ms a group may have.
group.share.max.session.timeout.ms INT 60000 >=1 inert:share_groups
    Largest share.session.timeout.ms a group may have.
group.share.max.share.sessions INT 2000 >=1 inert:share_groups
    Share sessions of a broker at once.
group.share.max.size INT 200 1..1000 inert:share_groups
    Most members of a share group.
group.share.min.assignment.interval.ms INT 0 >=0 inert:share_groups
    Smallest share.assignment.interval.ms a group may have.
group.share.min.delivery.count.limit INT 2 2..5 inert:share_groups
    Smallest share.delivery.count.limit a group may have.
group.share.min.heartbeat.interval.ms INT 5000 >=1 inert:share_groups
    Smallest share.heartbeat.interval.ms a group may have.
group.share.min.partition.max.record.locks INT 100 100..2000 inert:share_groups
    Smallest share.partition.max.record.locks a group may have.
group.share.min.record.lock.duration.ms INT 15000 1000..30000 inert:share_groups
    Smallest share.record.lock.duration.ms a group may have.
group.share.min.session.timeout.ms INT 45000 >=1 inert:share_groups
    Smallest share.session.timeout.ms a group may have.
group.share.partition.max.record.locks INT 2000 100..10000 inert:share_groups
    Records of a share-partition that may be locked at once.
group.share.persister.class.name STRING \
org.apache.kafka.server.share.persister.DefaultStatePersister hidden inert:share_groups
    Class that keeps share groups' state.
group.share.record.lock.duration.ms INT 30000 1000..3600000 inert:share_groups
    How long an acquired record stays locked, in ms.
group.share.session.timeout.ms INT 45000 >=1 inert:share_groups
    Silence after which a share group drops a member, in ms.
group.streams.assignment.interval.ms INT 1000 >=0 cluster-wide inert:streams_groups
    Shortest time between two assignments of a streams group, in ms.
group.streams.heartbeat.interval.ms INT 5000 >=1 inert:streams_groups
    Heartbeat interval of streams group members, in ms.
group.streams.initial.rebalance.delay.ms INT 3000 >=0 inert:streams_groups
    How long a new streams group waits for more members, in ms.
group.streams.max.assignment.interval.ms INT 15000 >=0 inert:streams_groups
    Largest streams.assignment.interval.ms a group may have.
group.streams.max.heartbeat.interval.ms INT 15000 >=1 inert:streams_groups
    Largest streams.heartbeat.interval.ms a group may have.
group.streams.max.session.timeout.ms INT 60000 >=1 inert:streams_groups
    Largest streams.session.timeout.ms a group may have.
group.streams.max.size INT 2147483647 >=1 inert:streams_groups
    Most members of a streams group.
group.streams.max.standby.replicas INT 2 >=0 inert:streams_groups
    Largest streams.num.standby.replicas a group may have.
group.streams.min.assignment.interval.ms INT 0 >=0 inert:streams_groups
    Smallest streams.assignment.interval.ms a group may have.
group.streams.min.heartbeat.interval.ms INT 5000 >=1 inert:streams_groups
    Smallest streams.heartbeat.interval.ms a group may have.
group.streams.min.session.timeout.ms INT 45000 >=1 inert:streams_groups
    Smallest streams.session.timeout.ms a group may have.
group.streams.num.standby.replicas INT 0 >=0 inert:streams_groups
    Standby replicas of each task.
group.streams.session.timeout.ms INT 45000 >=1 inert:streams_groups
    Silence after which a streams group drops a member, in ms.
share.coordinator.append.linger.ms INT -1 >=-1 inert:share_groups
    How long the share coordinator gathers writes, in ms; -1 adapts.
share.coordinator.cached.buffer.max.bytes INT 1048588 >=524288 cluster-wide inert:share_groups
    Largest buffer the share coordinator keeps for reuse, in bytes.
share.coordinator.cold.partition.snapshot.interval.ms INT 300000 >=1 hidden inert:share_groups
    How often the state of quiet share-partitions is written whole, in ms.
share.coordinator.load.buffer.size INT 5242880 >=1 inert:share_groups
    Bytes read at a time when share state is loaded.
share.coordinator.snapshot.update.records.per.snapshot INT 500 0..500 inert:share_groups
    Updates between two whole writes of a share-partition's state.
share.coordinator.state.topic.compression.codec INT 0 inert:share_groups
    Codec of the share state topic, by number.
share.coordinator.state.topic.min.isr SHORT 2 >=1 inert:share_groups
    In-sync replicas that the share state topic needs.
share.coordinator.state.topic.num.partitions INT 50 >=1 inert:share_groups
    Partitions of the share state topic.
share.coordinator.state.topic.prune.interval.ms INT 300000 >=1 hidden inert:share_groups
    How often records that are no longer needed leave the share state topic, in ms.
share.coordinator.state.topic.replication.factor SHORT 3 >=1 inert:share_groups
    Replicas of the share state topic.
share.coordinator.state.topic.segment.bytes INT 104857600 >=1 inert:share_groups
    Segment size of the share state topic, in bytes.
share.coordinator.threads INT 1 >=1 inert:share_groups
    Threads of the share coordinator.
share.coordinator.write.timeout.ms INT 5000 >=1 inert:share_groups
    How long the share coordinator waits for its topic's replicas, in ms.
share.fetch.purgatory.purge.interval.requests INT 1000 inert:share_groups
    Waiting ShareFetch requests before finished ones are dropped.
"""
