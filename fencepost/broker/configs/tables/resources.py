"""Configs of groups and of client metrics subscriptions (KIP-714).

Their rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

GROUP: Final = """\
consumer.assignment.interval.ms INT 1000 >=0 inert:consumer_groups
    Shortest time between two assignments of this consumer group, in ms.
consumer.heartbeat.interval.ms INT 5000 >=1 inert:consumer_groups
    Heartbeat interval of this consumer group's members, in ms.
consumer.session.timeout.ms INT 45000 >=1 inert:consumer_groups
    Silence after which this consumer group drops a member, in ms.
share.assignment.interval.ms INT 1000 >=0 inert:share_groups
    Shortest time between two assignments of this share group, in ms.
share.auto.offset.reset STRING latest inert:share_groups
    Where this share group starts: latest, earliest, or by_duration:PnDTnHnMn.nS.
share.delivery.count.limit INT 5 >=2 inert:share_groups
    How often a record may be delivered to this share group.
share.heartbeat.interval.ms INT 5000 >=1 inert:share_groups
    Heartbeat interval of this share group's members, in ms.
share.isolation.level STRING read_uncommitted one-of:read_committed,read_uncommitted \
inert:share_groups
    Whether this share group reads records of open and aborted transactions.
share.partition.max.record.locks INT 2000 >=100 inert:share_groups
    Records of a share-partition that may be locked at once.
share.record.lock.duration.ms INT 30000 >=1000 inert:share_groups
    How long an acquired record stays locked, in ms.
share.renew.acknowledge.enable BOOLEAN true inert:share_groups
    Whether a consumer may renew its lock on a record.
share.session.timeout.ms INT 45000 >=1 inert:share_groups
    Silence after which this share group drops a member, in ms.
streams.assignment.interval.ms INT 1000 >=0 inert:streams_groups
    Shortest time between two assignments of this streams group, in ms.
streams.heartbeat.interval.ms INT 5000 >=1 inert:streams_groups
    Heartbeat interval of this streams group's members, in ms.
streams.initial.rebalance.delay.ms INT 3000 >=0 inert:streams_groups
    How long this streams group waits for more members when it is new, in ms.
streams.num.standby.replicas INT 0 >=0 inert:streams_groups
    Standby replicas of each task.
streams.session.timeout.ms INT 45000 >=1 inert:streams_groups
    Silence after which this streams group drops a member, in ms.
"""

CLIENT_METRICS: Final = """\
interval.ms INT 300000 inert:subscriptions
    How often clients push these metrics, in ms.
match LIST "" inert:subscriptions
    Which clients push them, as attribute=pattern.
metrics LIST "" inert:subscriptions
    Prefixes of the metrics that are pushed; * for all.
"""
