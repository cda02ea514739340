"""The values that fields are given: known and unknown names, edges, and what a real broker bears.

Fields that are given less than they could be are listed in ``bounds``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tests.harness import batches
from tests.oracle.random_requests.bounds import BOUNDS, MAX_INT32, MAX_INT64
from tests.oracle.random_requests.config_values import TOPIC_CONFIGS
from tests.oracle.random_requests.messages import BatchOf, Generator, Ref, Values
from tests.oracle.random_requests.structs import STRUCTS
from tests.oracle.random_requests.twins import UNKNOWN_ID

INTERNAL: Final = "__consumer_offsets"
ONE_PRODUCER: Final = 1_000_000_007
"""An id that no broker has given out, of batches and markers."""
OTHER_PRODUCER: Final = ONE_PRODUCER + 1
_DAY_MS: Final = 86_400_000
LONG_TRANSACTION_MS: Final = 800_000
"""A timeout that no transaction reaches."""
_VALID_SESSION_MS: Final = (1_000_000, 1_800_000)


def one_of(*values: object) -> Values:
    """Value of these; one that is repeated is the likelier."""
    return lambda rng: rng.choice(values)


def mostly(often: Sequence[object], seldom: Sequence[object], part: float = 0.85) -> Values:
    """What is likely to be good, and now and then what is not."""
    return lambda rng: rng.choice(often if rng.random() < part else seldom)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The names of some dozens of requests. Each world has its own, so that none inherits state."""

    name: str
    now_ms: int
    """What records' timestamps count from."""

    @property
    def topics(self) -> Mapping[str, tuple[int, Mapping[str, str]]]:
        """The topics that are there in the beginning: how many partitions, which configs."""
        w = self.name
        return {
            f"{w}-one": (1, {}),
            f"{w}-three": (3, {"min.insync.replicas": "1"}),
            f"{w}-compact": (1, {"cleanup.policy": "compact"}),
            f"{w}-stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
            f"{w}-zipped": (2, {"compression.type": "gzip", "max.message.bytes": "600"}),
        }

    def generator(self) -> Generator:
        """Of requests in this world."""
        return Generator(_values(self), STRUCTS, _WEIGHTS, BOUNDS)

    @property
    def transactional_ids(self) -> tuple[str, str]:
        return f"{self.name}-t1", f"{self.name}-t2"

    def batches(self) -> Sequence[bytes | BatchOf]:
        """What is produced: good batches, and each kind of bad one."""
        t = self.now_ms - _DAY_MS
        row, keyless, late = (t, b"k", b"v"), (t + 1, None, b"v"), (t + 2 * _DAY_MS, b"k", b"v")
        good = [
            batches.build([row]),
            batches.build([row, (t + 2, b"l", None), (t + 1, b"m", b"")]),
            batches.build([keyless, row]),
            batches.build([(t, b"k", b"v" * 400)]),
            *(
                batches.build([row], producer_id=p, producer_epoch=e, base_sequence=s)
                for p, e, s in (
                    *((ONE_PRODUCER, 0, 0), (ONE_PRODUCER, 0, 1), (ONE_PRODUCER, 0, 2)),
                    *((ONE_PRODUCER, 1, 0), (OTHER_PRODUCER, 0, 0), (OTHER_PRODUCER, 0, 5)),
                )
            ),
        ]
        one = good[0]
        return (
            *good * 3,
            batches.build([late]),
            batches.build([(-1, b"k", b"v")]),
            batches.build([row], base_offset=5),
            batches.build([row], attributes=8),
            batches.build([row], attributes=1),
            batches.build([row], attributes=0x20),
            batches.build(
                [row], attributes=0x10, producer_id=ONE_PRODUCER, producer_epoch=0, base_sequence=0
            ),
            *(
                BatchOf(
                    producer=Ref("producer", name),
                    epoch=epoch,
                    sequence=sequence,
                    record=row,
                    is_transactional=is_transactional,
                )
                for name in self.transactional_ids
                for epoch, sequence, is_transactional in (
                    *((0, 0, True), (0, 0, True), (0, 1, True), (1, 0, True), (2, 0, True)),
                    (0, 0, False),
                )
            ),
            batches.build([row], producer_id=ONE_PRODUCER, producer_epoch=0, base_sequence=-1),
            batches.build([(t, b"k", b"v" * 700)]),
            one + good[1],
            one[:-1],
            one[:16],
            one[:5],
            one + b"\0" * 7,
            one[:-1] + b"x",
            one[:16] + b"\1" + one[17:],
            one[:16] + b"\3" + one[17:],
            b"",
            b"\0" * 100,
        )


