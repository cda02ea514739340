"""The fields that are given less than they could be, because a wild value makes a real broker wait,
work or break for long, or belongs to what a later issue brings. docs/conformance.md shows the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
_OF_ALL: Final = "the log of offsets has the commits of all"
_NO_PRODUCER: Final = "a real broker fails over a marker of a producer that cannot be"
BOUNDS: Final[Mapping[str, str]] = {
    "timeout_ms": "whether a short time is enough is a race",
    "max_wait_ms": "a Fetch waits for it",
    "session_timeout_ms": "a member that expires while others are asked is a race",
    "rebalance_timeout_ms": "a JoinGroup waits for members that do not come",
    "join_group.group_id": "version 0 has no rebalance timeout: its group is always a new one",
    "offset_commit.topics": "of a partition that is named twice fencepost commits and answers the"
    " last offset alone",
    "offset_commit.group_id": "the group without a name would outlive its world",
    "committed_metadata": "a real coordinator keeps a group whose only commit was too large",
    "client_instance_id": "how often a client may push its telemetry is a matter of time",
    "num_partitions": "each partition is a directory of files",
    "count": "each partition is a directory of files",
    "create_topics.CreatableTopic.name": "Kafka's own topics have to stay",
    "delete_topics.DeleteTopicState.name": "Kafka's own topics have to stay",
    "delete_topics.topic_names": "Kafka's own topics have to stay",
    "create_partitions.CreatePartitionsTopic.name": "Kafka's own topics have to stay",
    "delete_records.DeleteRecordsTopic.name": "Kafka's own topics have to stay",
    "transaction_timeout_ms": "a transaction that is aborted while others are asked is a race",
    "transactions": "a real broker never answers an AddPartitionsToTxn v4 without a transaction,"
    " and one that is named twice it answers each time, where here it counts once",
    "markers": "a real broker never answers a WriteTxnMarkers whose last marker has no partition of"
    " its own",
    "write_txn_markers.WritableTxnMarkerTopic.name": _OF_ALL,
    "write_txn_markers.WritableTxnMarker.topics": "a real broker never answers a WriteTxnMarkers"
    " with a partition twice",
    "write_txn_markers.producer_id": _NO_PRODUCER,
    "write_txn_markers.producer_epoch": _NO_PRODUCER,
    "key_type": "coordinators of share groups come later",
    "owner_principal_type": "tokens of others come later",
    "owner_principal_name": "tokens of others come later",
    "alter_client_quotas.validate_only": "storing quotas comes later",
    "alter_user_scram_credentials.upsertions": "storing credentials comes later",
    "unregister_broker.broker_id": "the broker has to stay",
    "add_raft_voter.cluster_id": "the quorum has to stay",
    "remove_raft_voter.cluster_id": "the quorum has to stay",
    "feature": "later kinds of groups have features of their own, and transactions keep theirs",
    "update_features.validate_only": "an UpdateFeatures that is done cannot be undone",
    "metadata.MetadataRequestTopic.name": "a topic is named or has an id, not both",
    "produce.TopicProduceData.name": "the log of offsets has to stay readable",
    "topic_data": "of a partition that is named twice a real broker may append one batch and"
    " report on another",
    "fetch.FetchTopic.topic": _OF_ALL,
    "list_offsets.ListOffsetsTopic.name": _OF_ALL,
    "offset_for_leader_epoch.OffsetForLeaderTopic.topic": _OF_ALL,
    "describe_producers.TopicRequest.name": _OF_ALL,
    "fetch.topics": "a partition that is named twice counts once or twice, as sessions see it",
    "configuration_keys": "but for the root, each server has loggers of its own",
    "config_operation": "a real controller resigns over an operation that it does not know",
    "records": "a real broker never answers a Produce with null for records, and fails over codecs"
    " that there are not",
    "fetch.topic_id": "a real broker fails over two partitions of no topic",
    "session_id": "a real broker fails over ids that it could not have given",
    "protocols": "a real broker counts a protocol twice that a member names twice",
    "alter_configs.resources": "a real broker never answers an AlterConfigs with one twice",
    "describe_log_dirs.DescribableLogDirTopic.topic": _OF_ALL,
    "retention_time_ms": "an offset that expires while others are asked is a race",
    "alter_configs.AlterableConfig.value": "a broker's configs stay harmless",
    "incremental_alter_configs.AlterableConfig.value": "a broker's configs stay harmless",
}
"""Fields, and why their values are bounded."""
