"""One connection, driven through its protocol methods: no socket, no loop."""

from __future__ import annotations

import struct

import pytest

from fencepost.broker.handlers import metadata
from fencepost.broker.server.connection import MAX_IN_FLIGHT
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.kafka_releases import NOT_SERVED
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.records import Record, build_batch
from tests.broker.server.edge import Edge

NO_TOPICS = MetadataRequest(topics=())
LONG_POLL = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    topics=(
        FetchTopic(topic="t", partitions=(FetchPartition(fetch_offset=0, partition_max_bytes=99),)),
    ),
)


def produce(acks: int, topic: str = "t", value: bytes = b"v") -> ProduceRequest:
    batch = build_batch([Record(0, 1_700_000_000_000, None, value)])
    data = PartitionProduceData(index=0, records=bytes(batch))
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )


def test_requests_of_one_read_are_answered_in_one_write() -> None:
    client = Edge().connect()
    client.send(b"".join(client.frame("metadata", 9, NO_TOPICS) for _ in range(3)))
    assert client.correlation_ids() == [1, 2, 3]
    assert client.transport.writes == 1


def test_an_answer_waits_for_the_long_poll_before_it_but_its_work_does_not() -> None:
    edge = Edge()
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("metadata", 9, NO_TOPICS)
    assert client.correlation_ids() == []

    edge.connect().ask("produce", 9, produce(acks=1))
    edge.turn()

    assert client.correlation_ids() == [1, 2]
    records = client.answer(0, "fetch", 11).responses[0].partitions[0].records
    assert records is not None
    assert sum(map(len, records)) > 0


def test_a_long_poll_ends_empty_at_its_time_and_not_before() -> None:
    edge = Edge()
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    edge.pass_time(499)
    assert client.frames() == []
    edge.pass_time(1)
    assert client.answer(0, "fetch", 11).responses[0].partitions[0].records == (b"",)


def test_acks_0_gets_no_bytes_and_holds_nothing_up() -> None:
    edge = Edge()
    client = edge.connect()
    client.send(
        client.frame("produce", 9, produce(acks=0)) + client.frame("metadata", 9, NO_TOPICS)
    )
    assert client.correlation_ids() == [2]
    assert edge.cluster.brokers[1].replicas["t", 0].high_watermark == 1


def test_acks_0_that_fails_closes_the_connection() -> None:
    client = Edge().connect()
    client.ask("produce", 9, produce(acks=0, topic="missing"))
    assert client.transport.closed
    assert client.frames() == []


def test_what_was_asked_before_a_broken_frame_is_answered_before_the_end() -> None:
    client = Edge().connect()
    client.send(client.frame("metadata", 9, NO_TOPICS) + struct.pack(">ihhih", 10, 3, 1, 7, 500))
    assert client.correlation_ids() == [1]
    assert client.transport.closed


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 0),
        struct.pack(">i", -1),
        struct.pack(">i", 104_857_601),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 14, 1, -1),
        struct.pack(">ihhih", 10, 3, 1, 7, -1),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["empty", "negative", "too large", "unknown API", "unknown version", "cut body", "HTTP"],
)
def test_bytes_that_are_no_request_cost_their_connection_only(data: bytes) -> None:
    edge = Edge()
    victim, other = edge.connect(), edge.connect()
    victim.send(data)
    assert victim.transport.closed
    other.ask("metadata", 9, NO_TOPICS)
    assert other.correlation_ids() == [1]


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    client = Edge().connect()
    client.send(struct.pack(">ihhih", 10, 18, 99, 5, -1))
    assert client.frames() == [bytes.fromhex("00000005002300000001001200000004")]
    client.ask("api_versions", 3, ApiVersionsRequest(client_software_name="x"))
    assert not client.transport.closed


def test_a_version_above_the_brokers_ceiling_is_unknown() -> None:
    edge = Edge(api_max={"metadata": 8})
    client, newer = edge.connect(), edge.connect()
    client.ask("metadata", 8, NO_TOPICS)
    assert client.answer(0, "metadata", 8).topics == ()
    newer.ask("metadata", 9, NO_TOPICS)
    assert newer.transport.closed
    assert newer.frames() == []
    # Other APIs are as ever.
    client.ask("api_versions", 4, ApiVersionsRequest(client_software_name="x"))
    assert len(client.frames()) == 2


