"""A cluster with a dialect serves the clients of today as ever: none of them asks for it.

Kafka's tools read what clients of the dialect have committed, and pass its timestamps over.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.client import Partition, connect
from fencepost.client.cluster import find_coordinator
from fencepost.client.groups import commit_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.errors import ErrorCode
from tests.clients import test_confluent_groups, test_confluent_offsets, test_java, test_kcat
from tests.clients.test_kcat import kcat, ten
from tests.harness.control_client import Control
from tests.harness.durable_cluster import DurableCluster
from tests.harness.kafka_tools import kafka_tool
from tests.harness.served_cluster import Cluster, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["kcat", "ten"]

DIALECT: Final = "kip-320-draft"
REPLACED: Final = {"Fetch": 9, "ListOffsets": 4, "OffsetCommit": 6, "OffsetFetch": 5}
ONE_LOG: Final = ("--config", "offsets.topic.num.partitions=1")
TOOLS: Final = "org.apache.kafka.tools"
TIME: Final = 1_600_000_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with the dialect; in the end, that none of their clients met it."""
    log = tmp_path_factory.mktemp("dialect") / "log"
    with serving(log, "--dialect", DIALECT) as started:
        assert started.control is not None
        control = Control(started.control)
        yield started
        refused = [
            each
            for api, version in REPLACED.items()
            for each in control.trace(api=api, error="UNSUPPORTED_VERSION", limit=4096)
            if each["version"] == version
        ]
        asking = [
            each
            for each in control.trace(api="ApiVersions", limit=4096)
            if each["request"].get("dialect_requested")
        ]
        control.close()
        assert (refused, asking) == ([], [])


# -- as ever ------------------------------------------------------------------------------------

test_the_java_clients = test_java.test_client_story
test_the_java_administrator = test_java.test_admin_story
test_verifiable_java_clients = test_java.test_verifiable_producer_and_consumer
test_kcat_lists = test_kcat.test_lists_one_topic_as_json
test_kcat_produces_and_consumes = test_kcat.test_lines_come_back_in_order
test_kcat_queries = test_kcat.test_query_by_timestamp
test_a_group_of_kcats = test_kcat.test_a_group_goes_on_where_it_was
test_librdkafka_finds_offsets = test_confluent_offsets.test_offsets_for_times
test_librdkafka_out_of_range = test_confluent_offsets.test_out_of_range_resets_by_policy
test_librdkafka_commits = test_confluent_offsets.test_commit_keeps_metadata_and_leader_epoch
test_librdkafka_resumes = test_confluent_offsets.test_a_group_resumes_after_what_it_committed
test_a_group_of_librdkafkas = test_confluent_groups.test_three_members_read_everything_once


def test_kafkas_tool_lists_the_feature(cluster: Cluster) -> None:
    arguments = ["--bootstrap-server", cluster.bootstrap, "describe"]
    told = kafka_tool(f"{TOOLS}.FeatureCommand", *arguments)
    (line,) = (each for each in told.lines if "kip.320.draft" in each)
    assert line.split() == [
        *("Feature:", "kip.320.draft", "SupportedMinVersion:", "1"),
        *("SupportedMaxVersion:", "1", "FinalizedVersionLevel:", "0"),
        *line.split()[8:],
    ]


# -- what the dialect stores --------------------------------------------------------------------


async def commit(address: tuple[str, int]) -> None:
    """Two offsets of group g, the second without a timestamp."""
    connection = await connect(*address, "draft", dialect=DIALECT)
    assert (await find_coordinator(connection, "g")).error == ErrorCode.NONE
    for index, timestamp in ((0, TIME), (1, -1)):
        partition = Partition(topic="t", index=index)
        who = ConsumerGroupMetadata(group="g")
        done = await commit_offset(
            connection, who, partition, 40 + index, epoch=5, timestamp=timestamp, note="md"
        )
        assert done.error == ErrorCode.NONE
    await connection.close()


def test_kafkas_console_consumer_formats_a_commit_with_a_timestamp(tmp_path: Path) -> None:
    options = ("--dialect", DIALECT, "--topic", "t:2", *ONE_LOG)
    with serving(tmp_path / "log", *options, brokers=1) as served:
        asyncio.run(commit(served.addresses[0]))
        told = kafka_tool(
            f"{TOOLS}.consumer.ConsoleConsumer",
            *("--bootstrap-server", served.bootstrap, "--topic", "__consumer_offsets"),
            *("--formatter", f"{TOOLS}.consumer.OffsetsMessageFormatter"),
            *("--from-beginning", "--max-messages", "2", "--timeout-ms", "30000"),
        )
    records = json.loads(f"[{told.out.strip().replace('}{', '},{')}]")
    found = {
        each["key"]["data"]["partition"]: (each["value"]["version"], each["value"]["data"])
        for each in records
    }
    for index, version in ((0, 4), (1, 3)):
        shown = found[index][1]
        assert found[index][0] == version
        assert (shown["offset"], shown["leaderEpoch"], shown["metadata"]) == (40 + index, 5, "md")


def test_kafkas_log_dump_decodes_a_commit_with_a_timestamp(tmp_path: Path) -> None:
    options = ["--dialect", DIALECT, "--topic", "t:2", *ONE_LOG]
    served = DurableCluster(tmp_path / "data", tmp_path / "log", brokers=1, options=options)
    served.start()
    asyncio.run(commit(served.cluster.addresses[0]))
    served.stop()
    (segment,) = tmp_path.glob("data/**/__consumer_offsets-0/*.log")
    arguments = ["--offsets-decoder", "--files", str(segment)]
    told = kafka_tool(f"{TOOLS}.DumpLogSegments", *arguments)
    payloads = [line.split("payload: ")[1] for line in told.lines if "payload: " in line]
    offsets = [json.loads(each)["data"]["offset"] for each in payloads]
    assert offsets == [40, 41]
