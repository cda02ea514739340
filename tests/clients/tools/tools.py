"""Kafka's command-line tools: their names, and the main classes of 4.3.1's jars behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_T: Final = "org.apache.kafka.tools"

TOOLS: Final[Mapping[str, str]] = {
    "kafka-acls": f"{_T}.AclCommand",
    "kafka-broker-api-versions": f"{_T}.BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{_T}.ClientMetricsCommand",
    "kafka-cluster": f"{_T}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_T}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_T}.ConsoleProducer",
    "kafka-console-share-consumer": f"{_T}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{_T}.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_T}.ConsumerPerformance",
    "kafka-delegation-tokens": f"{_T}.DelegationTokenCommand",
    "kafka-delete-records": f"{_T}.DeleteRecordsCommand",
    "kafka-dump-log": f"{_T}.DumpLogSegments",
    "kafka-e2e-latency": f"{_T}.EndToEndLatency",
    "kafka-features": f"{_T}.FeatureCommand",
    "kafka-get-offsets": f"{_T}.GetOffsetShell",
    "kafka-groups": f"{_T}.GroupsCommand",
    "kafka-leader-election": f"{_T}.LeaderElectionCommand",
    "kafka-log-dirs": f"{_T}.LogDirsCommand",
    "kafka-metadata-quorum": f"{_T}.MetadataQuorumCommand",
    "kafka-producer-perf-test": f"{_T}.ProducerPerformance",
    "kafka-reassign-partitions": f"{_T}.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": f"{_T}.ReplicaVerificationTool",
    "kafka-share-consumer-perf-test": f"{_T}.ShareConsumerPerformance",
    "kafka-share-groups": f"{_T}.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": f"{_T}.StreamsResetter",
    "kafka-streams-groups": f"{_T}.streams.StreamsGroupCommand",
    "kafka-topics": f"{_T}.TopicCommand",
    "kafka-transactions": f"{_T}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{_T}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{_T}.VerifiableProducer",
    "kafka-verifiable-share-consumer": f"{_T}.VerifiableShareConsumer",
    # Those that Kafka's system tests run by the name of their class.
    "ClientCompatibilityTest": f"{_T}.ClientCompatibilityTest",
    "LogCompactionTester": f"{_T}.LogCompactionTester",
    "TransactionalMessageCopier": f"{_T}.TransactionalMessageCopier",
}

_DOCUMENTATION: Final = "prints a part of Kafka's documentation"
_REMOTE: Final = "org.apache.kafka.server.log.remote"
_WORKER: Final = "a worker of Connect, as MirrorMaker 2 is one"

NOT_RUN: Final[Mapping[str, str]] = {
    f"{_T}.ConnectPluginPath": "looks at folders of plugins",
    f"{_T}.JmxTool": "reads the MBeans of a JVM; the control API has `/metrics`",
    f"{_T}.OAuthCompatibilityTool": "asks an OAuth server",
    "kafka.Kafka": "a server",
    "kafka.docker.KafkaDockerWrapper": "starts a server",
    "kafka.tools.TestRaftServer": "a server",
    "org.apache.kafka.connect.cli.ConnectDistributed": _WORKER,
    "org.apache.kafka.connect.cli.ConnectStandalone": _WORKER,
    "org.apache.kafka.connect.mirror.MirrorMaker": "copies one cluster to another: see below",
    **dict.fromkeys(
        (
            "kafka.server.KafkaConfig",
            "org.apache.kafka.clients.admin.AdminClientConfig",
            "org.apache.kafka.clients.consumer.ConsumerConfig",
            "org.apache.kafka.clients.consumer.internals.ConsumerMetrics",
            "org.apache.kafka.clients.producer.ProducerConfig",
            "org.apache.kafka.clients.producer.internals.ProducerMetrics",
            "org.apache.kafka.common.protocol.ApiKeys",
            "org.apache.kafka.common.protocol.Errors",
            "org.apache.kafka.common.protocol.Protocol",
            "org.apache.kafka.common.protocol.types.Type",
            "org.apache.kafka.connect.mirror.MirrorCheckpointConfig",
            "org.apache.kafka.connect.mirror.MirrorConnectorConfig",
            "org.apache.kafka.connect.mirror.MirrorHeartbeatConfig",
            "org.apache.kafka.connect.mirror.MirrorSourceConfig",
            "org.apache.kafka.connect.runtime.ConnectMetrics",
            "org.apache.kafka.connect.runtime.SinkConnectorConfig",
            "org.apache.kafka.connect.runtime.SourceConnectorConfig",
            "org.apache.kafka.connect.runtime.distributed.DistributedConfig",
            "org.apache.kafka.connect.tools.PredicateDoc",
            "org.apache.kafka.connect.tools.TransformationDoc",
            "org.apache.kafka.coordinator.group.GroupConfig",
            f"{_REMOTE}.metadata.storage.TopicBasedRemoteLogMetadataManagerConfig",
            f"{_REMOTE}.storage.RemoteLogManagerConfig",
            "org.apache.kafka.storage.internals.log.LogConfig",
        ),
        _DOCUMENTATION,
    ),
}
"""The other main classes of the jars, and why none of them is run against a cluster."""
