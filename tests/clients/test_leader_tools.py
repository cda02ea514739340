"""Elections and reassignments as administrators ask for them: Kafka's own tools, and clients."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import httpx
import pytest
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka import TopicPartition as Partition
from kafka.errors import (
    ElectionNotNeededError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)

from tests.harness.confluent import WAIT_S, consumer, delivered, read, send
from tests.harness.kafka_tools import kafka_tool
from tests.harness.run import Finished
from tests.harness.served_cluster import Cluster, given, serving, unique
from tests.harness.wait import wait_until
from tests.harness.wire import Body

TOOLS: Final = "org.apache.kafka.tools"
VALUES: Final = [b"%d" % number for number in range(20)]


def leader_election(cluster: Cluster, *arguments: str, code: int = 0) -> Finished:
    """Kafka's ``kafka-leader-election``."""
    server = ["--bootstrap-server", cluster.bootstrap]
    return kafka_tool(f"{TOOLS}.LeaderElectionCommand", *server, *arguments, code=code)


def reassign_partitions(cluster: Cluster, *arguments: str, code: int = 0) -> Finished:
    """Kafka's ``kafka-reassign-partitions``."""
    server = ["--bootstrap-server", cluster.bootstrap]
    return kafka_tool(f"{TOOLS}.reassign.ReassignPartitionsCommand", *server, *arguments, code=code)


def written(folder: Path, content: Body) -> str:
    """The path of a JSON file with this content."""
    path = folder / f"{unique('tool')}.json"
    path.write_text(json.dumps(content))
    return str(path)


def plan(folder: Path, topic: str, targets: Mapping[int, Sequence[int]]) -> str:
    """A file that says who is to hold each partition."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas)}
        for index, replicas in targets.items()
    ]
    return written(folder, {"version": 1, "partitions": partitions})


def state(cluster: Cluster, topic: str, index: int = 0) -> Body:
    """A partition's entry of a Metadata answer."""
    found: Body = next(
        p for p in cluster.metadata(topic)["Partitions"] if p["PartitionIndex"] == index
    )
    return found


def leads(cluster: Cluster, topic: str, broker_id: int, index: int = 0) -> None:
    wait_until(
        f"{broker_id} leads {topic}-{index}",
        lambda: state(cluster, topic, index)["LeaderId"] == broker_id,
    )


def prefer_another(cluster: Cluster, topic: str, *indexes: int) -> list[int]:
    """Put the last replica of each partition first; who is preferred by now."""
    asked, preferred = [], []
    for index in indexes:
        *others, last = state(cluster, topic, index)["ReplicaNodes"]
        asked.append({"PartitionIndex": index, "Replicas": [last, *others]})
        preferred.append(last)
    body = {"TimeoutMs": 20_000, "Topics": [{"Name": topic, "Partitions": asked}]}
    with cluster.connect() as connection:
        answer = connection.call("AlterPartitionReassignments", 1, body)
    assert all(p["ErrorCode"] == 0 for p in answer["Responses"][0]["Partitions"]), answer
    for index, broker_id in zip(indexes, preferred, strict=True):
        _until_first(cluster, topic, index, broker_id)
    return preferred


def _until_first(cluster: Cluster, topic: str, index: int, broker_id: int) -> None:
    wait_until(
        f"{broker_id} is preferred",
        lambda: state(cluster, topic, index)["ReplicaNodes"][0] == broker_id,
    )


def produce(cluster: Cluster, topic: str, *values: bytes, partitions: int = 1) -> None:
    assert delivered(send(cluster, topic, values, partitions=partitions))


