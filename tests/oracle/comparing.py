"""Which answers must be equal, and in what they may differ.

Nothing else is forgiven: a row that is not listed here is compared to the last character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.harness.kafka import Kafka, start_kafka
from tests.harness.served_cluster import Cluster, configs
from tests.harness.wire import Value
from tests.oracle.asking import Row
from tests.oracle.questions import (
    absent,
    access,
    create_topics,
    elections,
    everything,
    failover,
    features,
    gate,
    produce,
    racks,
    replicas,
    tiered,
    tiered_replicas,
    transactions,
    truncation,
)
from tests.oracle.steering import Steering

Key = tuple[str, str]
"""A row's section and request."""

APACHE: Final = ("--conformance", "apache", "--config", "auto.create.topics.enable=false")
"""How to serve what the rows are compared with: configured as the recorded broker was."""

APACHE_THREE: Final = (
    *APACHE,
    *("--racks", "r1,r2,r3"),
    *("--config", "broker.session.timeout.ms=3000"),
    *("--config", "replica.lag.time.max.ms=3000"),
    "--config",
    "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
"""The same for the recorded three."""

TIER: Final = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
"""What both are told of the tier."""
APACHE_TIERED: Final = (*APACHE, "--remote", "memory:", *configs(TIER))
KAFKA_TIERED: Final = {
    **TIER,
    "log.initial.task.delay.ms": "500",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "rsm.config.dir": "{folder}/tier",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "300",
}
"""How the recorded broker's tier was made."""

ONE_PARTITION: Final = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""As the recorded three have their coordinators."""

EXCEPTED: Final = {
    (
        "Produce",
        "acks=0",
    ): "a race between the append and the lookup behind it, at a real broker as well",
    (
        "ListOffsets",
        "v11 known + unknown partition + unknown topic",
    ): "a real broker answers topics and partitions in the order of its hash maps",
    (
        "ApiVersions",
        "full v4 key list",
    ): "only what is served is advertised; SASL, ACLs, quorums and more come later",
}
"""Rows that are not compared, each with its reason."""

_NOT_READY: Final = (
    "a real broker learns of a new topic's tier only after some tenths of a second, and refuses"
    " lookups by time until then; here they are answered at once"
)
_ONE_RECORD: Final = "tiered, 1 record in the active segment, nothing uploaded: ts=T+"
EXCEPTED_IN_TIERED: Final = {
    (tiered.SECTION, f"{_ONE_RECORD}0"): _NOT_READY,
    (tiered.SECTION, f"{_ONE_RECORD}1"): _NOT_READY,
    (
        tiered.SECTION,
        tiered.TRANSITIONS,
    ): "how far it has come when it is asked is chance; how it ends stands in the rows behind it",
}

_LOOKUP: Final = "td v11 ts=T+50 (remote lookup) TimeoutMs="
_LOOKED_UP: Final = frozenset(
    ("err=7 REQUEST_TIMED_OUT offset=-1 epoch=-1 ts=-1", "err=0 NONE offset=50 epoch=0 ts=T+50")
)
RACES: Final = {
    (tiered.SECTION, f"{_LOOKUP}0"): _LOOKED_UP,
    (tiered.SECTION, f"{_LOOKUP}1"): _LOOKED_UP,
    ("InitProducerId", produce.FIRST_PRODUCER_ID): frozenset(
        ("14 COORDINATOR_LOAD_IN_PROGRESS", "0 NONE")
    ),
}
"""Rows of which a quick machine gives one answer and a slow one another; no third is right."""

EXCEPTED_IN_FAILOVER: Final = {
    (
        failover.SECTION,
        failover.SEQUENCE,
    ): "how far the new leader has come when it is asked is chance; see `told_in_order`",
}

EXCEPTED_IN_ACCESS: Final = dict.fromkeys(
    access.STORED_ROWS,
    "quotas and SCRAM credentials are checked, and refused where they would be stored",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a real Kafka answered, and how to ask again."""

    name: str
    ask: Callable[[Cluster, Steering], list[Row]]
    brokers: int
    options: Sequence[str]
    """Of a fencepost that is to answer the same."""
    excepted: Mapping[Key, str]
    kafka_configs: Mapping[str, str] = field(default_factory=dict)
    """Of a Kafka that is asked, besides those that all have; ``{folder}`` is its own."""

    @property
    def file(self) -> Path:
        return Path(__file__).with_name("rows") / f"{self.name}.json"

    @property
    def rows(self) -> list[Row]:
        found = json.loads(self.file.read_text())
        return [(section, request, answer) for section, request, answer in found]

    def start_kafka(self, folder: Path) -> Kafka:
        """A Kafka that is to be asked; it is the caller's to stop."""
        own = {key: value.format(folder=folder) for key, value in self.kafka_configs.items()}
        return start_kafka(folder, nodes=self.brokers, configs=own)


SINGLE: Final = Recording(
    name="single", ask=everything.ask, brokers=1, options=APACHE, excepted=EXCEPTED
)
"""One broker."""
FEATURES: Final = Recording(
    name="features", ask=features.ask, brokers=1, options=APACHE, excepted={}
)
"""One broker, and the level of its features."""
ACCESS: Final = Recording(
    name="access", ask=access.ask, brokers=1, options=APACHE, excepted=EXCEPTED_IN_ACCESS
)
"""One broker without SASL, ACLs, quotas and delegation tokens."""
CREATE_TOPICS: Final = Recording(
    name="create_topics", ask=create_topics.ask, brokers=1, options=APACHE, excepted={}
)
"""One broker, and topics of every kind."""
THREE: Final = Recording(
    name="rf3", ask=everything.ask, brokers=3, options=APACHE_THREE, excepted=EXCEPTED
)
"""Three brokers, every topic on all of them; leaders moved."""
FAILOVER: Final = Recording(
    name="failover",
    ask=failover.ask,
    brokers=3,
    options=APACHE_THREE,
    excepted=EXCEPTED_IN_FAILOVER,
)
"""Three brokers, of which one dies."""
ELECTIONS: Final = Recording(
    name="elections", ask=elections.ask, brokers=3, options=APACHE_THREE, excepted={}
)
"""Three brokers, leaders and replicas chosen by the operator."""
REPLICAS: Final = Recording(
    name="replicas", ask=replicas.ask, brokers=3, options=APACHE_THREE, excepted={}
)
"""Three brokers, and a client who says that it is a replica."""
ABSENT: Final = Recording(
    name="absent", ask=absent.ask, brokers=3, options=APACHE_THREE, excepted={}
)
"""Three brokers, of which one is known to be away."""
RACKS: Final = Recording(name="racks", ask=racks.ask, brokers=3, options=APACHE_THREE, excepted={})
"""Three brokers in racks of their own, and consumers who say where they are."""
GATE: Final = Recording(name="gate", ask=gate.ask, brokers=3, options=APACHE_THREE, excepted={})
"""Three brokers, and a leader that was elected before its follower caught up."""
TRUNCATION: Final = Recording(
    name="truncation", ask=truncation.ask, brokers=3, options=APACHE_THREE, excepted={}
)
"""Three brokers, and an unclean election."""
TIERED: Final = Recording(
    name="tiered",
    ask=tiered.ask,
    brokers=1,
    options=APACHE_TIERED,
    excepted=EXCEPTED_IN_TIERED,
    kafka_configs=KAFKA_TIERED,
)
"""One broker with a remote tier."""
TIERED_REPLICAS: Final = Recording(
    name="tiered_replicas",
    ask=tiered_replicas.ask,
    brokers=3,
    options=(*APACHE_THREE, "--remote", "memory:", *configs(TIER)),
    excepted={},
    kafka_configs=KAFKA_TIERED,
)
"""Three brokers with one remote tier."""
TRANSACTIONS: Final = Recording(
    name="transactions",
    ask=transactions.ask,
    brokers=3,
    options=(*APACHE_THREE, *configs(ONE_PARTITION)),
    excepted={},
)
"""Three brokers, and transactions."""
OF_THREE: Final = (
    *(ELECTIONS, TRANSACTIONS, THREE, REPLICAS, RACKS, GATE),
    *(FAILOVER, ABSENT, TRUNCATION),
)
"""In the order in which one Kafka can be asked all of them: first who wants it fresh."""
RECORDINGS: Final = (SINGLE, CREATE_TOPICS, FEATURES, ACCESS, TIERED, TIERED_REPLICAS, *OF_THREE)
"""All of 4.3.1; ``tests.oracle.record`` records them again."""

ADVERTISED_OTHERWISE: Final = {
    22: "InitProducerId v6 exists, and 4.3.1 holds it back as unstable",
    71: "GetTelemetrySubscriptions: Kafka advertises it with a metrics reporter configured",
    72: "PushTelemetry: the same",
}
"""API keys whose versions the recorded broker advertised otherwise, or not at all."""

MASKED_FIELDS: Final = (
    "ControllerId",
    "Port",
    "Host",
    "ClusterId",
    "NodeId",
    "LeaderId",
    "ThrottleTimeMs",
)

ELAPSED: Final = (r"\b\d+\.\d+s\b", "S")
"""How long something took, in requests as well: a matter of the machine."""

LEADER_HINT: Final = (
    (
        r"(\{'CurrentLeader\(tag\d\)': \{'LeaderId': )(\d)(, 'LeaderEpoch': \d+\}\} "
        r"\{'NodeEndpoints\(tag0\)': \[\{'NodeId': )\2(, 'Host': '127.0.0.1', 'Port': )\d+"
        r"(, 'Rack': 'r)\2'\}\]\}"
    ),
    r"\1L\3L\4P\5L'}]}",
)
"""Who leads is chance; that the endpoint is the leader's, and the rack the endpoint's, is not."""

MASKED_TEXTS: Final[Sequence[tuple[str, str]]] = (
    LEADER_HINT,
    (r"\bo\d+-", "P-"),  # the prefix of a run's topics
    (r"\b[0-9a-f]{32}\b", "ID"),  # topic ids
    (r"'(ControllerId|Port|NodeId|LeaderId|ThrottleTimeMs)': \d+", r"'\1': *"),
    (r"'(Leader|Host|ClusterId)': '?[^,'}]+'?", r"'\1': *"),
    (r"response \d+B: [0-9a-f]+", "response"),  # an answer that names a host and a port
    (r"\b1[5-9]\d{11}\b", "NOW"),  # times of day
    (r"-92233\d{14}", "LOW"),  # a bound that is a time of day minus the largest int64
    (r"127\.0\.0\.1:\d+", "ADDR"),
    ELAPSED,
)

MASKED_IN_METADATA: Final = (
    r"'(ReplicaNodes|IsrNodes|LeaderEpoch)': (\[[^]]*\]|-?\d+)",
    r"'\1': *",
)
"""Where a partition lives is placed by chance."""

AVAILABLE: Final = "err=0 NONE offset=5 epoch=1 ts=-1"
"""The log end of a new leader at its election, in the epoch that began there."""

KEY_COUNT: Final = (r"keys=[1-9]\d*", "keys=some")
"""How many APIs are advertised, in the rows of ApiVersions: see the exception of the key list."""


def differences(
    want: Iterable[Row], got: Iterable[Row], excepted: Mapping[Key, str] = MappingProxyType({})
) -> list[str]:
    """The rows of ``want`` that ``got`` lacks or answers otherwise, as readable text."""
    answers = _by_request(got, excepted)
    found = []
    for key, expected in _by_request(want, excepted).items():
        actual = answers.get(key, "no such row")
        if actual != expected:
            section, request = key
            found.append(f"{section}: {request}\n   want {expected}\n   got  {actual}")
    return found


def key_of(row: Row) -> Key:
    """What a row is recognized by."""
    section, request, _ = row
    return section, re.sub(*ELAPSED, request)


def _by_request(rows: Iterable[Row], excepted: Mapping[Key, str]) -> dict[Key, Value]:
    return {key_of(row): _masked_row(row) for row in rows if key_of(row) not in excepted}


def _masked_row(row: Row) -> Value:
    section, _, answer = row
    if answer in RACES.get(key_of(row), ()):
        return "in time or not"
    if section == "ApiVersions" and isinstance(answer, str):
        answer = re.sub(*KEY_COUNT, answer)
    return mask(answer)


def mask(answer: Value) -> Value:
    """An answer without what differs between any two real clusters."""
    if isinstance(answer, dict):
        return {k: "*" if k in MASKED_FIELDS else mask(v) for k, v in answer.items()}
    if isinstance(answer, list):
        return [mask(each) for each in answer]
    if not isinstance(answer, str):
        return answer
    for pattern, replacement in MASKED_TEXTS:
        answer = re.sub(pattern, replacement, answer)
    return re.sub(*MASKED_IN_METADATA, answer) if "topic={" in answer else answer


def told_in_order(want: Iterable[Row], got: Iterable[Row]) -> bool:
    """Whether a new leader told what Kafka's did, in this order, until the offset was there.

    Kafka's may have been asked no longer when it was; a leader that is quicker leaves errors out.
    """
    told, seen = _sequence(want), _sequence(got)
    order = iter([each for each in told if not each.startswith("err=0 ")])
    return all(each in order for each in seen[:-1]) and seen[-1:] in ([AVAILABLE], [])


def _sequence(rows: Iterable[Row]) -> list[str]:
    found = [answer for _, request, answer in rows if request == failover.SEQUENCE]
    return [each for answer in found for each in answer]
