"""CreateTopics: what a topic gets, and every way to ask for one that can't be.

Of the configs in an answer the row has how many there are and which the topic has of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.harness.served_cluster import Cluster
from tests.harness.wire import Body
from tests.oracle.asker import Asker
from tests.oracle.asking import Row, error_text
from tests.oracle.steering import Steering

SECTION: Final = "CreateTopics"
VERSIONS: Final = (2, 3, 4, 5, 6, 7)
_OF_THE_TOPIC: Final = 1
"""A config's source."""
NAMES: Final = (
    *("", ".", "..", "a b", "a/b", "\u00fc", "x" * 249, "x" * 250),
    *("__consumer_offsets", "__cluster_metadata", "a.b", "a_b"),
)
COUNTS: Final = (
    *((0, 1), (-1, 1), (-2, 1), (1, 0), (1, -1), (1, -2), (1, 3), (1, 99), (-1, -1), (0, 0)),
    *((10_001, 1), (2_147_483_647, 1)),
)
ASSIGNMENTS: Final[Sequence[Sequence[tuple[int, Sequence[int]]]]] = (
    [(0, [1])],
    [(1, [1])],
    [(-1, [1])],
    [(0, [1]), (0, [1])],
    [(0, [1]), (1, [1])],
    [(0, [1]), (2, [1])],
    [(0, [])],
    [(0, [1, 1])],
    [(0, [99])],
    [(0, [-1])],
)
CONFIGS: Final[Sequence[Sequence[tuple[str, str | None]]]] = (
    [("retention.ms", "604800000")],
    [("retention.ms", "77"), ("cleanup.policy", "compact,delete")],
    [("retention.ms", "1"), ("retention.ms", "2")],
    [("local.retention.ms", "99999999999")],
    [("nope", "1")],
    [("nope", None)],
    [("", "1")],
    [("retention.ms", "1"), ("nope", "1")],
    [("retention.ms", "x")],
    [("retention.ms", "-2")],
    [("retention.ms", None)],
    [("retention.ms", None), ("segment.ms", None)],
    [("cleanup.policy", "no")],
    [("min.insync.replicas", "0")],
    [("segment.bytes", "1")],
    [("compression.type", "zstd"), ("compression.zstd.level", "99")],
    [("remote.storage.enable", "true")],
)


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh cluster of one broker."""
    asker = Asker(cluster, steering)
    try:
        for version in VERSIONS:
            name = f"plain{version}"
            _ask(asker, "new", [_topic(name)], version)
            _ask(asker, "there", [_topic(name)], version)
            own = {"retention.ms": "5"}.items()
            for validate_only in (True, False):
                topics = [_topic(f"own{version}", 2, configs=list(own))]
                _ask(asker, "own", topics, version, validate_only=validate_only)
        for name in NAMES:
            _ask(asker, f"name {name!r}", [_topic(name)], validate_only=True)
        _ask(asker, "a name with a dot", [_topic("k.b")])
        _ask(asker, "the same with a line", [_topic("k_b")])
        _ask(asker, "both at once", [_topic("m.b"), _topic("m_b")])
        for partitions, factor in COUNTS:
            asked = [_topic("counts", partitions, factor)]
            _ask(asker, f"counts {partitions} {factor}", asked, validate_only=True)
        for assignments in ASSIGNMENTS:
            asked = [_topic("assigned", -1, -1, assignments)]
            _ask(asker, f"assignments {assignments}", asked, validate_only=True)
        for partitions, factor in ((1, -1), (-1, 1), (1, 1), (2, 2)):
            asked = [_topic("assigned", partitions, factor, [(0, [1])])]
            _ask(asker, f"assigned and counts {partitions} {factor}", asked, validate_only=True)
        for configs in CONFIGS:
            asked = [_topic("configs", configs=configs)]
            _ask(asker, f"configs {configs}", asked, validate_only=True)
        for version in (4, 7):
            twice = [_topic("twice"), _topic("twice"), _topic(f"once{version}")]
            _ask(asker, "twice", twice, version)
        _ask(asker, "none", [])
        _ask(asker, "good and bad", [_topic("good"), _topic("bad", 0)])
    finally:
        asker.close()
    return asker.rows


def _topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> Body:
    return {
        "Name": name,
        "NumPartitions": partitions,
        "ReplicationFactor": factor,
        "Assignments": [
            {"PartitionIndex": index, "BrokerIds": list(ids)} for index, ids in assignments
        ],
        "Configs": [{"Name": key, "Value": value} for key, value in configs],
    }


def _ask(
    asker: Asker,
    what: str,
    topics: Sequence[Body],
    version: int = 7,
    *,
    validate_only: bool = False,
) -> None:
    """A row for a request, the topics of its answer by name."""
    body = {"Topics": list(topics), "timeoutMs": 20_000, "validateOnly": validate_only}
    answer = asker.connection.call(SECTION, version, body)
    told = [_told(each) for each in sorted(answer["Topics"], key=lambda each: str(each["Name"]))]
    asker.row(SECTION, f"v{version} {what} validate={validate_only}", "; ".join(told))


def _told(topic: Mapping[str, object]) -> str:
    text = f"{topic['Name']} err={error_text(int(str(topic['ErrorCode'])))}"
    for name, field in (
        ("msg", "ErrorMessage"),
        ("n", "NumPartitions"),
        ("r", "ReplicationFactor"),
    ):
        if field in topic:
            text += f" {name}={topic[field]!r}"
    if "TopicId" in topic:
        text += " id" if int(str(topic["TopicId"]), 16) else " no id"
    configs = topic.get("Configs")
    if isinstance(configs, list):
        own = [(c["Name"], c["Value"]) for c in configs if c["ConfigSource"] == _OF_THE_TOPIC]
        text += f" configs={len(configs)} own={own}"
    return text