# -- a cluster whose brokers come and go --------------------------------------------------------


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four brokers; every test leaves all of them as they were."""
    if given() is not None:
        pytest.skip("the given cluster has no control API")
    with serving(tmp_path_factory.mktemp("four") / "fencepost.log", brokers=4) as started:
        yield started


def post(cluster: Cluster, path: str, **body: object) -> None:
    answer = httpx.post(f"{cluster.control}/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text


def create(cluster: Cluster, *assignments: Sequence[int]) -> str:
    topic = unique("tools")
    post(cluster, "topics", name=topic, assignments=list(assignments))
    return topic


# -- kafka-leader-election ----------------------------------------------------------------------


def test_the_election_command_brings_the_preferred_leader_back(cluster: Cluster) -> None:
    topic = cluster.create_topic("tools")
    (preferred,) = prefer_another(cluster, topic, 0)
    asked = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
    done = leader_election(cluster, *asked).out
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in done
    leads(cluster, topic, preferred)
    again = leader_election(cluster, *asked).out
    assert f"Valid replica already elected for partitions {topic}-0" in again


def test_the_election_command_takes_partitions_from_a_file(
    cluster: Cluster, tmp_path: Path
) -> None:
    topic = cluster.create_topic("tools", partitions=2)
    (preferred,) = prefer_another(cluster, topic, 1)
    partitions = [{"topic": topic, "partition": index} for index in (0, 1, 7)]
    path = written(tmp_path, {"partitions": partitions})
    told = leader_election(
        cluster, "--election-type", "preferred", "--path-to-json-file", path, code=1
    )
    assert (
        f"Successfully completed leader election (PREFERRED) for partitions {topic}-1" in told.out
    )
    assert f"Valid replica already elected for partitions {topic}-0" in told.out
    assert f"partition: {topic}-7" in told.out
    assert f"UnknownTopicOrPartitionException: No such partition as {topic}-7" in told.out
    leads(cluster, topic, preferred, 1)


def test_the_election_command_elects_everywhere(cluster: Cluster) -> None:
    topic = cluster.create_topic("tools", partitions=3)
    preferred = prefer_another(cluster, topic, 0, 2)
    arguments = ["--election-type", "preferred", "--all-topic-partitions"]
    told = leader_election(cluster, *arguments).out
    for index, broker_id in zip((0, 2), preferred, strict=True):
        assert f"{topic}-{index}" in told
        leads(cluster, topic, broker_id, index)
    assert f"{topic}-1" not in told
    assert topic not in leader_election(cluster, *arguments).out


def test_the_election_command_elects_uncleanly_where_nobody_leads(four: Cluster) -> None:
    topic = create(four, [2, 3])
    arguments = ["--topic", topic, "--partition", "0", "--election-type"]
    produce(four, topic, b"both")
    post(four, f"topics/{topic}/partitions/0/replicas/3/hold", leave_isr=True)
    produce(four, topic, b"only 2")
    assert "Valid replica" in leader_election(four, *arguments, "unclean").out
    post(four, "brokers/2/kill")
    try:
        refused = leader_election(four, *arguments, "preferred", code=1)
        assert "PreferredLeaderNotAvailableException" in refused.out + refused.err
        done = leader_election(four, *arguments, "unclean").out
        assert f"completed leader election (UNCLEAN) for partitions {topic}-0" in done
        leads(four, topic, 3)
        assert four.end_offset(topic) == 1
    finally:
        post(four, "brokers/2/start")


def test_the_election_command_finds_nobody_where_nobody_is_online(four: Cluster) -> None:
    topic = create(four, [2])
    post(four, "brokers/2/kill")
    try:
        refused = leader_election(
            four, "--topic", topic, "--partition", "0", "--election-type", "unclean", code=1
        )
        assert "EligibleLeadersNotAvailableException" in refused.out + refused.err
    finally:
        post(four, "brokers/2/start")
    leads(four, topic, 2)


# -- kafka-reassign-partitions ------------------------------------------------------------------


def test_the_reassignment_command_moves_what_it_proposed(four: Cluster, tmp_path: Path) -> None:
    topic = create(four, [1, 2], [2, 1])
    produce(four, topic, *VALUES, partitions=2)
    topics = written(tmp_path, {"version": 1, "topics": [{"topic": topic}]})
    asked = ["--topics-to-move-json-file", topics, "--broker-list", "3,4"]
    *_, proposal = reassign_partitions(four, "--generate", *asked).out.strip().splitlines()
    proposed = json.loads(proposal)["partitions"]
    assert [sorted(each["replicas"]) for each in proposed] == [[3, 4], [3, 4]]
    move = ["--reassignment-json-file", written(tmp_path, json.loads(proposal))]
    told = reassign_partitions(four, "--execute", *move).out
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in told
    verified = reassign_partitions(four, "--verify", *move).out
    for each in proposed:
        index = each["partition"]
        assert f"Reassignment of partition {topic}-{index} is completed." in verified
        assert state(four, topic, index)["ReplicaNodes"] == each["replicas"]
        assert sorted(state(four, topic, index)["IsrNodes"]) == [3, 4]
    for index in (0, 1):
        with consumer(four) as source:
            source.assign([TopicPartition(topic, index, 0)])
            found = read(source, len(VALUES) // 2)
        assert [message.value() for message in found] == VALUES[index::2]


def test_the_reassignment_command_lists_and_cancels_what_is_in_progress(
    four: Cluster, tmp_path: Path
) -> None:
    topic = create(four, [1, 2])
    move = ["--reassignment-json-file", plan(tmp_path, topic, {0: [4, 1]})]
    post(four, "brokers/4/isolate", **{"from": [1, 2, 3]})
    try:
        reassign_partitions(four, "--execute", *move)
        listed = reassign_partitions(four, "--list").out
        assert f"{topic}-0: replicas: 4,1,2. adding: 4. removing: 2." in listed
        verified = reassign_partitions(four, "--verify", *move).out
        assert f"Reassignment of partition {topic}-0 is still in progress." in verified
        described = kafka_tool(
            f"{TOOLS}.TopicCommand",
            *["--bootstrap-server", four.bootstrap, "--describe", "--topic", topic],
        ).out
        assert "Replicas: 4,1,2\tIsr: 1,2" in described
        assert "Adding Replicas: 4\tRemoving Replicas: 2" in described
        cancelled = reassign_partitions(four, "--cancel", *move).out
        assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
        assert "No partition reassignments found." in reassign_partitions(four, "--list").out
        assert state(four, topic)["ReplicaNodes"] == [1, 2]
    finally:
        post(four, "brokers/4/rejoin")


def test_a_reassignment_that_waited_ends_when_its_broker_is_back(
    four: Cluster, tmp_path: Path
) -> None:
    topic = create(four, [1, 2])
    produce(four, topic, b"a")
    move = ["--reassignment-json-file", plan(tmp_path, topic, {0: [4, 3, 1]})]
    post(four, "brokers/4/isolate", **{"from": [1, 2, 3]})
    try:
        reassign_partitions(four, "--execute", *move)
        produce(four, topic, b"b")
        assert state(four, topic)["LeaderId"] == 1
    finally:
        post(four, "brokers/4/rejoin")
    assert state(four, topic)["ReplicaNodes"] == [4, 3, 1]
    assert sorted(state(four, topic)["IsrNodes"]) == [1, 3, 4]
    elected = leader_election(
        four, "--election-type", "preferred", "--topic", topic, "--partition", "0"
    )
    assert "Successfully completed leader election" in elected.out
    leads(four, topic, 4)
    assert four.end_offset(topic) == 2


def test_the_reassignment_command_can_keep_the_number_of_replicas(
    four: Cluster, tmp_path: Path
) -> None:
    topic = create(four, [1, 2])
    move = ["--reassignment-json-file", plan(tmp_path, topic, {0: [1, 2, 3]})]
    refused = reassign_partitions(
        four, "--execute", *move, "--disallow-replication-factor-change", code=1
    )
    assert "The replication factor is changed from 2 to 3" in refused.out + refused.err
    assert state(four, topic)["ReplicaNodes"] == [1, 2]


# -- confluent-kafka ----------------------------------------------------------------------------


def elect(
    admin: AdminClient, partitions: list[TopicPartition] | None
) -> dict[tuple[str, int], KafkaException | None]:
    asked: Future[dict[TopicPartition, KafkaException | None]] = admin.elect_leaders(
        ElectionType.PREFERRED, partitions
    )
    found = asked.result(WAIT_S)
    return {(each.topic, each.partition): error for each, error in found.items()}


def test_confluent_elects_leaders(cluster: Cluster) -> None:
    topic = cluster.create_topic("tools", partitions=2)
    (preferred,) = prefer_another(cluster, topic, 1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    answers = elect(admin, [TopicPartition(topic, index) for index in (0, 1)])
    assert answers[topic, 1] is None
    refused = answers[topic, 0]
    assert isinstance(refused, KafkaError | KafkaException)
    leads(cluster, topic, preferred, 1)
    assert (topic, 0) not in elect(admin, None)


# -- kafka-python -------------------------------------------------------------------------------


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield made
    made.close()
    with warnings.catch_warnings():  # the library leaves its wake-up sockets to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_kafka_python_elects_leaders(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = cluster.create_topic("tools")
    (preferred,) = prefer_another(cluster, topic, 0)
    admin.elect_leaders(0, {topic: [0]})
    leads(cluster, topic, preferred)
    (answer,) = admin.elect_leaders(0, {topic: [0]}).replica_election_results
    assert answer.partition_result[0].error_code == ElectionNotNeededError.errno
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.elect_leaders(0, {topic: [7]})


def test_kafka_python_reassigns(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = cluster.create_topic("tools", replication_factor=1)
    (old,) = state(cluster, topic)["ReplicaNodes"]
    new = next(b for b in cluster.metadata(topic)["Brokers"] if b != old)
    partition = Partition(topic, 0)
    assert admin.alter_partition_reassignments({partition: [new]}) == {partition: None}
    leads(cluster, topic, new)
    wait_until("it is over", lambda: admin.list_partition_reassignments() == {})
    refused = admin.alter_partition_reassignments({partition: None})
    assert refused == {partition: NoReassignmentInProgressError}
