"""Broker configs of the server: identity, sockets, connections, threads, quotas, metrics.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
advertised.listeners LIST - fixed:listeners
    Addresses that clients are told to connect to.
alter.config.policy.class.name CLASS - inert:plugins
    Class that may veto changes of configs.
alter.log.dirs.replication.quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure moves between directories.
alter.log.dirs.replication.quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
background.threads INT 10 >=1 cluster-wide inert:threads
    Threads for background work.
broker.id INT -1 fixed:ids
    Id of this broker.
broker.rack STRING - acts
    Rack of this broker, shown to clients and heeded when replicas are placed.
client.quota.callback.class CLASS - inert:plugins
    Class that decides clients' quotas.
config.providers LIST "" cluster-wide inert:plugins
    Providers that configs may take their values from.
connections.max.idle.ms LONG 600000 acts
    How long a connection may be silent before it is closed, in ms.
controlled.shutdown.enable BOOLEAN true inert:shutdown
    Whether a stopping broker hands over its leaderships first.
controller.quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure changes of topics.
controller.quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
cordoned.log.dirs LIST "" per-broker inert:one_directory
    Directories that take no new replicas.
create.topic.policy.class.name CLASS - inert:plugins
    Class that may veto new topics.
delete.records.purgatory.purge.interval.requests INT 1 inert:purgatory
    Waiting DeleteRecords requests before finished ones are dropped.
early.start.listeners LIST - inert:acl
    Listeners that open before the authorizer is ready.
fetch.max.bytes INT 57671680 >=1024 acts
    Most bytes that one Fetch answers, whatever the client asks for.
fetch.purgatory.purge.interval.requests INT 1000 inert:purgatory
    Waiting Fetch requests before finished ones are dropped.
inter.broker.listener.name STRING - fixed:listeners
    Listener that brokers reach each other by.
kafka.metrics.polling.interval.secs INT 10 >=1 inert:jmx
    How often metrics reporters poll, in seconds.
kafka.metrics.reporters LIST "" inert:jmx
    Classes that report the older kind of metrics.
listener.security.protocol.map STRING \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT per-broker \
fixed:listeners
    Security protocol of each listener name.
listeners LIST PLAINTEXT://:9092 per-broker fixed:listeners
    Addresses that this broker listens on.
max.connection.creation.rate INT 2147483647 >=0 cluster-wide inert:quotas
    New connections a second.
max.connections INT 2147483647 >=0 cluster-wide acts
    Connections at once.
max.connections.per.ip INT 2147483647 >=0 cluster-wide acts
    Connections at once from one address.
max.connections.per.ip.overrides STRING "" cluster-wide inert:overrides
    Other limits for single addresses.
max.incremental.fetch.session.cache.slots INT 1000 >=0 acts
    Incremental fetch sessions kept at once (KIP-227).
max.request.partition.size.limit INT 2000 >=1 acts
    Most partitions that one DescribeTopicPartitions answers.
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter cluster-wide inert:jmx
    Classes that report metrics.
metrics.num.samples INT 2 >=1 inert:jmx
    Samples kept for each metric.
metrics.recording.level STRING INFO inert:jmx
    How detailed the metrics are.
metrics.sample.window.ms LONG 30000 >=1 inert:jmx
    Span of one sample, in ms.
node.id INT - >=0 fixed:ids
    Id of this node.
num.io.threads INT 8 >=1 cluster-wide inert:threads
    Threads that work on requests.
num.network.threads INT 3 >=1 cluster-wide inert:threads
    Threads that read and write sockets.
principal.builder.class CLASS \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder per-broker inert:plugins
    Class that names who is at the other end.
process.roles LIST - one-of:broker,controller fixed:roles
    Whether this process is a broker, a controller, or both.
producer.purgatory.purge.interval.requests INT 1000 inert:purgatory
    Waiting Produce requests before finished ones are dropped.
queued.max.request.bytes LONG -1 inert:queues
    Bytes of requests that may queue.
queued.max.requests INT 500 >=1 inert:queues
    Requests that may queue.
quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure clients.
quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
replication.quota.window.num INT 11 >=1 inert:quotas
    Samples kept to measure replication.
replication.quota.window.size.seconds INT 1 >=1 inert:quotas
    Span of one such sample, in seconds.
request.timeout.ms INT 30000 inert:inter_broker
    How long this broker waits for another's answer, in ms.
security.inter.broker.protocol STRING PLAINTEXT one-of:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL \
fixed:listeners
    Security protocol between brokers.
server.max.startup.time.ms LONG 9223372036854775807 >=0 hidden inert:delay
    How long a start may take, in ms.
socket.connection.setup.timeout.max.ms LONG 30000 inert:inter_broker
    Longest wait for a connection to another broker, in ms.
socket.connection.setup.timeout.ms LONG 10000 inert:inter_broker
    First wait for a connection to another broker, in ms.
socket.listen.backlog.size INT 50 >=1 acts
    Connections that may wait to be accepted.
socket.receive.buffer.bytes INT 102400 inert:buffers
    Receive buffer of a connection, in bytes.
socket.request.max.bytes INT 104857600 >=1 acts
    Largest request, in bytes.
socket.send.buffer.bytes INT 102400 inert:buffers
    Send buffer of a connection, in bytes.
telemetry.max.bytes INT 1048576 >=1 acts
    Largest push of client telemetry, in bytes (KIP-714).
unstable.api.versions.enable BOOLEAN false hidden inert:unstable
    Whether unreleased versions of APIs are served.
unstable.feature.versions.enable BOOLEAN false hidden inert:unstable
    Whether unreleased levels of features are served.
"""