def test_an_api_that_is_not_served_is_unknown() -> None:
    client = Edge(api_max={"offset_for_leader_epoch": NOT_SERVED}).connect()
    client.ask("offset_for_leader_epoch", 2, OffsetForLeaderEpochRequest())
    assert client.transport.closed
    assert client.frames() == []


def test_a_ceiling_of_api_versions_is_told_in_version_0() -> None:
    client = Edge(api_max={"api_versions": 2}).connect()
    client.ask("api_versions", 3, ApiVersionsRequest(client_software_name="x"))
    assert client.frames() == [bytes.fromhex("00000001002300000001001200000002")]
    client.ask("api_versions", 2, ApiVersionsRequest())
    assert client.answer(1, "api_versions", 2).error_code == ErrorCode.NONE
    assert not client.transport.closed


def test_a_frame_may_be_as_large_as_socket_request_max_bytes_says() -> None:
    edge = Edge({"socket.request.max.bytes": "60"})
    small, large = edge.connect(), edge.connect()
    small.ask("metadata", 9, NO_TOPICS)
    large.ask("metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="n" * 99),)))
    assert not small.transport.closed
    assert large.transport.closed


def test_reading_stops_while_too_many_requests_wait_and_none_is_lost() -> None:
    edge = Edge()
    client = edge.connect()
    client.send(b"".join(client.frame("fetch", 11, LONG_POLL) for _ in range(MAX_IN_FLIGHT + 5)))
    assert not client.transport.is_reading()
    edge.pass_time(500)
    assert client.transport.is_reading()
    edge.pass_time(500)
    assert client.correlation_ids() == list(range(1, MAX_IN_FLIGHT + 6))


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    client = Edge().connect()
    client.connection.pause_writing()
    client.ask("metadata", 9, NO_TOPICS)
    assert not client.transport.is_reading()
    assert client.frames() == []
    client.connection.resume_writing()
    assert client.transport.is_reading()
    assert client.correlation_ids() == [1]


def test_a_bug_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    client = Edge().connect()
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "handle", broken)
        client.ask("metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)))
    client.ask("metadata", 9, NO_TOPICS)
    assert client.answer(0, "metadata", 9).topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.correlation_ids() == [1, 2]


def test_a_bug_in_the_apology_as_well_costs_one_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    edge = Edge()
    client, other = edge.connect(), edge.connect()
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "handle", broken)
        patch.setattr(metadata, "refuse", broken)
        client.ask("metadata", 9, NO_TOPICS)
    assert client.transport.closed
    other.ask("metadata", 9, NO_TOPICS)
    assert other.correlation_ids() == [1]


def test_who_is_gone_is_not_waited_for() -> None:
    edge = Edge()
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.connection.connection_lost(None)
    assert not edge.cluster.brokers[1].replicas["t", 0].watermark_watch.waits
    edge.pass_time(500)
    assert client.frames() == []


def test_clients_are_told_the_address_they_reached_where_none_is_advertised() -> None:
    client = Edge().connect()
    client.ask("metadata", 9, NO_TOPICS)
    assert client.answer(0, "metadata", 9).brokers[0].host == "203.0.113.7"


def test_no_more_connections_than_max_connections() -> None:
    edge = Edge({"max.connections": "1"})
    first, second = edge.connect(), edge.connect()
    assert not first.transport.closed
    assert second.transport.closed
    first.connection.connection_lost(None)
    assert not edge.connect().transport.closed


def test_no_more_connections_of_a_host_than_max_connections_per_ip() -> None:
    edge = Edge({"max.connections.per.ip": "1"})
    assert not edge.connect(("192.0.2.1", 1)).transport.closed
    assert edge.connect(("192.0.2.1", 2)).transport.closed
    assert not edge.connect(("192.0.2.2", 3)).transport.closed


def test_a_connection_is_closed_when_it_was_silent_for_too_long() -> None:
    edge = Edge({"connections.max.idle.ms": "1000"})
    silent, busy = edge.connect(), edge.connect()
    edge.pass_time(600)
    busy.ask("metadata", 9, NO_TOPICS)
    edge.pass_time(600)
    edge.listener.close_idle(edge.clock.now_ms())
    assert silent.transport.closed
    assert not busy.transport.closed