def _values(world: World) -> Mapping[str, Values]:
    w = world.name
    there = list(world.topics)
    unknown = [f"{w}-no", f"{w}-gone"]
    illegal = ["", "a b", ".", "..", "x" * 250, "\N{LATIN SMALL LETTER E WITH ACUTE}"]
    fresh = [f"{w}-new1", f"{w}-new2", f"{w}-new3", f"{w}.new1", f"{w}_new1"]
    topic = mostly([*there * 3, *fresh], [*unknown, *illegal, INTERNAL])
    own_topic = mostly([*fresh * 3, *there], [*unknown, *illegal])
    ids = mostly([Ref("topic", name) for name in (*there, *fresh)], [UNKNOWN_ID, None])
    groups = [f"{w}-g1", f"{w}-g2"]
    group = mostly(groups, [f"{w}-g3", f"{w}-never", ""])
    member = mostly([Ref("member", n) for n in (1, 1, 1, 2, 3)], ["", "stranger", "m" * 300], 0.75)
    instance = mostly([None], ["i1", "i2", "", "i 3"], 0.7)
    first, second = world.transactional_ids
    transactional = [first, first, second]
    producer = mostly(
        [Ref("producer", first), Ref("producer", first), Ref("producer", second)],
        [Ref("producer", 1), -1, 0, ONE_PRODUCER, MAX_INT64, -2],
    )
    producer_epoch = mostly([0, 0, 0, 1, 2], [-1, -2, 32767])
    partition = mostly([0, 0, 0, 1, 2], [3, -1, MAX_INT32, -(2**31)])
    epoch = mostly([-1, -1, -1, 0], [1, -2, MAX_INT32])
    offset = mostly([0, 0, 1, 2, 3, 5], [-1, -2, 100, MAX_INT64, -(2**63)])
    t = world.now_ms - _DAY_MS
    times = [-1, -2, -3, -4, -5, -6, t, t + 1, t + 2, 0]
    waits = one_of(5000, 20_000, MAX_INT32)
    broker = mostly([1], [2, 0, -1, MAX_INT32])
    acks = mostly([-1, -1, 1], [2, -2, 0])
    return {
        "TopicName": topic,
        "resource_name": topic,
        "produce.TopicProduceData.name": mostly([*there * 3, *fresh], [*unknown, *illegal]),
        **dict.fromkeys(
            (
                *("fetch.FetchTopic.topic", "list_offsets.ListOffsetsTopic.name"),
                "offset_for_leader_epoch.OffsetForLeaderTopic.topic",
                "describe_producers.TopicRequest.name",
            ),
            mostly([*there * 3, *fresh], [*unknown, *illegal]),
        ),
        "topic_names": own_topic,
        "create_topics.CreatableTopic.name": own_topic,
        "describe_log_dirs.DescribableLogDirTopic.topic": mostly([*there, *fresh], unknown),
        "delete_topics.DeleteTopicState.name": own_topic,
        "create_partitions.CreatePartitionsTopic.name": own_topic,
        "delete_records.DeleteRecordsTopic.name": own_topic,
        "topic_id": ids,
        "fetch.topic_id": mostly([Ref("topic", name) for name in (*there, *fresh)], [UNKNOWN_ID]),
        "GroupId": group,
        "offset_commit.group_id": mostly(groups, [f"{w}-g3", f"{w}-never"]),
        "member_id": member,
        "group_instance_id": instance,
        "generation_id": mostly([-1, 1, 2, 3], [0, -2, MAX_INT32]),
        "generation_id_or_member_epoch": mostly([-1, 1, 2, 3], [0, -2, MAX_INT32]),
        "member_epoch": mostly([-1], [0, 1, -2]),
        "partition": partition,
        "partition_index": partition,
        "partition_indexes": partition,
        "partitions": partition,
        "index": partition,
        "current_leader_epoch": epoch,
        "last_fetched_epoch": epoch,
        "leader_epoch": mostly([0, 0, 1], [-1, -2, 5, MAX_INT32]),
        "committed_leader_epoch": mostly([-1, 0], [1, -2, MAX_INT32]),
        "fetch_offset": offset,
        "offset": offset,
        "committed_offset": offset,
        "log_start_offset": mostly([-1, 0], [1, -2]),
        "timestamp": mostly(times, [-7, -100, MAX_INT64, -(2**63), world.now_ms]),
        "committed_metadata": one_of("", "m", "m" * 4096, None),
        "timeout_ms": waits,
        "max_wait_ms": one_of(0, 0, 0, 1, 20, -1),
        "min_bytes": mostly([0, 1, 1], [-1, 1_000_000, MAX_INT32]),
        "max_bytes": mostly([MAX_INT32, 1_000_000], [0, 1, 100, -1]),
        "partition_max_bytes": mostly([1_000_000], [0, 1, 100, -1, MAX_INT32]),
        "isolation_level": mostly([0, 1], [2, -1]),
        "session_id": mostly([0, 0, Ref("session", 1), Ref("session", 2)], [5, 1_000_000]),
        "session_epoch": mostly([-1, 0, 0, 1, 2, 3], [-2, MAX_INT32]),
        "rack_id": one_of("", "r1", "r2"),
        "cluster_id": one_of(None, None, "another"),
        "fetch.replica_id": mostly([-1], [-2, -3, 1, 2, 0]),
        "replica_epoch": mostly([-1], [0, 1, MAX_INT64]),
        "replica_directory_id": one_of(None, UNKNOWN_ID),
        "list_offsets.replica_id": mostly([-1], [-2, 1, 2]),
        "offset_for_leader_epoch.replica_id": mostly([-1, -2], [1, 2]),
        "broker_ids": broker,
        "replicas": broker,
        "acks": acks,
        "records": one_of(*world.batches()),
        "TransactionalId": mostly([None, *transactional], [f"{w}-no transaction", ""]),
        "init_producer_id.transactional_id": mostly([None, *transactional], [""]),
        "transactional_id_pattern": one_of(None, "", f"{w}-t.", "t", f"{w}.*2"),
        "state_filters": one_of("Ongoing", "Empty", "CompleteCommit", "Dead", "", "x"),
        "duration_filter": one_of(-1, -1, 0, 100_000_000),
        "transaction_timeout_ms": mostly([LONG_TRANSACTION_MS], [0, -1, MAX_INT32]),
        "producer_id": producer,
        "v3_and_below_producer_id": producer,
        "init_producer_id.producer_id": mostly(
            [-1, -1, Ref("producer", first)], [0, ONE_PRODUCER, MAX_INT64, -2]
        ),
        "producer_epoch": producer_epoch,
        "v3_and_below_producer_epoch": producer_epoch,
        "init_producer_id.producer_epoch": mostly([-1, -1, 0], [1, -2, 32767]),
        "producer_id_filters": producer,
        "write_txn_markers.WritableTxnMarkerTopic.name": mostly([*there, *fresh], unknown),
        "write_txn_markers.producer_id": one_of(
            ONE_PRODUCER, ONE_PRODUCER, OTHER_PRODUCER, Ref("producer", 1)
        ),
        "write_txn_markers.producer_epoch": one_of(0, 0, 1, 2),
        "coordinator_epoch": mostly([0, 0, 1], [2, -1]),
        "transaction_version": one_of(0, 1, 2),
        "enable2_pc": one_of(False, False, True),
        "keep_prepared_txn": one_of(False, False, True),
        "key_type": mostly([0, 0, 1], [3, -1, 127], 0.9),
        "key": group,
        "coordinator_keys": group,
        "session_timeout_ms": mostly(_VALID_SESSION_MS, [0, -1, 5999, 1_800_001, MAX_INT32]),
        "rebalance_timeout_ms": one_of(0, 1, 50, 150, -1),
        "protocol_type": mostly(["consumer"], ["", "other", None]),
        "protocol_name": mostly(["range"], ["", "roundrobin", None]),
        "join_group.JoinGroupRequestProtocol.name": mostly(["range"], ["roundrobin", ""]),
        "metadata": one_of(b"", b"\0\1", b"meta"),
        "assignment": one_of(b"", b"\0\1", b"assigned"),
        "reason": one_of(None, "", "because", "r" * 300),
        "retention_time_ms": one_of(-1, -1, _DAY_MS),
        "states_filter": one_of("Stable", "Empty", "Dead", "stable", "PreparingRebalance", "", "x"),
        "types_filter": one_of("classic", "Classic", "consumer", "share", "", "x"),
        "client_software_name": one_of("apache-kafka-java", "a", "", "a b", "-", "x" * 40),
        "client_software_version": one_of("4.3.1", "1", "", "a b", "-", "."),
        "num_partitions": mostly([1, 2, 3, -1], [0, -2]),
        "count": mostly([2, 3, 4], [1, 0, -1]),
        "replication_factor": mostly([1, -1], [0, 2, -2, 32767]),
        "configuration_keys": one_of(*TOPIC_CONFIGS, "nope", ""),
        "config_operation": one_of(0, 0, 1, 2, 3),
        "configs.name": one_of(*TOPIC_CONFIGS, "nope", ""),
        "election_type": mostly([0, 1], [2, -1, 127]),
        "feature": one_of(
            "metadata.version", "kraft.version", "eligible.leader.replicas.version", "nope", ""
        ),
        "max_version_level": one_of(0, 1, 2, 28, 29, 30, -1, 100),
        "upgrade_type": one_of(1, 2, 3, 0, 4, -1),
        "update_features.validate_only": one_of(True),
        "endpoint_type": mostly([1], [2, 0, 3, -1]),
        "get_telemetry_subscriptions.client_instance_id": one_of(None),
        "owner_principal_type": one_of(None),
        "owner_principal_name": one_of(None),
        "entity_type": mostly(["user", "client-id", "ip"], ["", "nope"]),
        "entity_name": mostly(["u1", "c1", None], ["", "127.0.0.1"]),
        "match_type": mostly([0, 1, 2], [3, -1]),
        "alter_client_quotas.OpData.key": mostly(
            ["producer_byte_rate", "consumer_byte_rate", "request_percentage"], ["nope", ""]
        ),
        "alter_client_quotas.validate_only": one_of(True),
        "mechanism": one_of(1, 2, 0, 3, -1),
        "sasl_handshake.mechanism": one_of("PLAIN", "SCRAM-SHA-256", "", "x"),
        "unregister_broker.broker_id": one_of(2, 5, 0, -1, MAX_INT32),
        "add_raft_voter.cluster_id": one_of("another", ""),
        "remove_raft_voter.cluster_id": one_of("another", ""),
        "resource_types": one_of(2, 4, 8, 16, 32, 0, 3, -1),
        "operation": one_of(0, 1, 2, 3, 4, 10, 13, 20, -1),
        "permission_type": one_of(0, 1, 2, 3, 4, -1),
        "pattern_type_filter": one_of(0, 1, 2, 3, 4, 5, -1),
        "client_instance_id": lambda rng: UUID(int=rng.getrandbits(128)),
        "response_partition_limit": mostly([1, 2, 2000], [0, -1, MAX_INT32]),
        "topic_name": mostly(["__cluster_metadata"], [*there, "", "nope"]),
    }


_WEIGHTS: Final[Mapping[str, float]] = {
    "add_partitions_to_txn": 3.0,
    "add_offsets_to_txn": 2.0,
    "txn_offset_commit": 2.0,
    "end_txn": 3.0,
    "produce": 3.0,
    "fetch": 2.0,
    "list_offsets": 2.0,
    "join_group": 2.0,
    "sync_group": 2.0,
    "offset_commit": 2.0,
    "create_topics": 1.5,
    "describe_configs": 1.5,
    "incremental_alter_configs": 1.5,
    "delete_topics": 0.6,
}
"""How likely each API is; 1 where nothing is said."""
