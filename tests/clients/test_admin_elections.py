"""Elections and reassignments as administrators ask for them: by clients, and by Kafka's tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.harness.cluster import Cluster, unique
from tests.harness.control import Control, Json
from tests.harness.java import java

PREFERRED = 0
TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module")
def control(cluster: Cluster) -> Iterator[Control]:
    if cluster.control is None:
        pytest.skip("the given cluster has no control API")
    made = Control(cluster.control)
    yield made
    made.close()


@pytest.fixture
def topic(control: Control) -> str:
    """Broker 1 is preferred, but broker 2 leads."""
    name = unique("elected")
    control.create_topic(name, [[1, 2, 3]])
    assert control.elect(name, 2)["leader"] == 2
    return name


def leadership(state: Json) -> tuple[int, int]:
    return state["leader"], state["leader_epoch"]


def test_confluent_elects_the_preferred_leader(
    cluster: Cluster, control: Control, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partition = TopicPartition(topic, 0)
    answer = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(30)
    assert answer == {partition: None}
    assert leadership(control.partition(topic)) == (1, 2)
    again = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(30)[partition]
    assert again.code() == KafkaError.ELECTION_NOT_NEEDED


def test_kafka_python_elects_the_preferred_leader(
    cluster: Cluster, control: Control, topic: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        admin.elect_leaders(PREFERRED, {topic: [0]})
    finally:
        admin.close()
    assert leadership(control.partition(topic)) == (1, 2)


def test_the_leader_election_tool(cluster: Cluster, control: Control, topic: str) -> None:
    arguments = ["--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", "0"]
    preferred = [f"{TOOLS}.LeaderElectionCommand", *arguments, "--election-type", "preferred"]
    done = java(*preferred)
    assert (
        f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in done.out
    )
    assert leadership(control.partition(topic)) == (1, 2)
    assert "Valid replica already elected" in java(*preferred).out


def test_the_reassignment_tool(
    cluster: Cluster, control: Control, topic: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    moves = [{"topic": topic, "partition": 0, "replicas": [3, 1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    arguments = ["--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan)]
    command = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    java(command, *arguments, "--execute")
    done = java(command, *arguments, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in done.out
    state = control.partition(topic)
    assert [replica["broker"] for replica in state["replicas"]] == [3, 1]
    assert sorted(state["isr"]) == [1, 3]
    assert state["leader"] in (1, 3)
