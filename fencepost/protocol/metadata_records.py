"""The records of a real Kafka's metadata log (KIP-631): those of topics, brokers and configs.

Fields and versions are those of Apache Kafka 4.3 (metadata/src/main/resources/common/metadata).
A metadata transaction (KIP-868) is between `BeginTransactionRecord` and `EndTransactionRecord`;
what `AbortTransactionRecord` ends never held.
"""

from typing import Final, TypeAlias
from uuid import UUID

from msgspec import Struct

from fencepost.protocol.framed_records import ID, RecordField, RecordLayout, RecordTypes

NO_LEADER_CHANGE: Final = -2
"""`PartitionChangeRecord.leader` where it stays."""
RECOVERING: Final = 1
"""``leader_recovery_state`` behind an unclean election, until the leader says that it is done."""
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
"""`ConfigRecord.resource_type`; its name is empty for the default of all brokers."""

BrokerIds: TypeAlias = tuple[int, ...]
Directories: TypeAlias = tuple[UUID | None, ...]
"""Ids of log directories (KIP-858); None where it is not assigned yet."""


class RegisterBrokerRecord(Struct):
    """A broker process began."""

    broker_id: int = -1
    is_migrating_zk_broker: bool = False
    incarnation_id: UUID | None = None
    broker_epoch: int = -1
    end_points: tuple["BrokerEndpoint", ...] = ()
    features: tuple["BrokerFeature", ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: Directories = ()
    cordoned_log_dirs: Directories | None = None


class BrokerEndpoint(Struct):
    """Where a broker listens."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class BrokerFeature(Struct):
    """What a broker supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class UnregisterBrokerRecord(Struct):
    """An administrator has unregistered a broker."""

    broker_id: int = -1
    broker_epoch: int = -1


class BrokerRegistrationChangeRecord(Struct):
    """A broker's registration changed."""

    broker_id: int = -1
    broker_epoch: int = -1
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: Directories = ()
    """Empty where they did not change."""
    cordoned_log_dirs: Directories | None = None


class TopicRecord(Struct):
    """A topic was created."""

    name: str = ""
    topic_id: UUID | None = None


class RemoveTopicRecord(Struct):
    """A topic was deleted, with its partitions and configs."""

    topic_id: UUID | None = None


class ConfigRecord(Struct):
    """A dynamic config."""

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None
    """None: it is not set any more."""


class PartitionRecord(Struct):
    """A partition was created; in a snapshot, what it is."""

    partition_id: int = -1
    topic_id: UUID | None = None
    replicas: BrokerIds = ()
    isr: BrokerIds = ()
    removing_replicas: BrokerIds = ()
    adding_replicas: BrokerIds = ()
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: Directories = ()
    eligible_leader_replicas: BrokerIds | None = None
    last_known_elr: BrokerIds | None = None


class PartitionChangeRecord(Struct):
    """A partition changed; what did not is None.

    Each change raises the partition epoch by one, each with a leader the leader epoch too.
    """

    partition_id: int = -1
    topic_id: UUID | None = None
    isr: BrokerIds | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: BrokerIds | None = None
    removing_replicas: BrokerIds | None = None
    adding_replicas: BrokerIds | None = None
    leader_recovery_state: int = -1
    """-1 where it did not change."""
    directories: Directories | None = None
    eligible_leader_replicas: BrokerIds | None = None
    last_known_elr: BrokerIds | None = None


class ClearElrRecord(Struct):
    """No partition of a topic, or of any, has eligible leader replicas any more (KIP-966)."""

    topic_name: str = ""
    """Empty: of all topics."""


class BeginTransactionRecord(Struct):
    """From here on records hold once the transaction ends."""

    name: str | None = None


class EndTransactionRecord(Struct):
    """The records of the transaction hold."""


class AbortTransactionRecord(Struct):
    """The records of the transaction never hold."""

    reason: str | None = None


def _ids(name: str, *, tag: int | None = None, since: int = 0) -> RecordField:
    """Broker ids: nullable where they are tagged."""
    nullable = tag is not None
    return RecordField(name=name, kind="int32", array=True, nullable=nullable, tag=tag, since=since)


def _dirs(name: str, *, since: int, tag: int | None = None, nullable: bool = False) -> RecordField:
    return RecordField(name=name, kind="uuid", array=True, nullable=nullable, tag=tag, since=since)


_BROKER: Final = RecordField(name="broker_id", kind="int32")
_BROKER_EPOCH: Final = RecordField(name="broker_epoch", kind="int64")
_PARTITION: Final = RecordField(name="partition_id", kind="int32")
_NAME: Final = RecordField(name="name", kind="string")

_ENDPOINT: Final = RecordLayout(
    cls=BrokerEndpoint,
    fields=(
        _NAME,
        RecordField(name="host", kind="string"),
        RecordField(name="port", kind="uint16"),
        RecordField(name="security_protocol", kind="int16"),
    ),
)
_FEATURE: Final = RecordLayout(
    cls=BrokerFeature,
    fields=(
        _NAME,
        RecordField(name="min_supported_version", kind="int16"),
        RecordField(name="max_supported_version", kind="int16"),
    ),
)

LAYOUTS: Final = {
    0: RecordLayout(
        cls=RegisterBrokerRecord,
        newest=4,
        fields=(
            _BROKER,
            RecordField(name="is_migrating_zk_broker", kind="bool", since=2),
            RecordField(name="incarnation_id", kind="uuid"),
            _BROKER_EPOCH,
            RecordField(name="end_points", struct=_ENDPOINT, array=True),
            RecordField(name="features", struct=_FEATURE, array=True),
            RecordField(name="rack", kind="string", nullable=True),
            RecordField(name="fenced", kind="bool"),
            RecordField(name="in_controlled_shutdown", kind="bool", since=1),
            _dirs("log_dirs", tag=0, since=3),
            _dirs("cordoned_log_dirs", tag=1, since=4, nullable=True),
        ),
    ),
    1: RecordLayout(cls=UnregisterBrokerRecord, fields=(_BROKER, _BROKER_EPOCH)),
    2: RecordLayout(cls=TopicRecord, fields=(_NAME, ID)),
    3: RecordLayout(
        cls=PartitionRecord,
        newest=2,
        fields=(
            _PARTITION,
            ID,
            _ids("replicas"),
            _ids("isr"),
            _ids("removing_replicas"),
            _ids("adding_replicas"),
            RecordField(name="leader", kind="int32"),
            RecordField(name="leader_recovery_state", kind="int8", tag=0),
            RecordField(name="leader_epoch", kind="int32"),
            RecordField(name="partition_epoch", kind="int32"),
            _dirs("directories", since=1),
            _ids("eligible_leader_replicas", tag=1, since=2),
            _ids("last_known_elr", tag=2, since=2),
        ),
    ),
    4: RecordLayout(
        cls=ConfigRecord,
        fields=(
            RecordField(name="resource_type", kind="int8"),
            RecordField(name="resource_name", kind="string"),
            _NAME,
            RecordField(name="value", kind="string", nullable=True),
        ),
    ),
    5: RecordLayout(
        cls=PartitionChangeRecord,
        newest=2,
        fields=(
            _PARTITION,
            ID,
            _ids("isr", tag=0),
            RecordField(name="leader", kind="int32", tag=1),
            _ids("replicas", tag=2),
            _ids("removing_replicas", tag=3),
            _ids("adding_replicas", tag=4),
            RecordField(name="leader_recovery_state", kind="int8", tag=5),
            _ids("eligible_leader_replicas", tag=6, since=2),
            _ids("last_known_elr", tag=7, since=2),
            _dirs("directories", tag=8, since=1, nullable=True),
        ),
    ),
    9: RecordLayout(cls=RemoveTopicRecord, fields=(ID,)),
    17: RecordLayout(
        cls=BrokerRegistrationChangeRecord,
        newest=3,
        fields=(
            _BROKER,
            _BROKER_EPOCH,
            RecordField(name="fenced", kind="int8", tag=0),
            RecordField(name="in_controlled_shutdown", kind="int8", tag=1, since=1),
            _dirs("log_dirs", tag=2, since=2),
            _dirs("cordoned_log_dirs", tag=3, since=3, nullable=True),
        ),
    ),
    23: RecordLayout(
        cls=BeginTransactionRecord,
        fields=(RecordField(name="name", kind="string", nullable=True, tag=0),),
    ),
    24: RecordLayout(cls=EndTransactionRecord, fields=()),
    25: RecordLayout(
        cls=AbortTransactionRecord,
        fields=(RecordField(name="reason", kind="string", nullable=True, tag=0),),
    ),
    28: RecordLayout(cls=ClearElrRecord, fields=(RecordField(name="topic_name", kind="string"),)),
}
"""By the numbers of their types."""

METADATA_RECORDS: Final = RecordTypes(layouts=LAYOUTS)
