"""Requests for more than one answer or one change may be."""

from __future__ import annotations

import pytest

from fencepost.broker.core import outcomes
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.outcomes import SLICE
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers import CONTROLLER_APIS, READING_APIS, describe_configs, fetch
from fencepost.protocol import codec
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import read_header, skip_tags
from fencepost.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create, produce
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request
from tests.robustness.costliest import GROUP, shapes
from tests.robustness.work import counting

TOPIC = 2
TOO_MANY = "Excessively large number of partitions per request."


def first_turn(driver: Driver, api: Api, version: int, request: object) -> object:
    """What a broker answers in the turn of the request."""
    peer = Peer(connection_id="c", host="192.0.2.1", listener_host="203.0.113.7")
    now_ms = driver.clock.now_ms()
    ctx = Context(driver.broker(1), version, "c", peer, now_ms, now_ms)
    return driver.broker(1).handle(api, ctx, request)


def missing(count: int) -> MetadataRequest:
    """Asks for topics that are to be created."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=f"new.{index}") for index in range(count)),
        allow_auto_topic_creation=True,
    )


def test_a_request_creates_ten_thousand_partitions_at_most() -> None:
    driver = Driver(1, {"num.partitions": "100"})
    topics = driver.ask(1, "metadata", NEWEST, missing(101)).topics
    assert {topic.error_code for topic in topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not driver.broker(1).view.topics
    create(driver, "a")
    create(driver, "b")
    request = CreatePartitionsRequest(
        topics=(
            CreatePartitionsTopic(name="a", count=5001, assignments=None),
            CreatePartitionsTopic(name="b", count=5002, assignments=None),
        )
    )
    results = driver.ask(1, "create_partitions", NEWEST, request).results
    assert {(r.error_code, r.error_message) for r in results} == {
        (ErrorCode.POLICY_VIOLATION, TOO_MANY)
    }
    assert len(driver.broker(1).view.topics["a"].partitions) == 1


def test_topics_that_a_client_asks_for_are_created_in_one_image() -> None:
    driver = Driver(1)
    before = driver.broker(1).view.version
    driver.ask(1, "metadata", NEWEST, missing(50))
    assert len(driver.broker(1).view.topics) == 50
    assert driver.broker(1).view.version == before + 1


def test_configs_of_many_topics_change_in_one_image() -> None:
    driver = Driver(1)
    for index in range(10):
        create(driver, f"t.{index}")
    before = driver.broker(1).view.version
    config = AlterableConfig(name="retention.ms", config_operation=0, value="5")
    request = IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(resource_type=TOPIC, resource_name=f"t.{index}", configs=(config,))
            for index in range(10)
        )
    )
    answer = driver.ask(1, "incremental_alter_configs", NEWEST, request)
    assert {each.error_code for each in answer.responses} == {ErrorCode.NONE}
    view = driver.broker(1).view
    assert view.version == before + 1
    assert all(view.configs_of(f"t.{index}") == {"retention.ms": "5"} for index in range(10))


def test_an_answer_describes_so_many_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(1)
    create(driver, "t")
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=("retention.ms", "segment.ms")
    )
    request = DescribeConfigsRequest(resources=(resource,) * 3)
    monkeypatch.setattr(describe_configs, "MAX_ENTRIES", 5)
    results = driver.ask(1, "describe_configs", NEWEST, request).results
    assert [(r.error_code, len(r.configs)) for r in results] == [
        (ErrorCode.NONE, 2),
        (ErrorCode.NONE, 2),
        (ErrorCode.POLICY_VIOLATION, 0),
    ]


SLICED = (
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_topic_partitions",
    "describe_transactions",
    "describe_user_scram_credentials",
    "fetch",
    "find_coordinator",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_transactions",
    "metadata",
    "offset_fetch",
    "offset_for_leader_epoch",
)
"""The APIs that read what a request names and change nothing, but for those of the controller."""
OF_THE_CONTROLLER = {"describe_quorum", "list_partition_reassignments"}
NAME_NOTHING = {
    "api_versions",
    "describe_acls",
    "describe_cluster",
    "get_telemetry_subscriptions",
    "sasl_authenticate",
    "sasl_handshake",
}
"""Reading APIs whose requests have no arrays."""
READ_FEW = {"describe_client_quotas", "describe_delegation_token"}
"""Reading APIs that are answered before a fifth element is read: there are three types of entities
to ask for, each once, and a plaintext listener has no tokens."""


NOT_READ = {
    ("describe_configs", "resources", "configuration_keys"),
    ("describe_log_dirs", "topics"),
    ("fetch", "topics"),
    ("fetch", "forgotten_topics_data"),
    ("fetch", "forgotten_topics_data", "partitions"),
}
"""Elements for which nothing is looked up."""


def test_every_api_changes_something_or_reads_in_turns_or_names_little() -> None:
    assert {*SLICED} | OF_THE_CONTROLLER | NAME_NOTHING | READ_FEW == READING_APIS
    for name in NAME_NOTHING:
        found = shapes(BY_NAME[name], BY_NAME[name].max_version)
        assert not [shape for shape in found if shape.kind in ("elements", "outer")]
    assert OF_THE_CONTROLLER < CONTROLLER_APIS


@pytest.mark.parametrize("name", SLICED)
def test_what_only_reads_much_takes_several_turns(name: str) -> None:
    api = BY_NAME[name]
    driver = Driver(1, {"auto.create.topics.enable": "false"})
    create(driver, "t")
    driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key=GROUP))  # groups are read
    ids = {"t": driver.broker(1).view.topics["t"].topic_id}
    for shape in shapes(api, api.max_version):
        if shape.kind not in ("elements", "outer") or shape.names != "unknown":
            continue
        if (name, *shape.path) in NOT_READ:
            continue
        frame = bytearray(shape.frame(60 * SLICE, ids)[4:])
        offset = skip_tags(frame, read_header(frame), api)
        request = codec.decode_request(api, api.max_version, frame, offset)
        answer = first_turn(driver, api, api.max_version, request)
        assert isinstance(answer, Wait), shape.name
        driver.cluster.scheduler.run_due()
        assert answer.done, shape.name


def fetch_all(count: int, *, min_bytes: int) -> FetchRequest:
    """Waits half a second for so many bytes of the first partitions of topic t."""
    partitions = tuple(
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(count)
    )
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=min_bytes,
        max_bytes=1 << 30,
        topics=(FetchTopic(topic="t", partitions=partitions),),
    )


def test_an_append_between_two_turns_of_a_fetch_ends_its_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 250
    driver = Driver(1)
    create(driver, "t", [(1,)] * count)
    monkeypatch.setattr(fetch, "SLICE", 100)
    monkeypatch.setattr(outcomes, "_TURN", range(100))
    answer = first_turn(driver, BY_NAME["fetch"], 12, fetch_all(count, min_bytes=1))
    assert isinstance(answer, Wait)
    produce(driver, "t", b"v")  # to a partition that was read
    assert answer.done
    assert answer.result is not None
    (topic,) = answer.result.responses
    assert [part.partition_index for part in topic.partitions if part.records] == [0]


def test_a_waiting_fetch_of_many_partitions_is_not_read_at_each_append() -> None:
    count = 250
    driver = Driver(1)
    create(driver, "t", [(1,)] * count)
    sent = driver.send(1, "fetch", 12, fetch_all(count, min_bytes=1 << 20))
    with counting() as work:
        produced = produce_request(*(("t", index, bytes(batch(b"v"))) for index in range(count)))
        driver.ask(1, "produce", 9, produced)
    assert not sent.done
    assert work.total <= 1_000 * count
    driver.advance(500)
    (topic,) = sent.response.responses
    assert all(partition.records for partition in topic.partitions)
