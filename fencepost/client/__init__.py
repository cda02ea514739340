"""A low-level Kafka client: one request and one answer, at the version that the caller names.

It adds nothing of its own: no retries, no search for a leader, no delay after a throttled answer,
because these are what a test is about. Kafka's errors are values, by their codes;
`KafkaClientError` is raised where no answer came.

`connection` carries requests to one broker, and has the typed calls for requests that have no
function here; `client` keeps one connection a broker. On these stand `partitions` (produce, fetch,
list offsets, the end of a leader epoch), `cluster` (metadata, coordinators, producer ids) and
`groups` (join, sync, heartbeat, leave, commit, committed). Their arguments and answers are data:
`model`, and `batches` for records.

Three parts are for applications, and do retry and look for leaders: `appender`, with conditional
appends (KIP-27), `transactional_producer` (KIP-98) on the requests in `transactions`, and
`asyncio_consumer`, a consumer on the core in `consumer`. The public names stand here and in
docs/client.md; each is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fencepost.client.aborted_transactions import AbortedTransaction
    from fencepost.client.append_outcomes import (
        Appended,
        AppendRefused,
        ExpectedOffsetMismatch,
        NotChecked,
        OutcomeUnknown,
    )
    from fencepost.client.appender import Appender
    from fencepost.client.asyncio_consumer import Consumer, ConsumerRebalanceListener
    from fencepost.client.batches import (
        FetchedRecord,
        FetchedRecords,
        NewRecord,
        Sequenced,
        encode_records,
    )
    from fencepost.client.client import Client, Leader, find_leader
    from fencepost.client.cluster import init_producer_id, metadata
    from fencepost.client.connection import Connection, connect
    from fencepost.client.consumer.errors import (
        CommitFailedError,
        ConsumerError,
        CorruptRecords,
        LogTruncationError,
        NoOffsetForPartitionError,
        OffsetOutOfRangeError,
        RequestRefused,
        TruncatedPartitionError,
    )
    from fencepost.client.consumer.model import (
        ConsumerRecord,
        ConsumerRecords,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        Truncation,
    )
    from fencepost.client.errors import (
        DialectNotServed,
        Disconnected,
        KafkaClientError,
        MalformedAnswer,
        NoLeader,
        NotServed,
        TimedOut,
        Unreachable,
    )
    from fencepost.client.model import (
        ConsumerGroupMetadata,
        EpochEnd,
        Fetched,
        FoundOffset,
        Isolation,
        OffsetSpec,
        Partition,
        Produced,
    )
    from fencepost.client.partitions import (
        fetch,
        list_offsets,
        offset_for_leader_epoch,
        produce,
        produce_set,
    )
    from fencepost.client.transaction_errors import (
        ProducerFenced,
        TransactionAbortable,
        TransactionError,
        TransactionFailed,
    )
    from fencepost.client.transactional_producer import ProducerState, TransactionalProducer
    from fencepost.client.transactions import (
        add_offsets_to_txn,
        add_partitions_to_txn,
        end_txn,
        txn_offset_commit,
    )

__all__ = [
    "AbortedTransaction",
    "AppendRefused",
    "Appended",
    "Appender",
    "Client",
    "CommitFailedError",
    "Connection",
    "Consumer",
    "ConsumerError",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "CorruptRecords",
    "DialectNotServed",
    "Disconnected",
    "EpochEnd",
    "ExpectedOffsetMismatch",
    "Fetched",
    "FetchedRecord",
    "FetchedRecords",
    "FoundOffset",
    "Isolation",
    "KafkaClientError",
    "Leader",
    "LogTruncationError",
    "MalformedAnswer",
    "NewRecord",
    "NoLeader",
    "NoOffsetForPartitionError",
    "NotChecked",
    "NotServed",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "OutcomeUnknown",
    "Partition",
    "Produced",
    "ProducerFenced",
    "ProducerState",
    "RequestRefused",
    "Sequenced",
    "TimedOut",
    "TransactionAbortable",
    "TransactionError",
    "TransactionFailed",
    "TransactionalProducer",
    "TruncatedPartitionError",
    "Truncation",
    "Unreachable",
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "connect",
    "encode_records",
    "end_txn",
    "fetch",
    "find_leader",
    "init_producer_id",
    "list_offsets",
    "metadata",
    "offset_for_leader_epoch",
    "produce",
    "produce_set",
    "txn_offset_commit",
]

_PUBLIC_NAMES: Final = {
    "aborted_transactions": ("AbortedTransaction",),
    "appender": ("Appender",),
    "asyncio_consumer": ("Consumer", "ConsumerRebalanceListener"),
    "batches": ("FetchedRecord", "FetchedRecords", "NewRecord", "Sequenced", "encode_records"),
    "client": ("Client", "Leader", "find_leader"),
    "cluster": ("init_producer_id", "metadata"),
    "connection": ("Connection", "connect"),
    "consumer.errors": (
        "CommitFailedError",
        "ConsumerError",
        "CorruptRecords",
        "LogTruncationError",
        "NoOffsetForPartitionError",
        "OffsetOutOfRangeError",
        "RequestRefused",
        "TruncatedPartitionError",
    ),
    "consumer.model": (
        "ConsumerRecord",
        "ConsumerRecords",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "Truncation",
    ),
    "errors": (
        "DialectNotServed",
        "Disconnected",
        "KafkaClientError",
        "MalformedAnswer",
        "NoLeader",
        "NotServed",
        "TimedOut",
        "Unreachable",
    ),
    "model": (
        "ConsumerGroupMetadata",
        "EpochEnd",
        "Fetched",
        "FoundOffset",
        "Isolation",
        "OffsetSpec",
        "Partition",
        "Produced",
    ),
    "append_outcomes": (
        "AppendRefused",
        "Appended",
        "ExpectedOffsetMismatch",
        "NotChecked",
        "OutcomeUnknown",
    ),
    "partitions": (
        "fetch",
        "list_offsets",
        "offset_for_leader_epoch",
        "produce",
        "produce_set",
    ),
    "transaction_errors": (
        "ProducerFenced",
        "TransactionAbortable",
        "TransactionError",
        "TransactionFailed",
    ),
    "transactional_producer": ("ProducerState", "TransactionalProducer"),
    "transactions": (
        "add_offsets_to_txn",
        "add_partitions_to_txn",
        "end_txn",
        "txn_offset_commit",
    ),
}
"""The module of each public name."""
_MODULE_OF: Final = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
