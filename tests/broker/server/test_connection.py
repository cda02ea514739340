"""A connection as a pure object: bytes in, bytes out; no transport, no loop."""

from __future__ import annotations

import errno
import struct
import subprocess
import sys
from itertools import count
from typing import Final

import pytest

from fencepost.broker import handlers
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.handlers import metadata
from fencepost.broker.server import connection
from fencepost.broker.server.connection import MAX_IN_FLIGHT
from fencepost.protocol.apis import NOT_SERVED
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.delete_topics import DeleteTopicsRequest
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from fencepost.protocol.messages.produce import (
    ProduceRequest,
)
from fencepost.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.harness.records import batch
from tests.harness.socketless_server import SocketlessServer
from tests.harness.typed_requests import produce_request

NO_TOPICS = MetadataRequest(topics=())
LONG_POLL = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    topics=(
        FetchTopic(topic="t", partitions=(FetchPartition(fetch_offset=0, partition_max_bytes=99),)),
    ),
)


def produce(acks: int, topic: str = "t", value: bytes = b"v") -> ProduceRequest:
    return produce_request((topic, 0, bytes(batch(value))), acks=acks)


def test_requests_of_one_read_are_answered_in_one_write() -> None:
    client = SocketlessServer().open()
    client.send(b"".join(client.frame("metadata", 9, NO_TOPICS) for _ in range(3)))
    assert client.correlation_ids() == [1, 2, 3]
    assert len(client.chunks) == 1


def test_an_answer_waits_for_the_long_poll_before_it_but_its_work_does_not() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("metadata", 9, NO_TOPICS)
    assert client.correlation_ids() == []

    edge.open().ask("produce", 9, produce(acks=1))
    edge.turn()

    assert client.correlation_ids() == [1, 2]
    records = client.answer(0, "fetch", 11).responses[0].partitions[0].records
    assert records is not None
    assert sum(map(len, records)) > 0


def test_a_long_poll_ends_empty_at_its_time_and_not_before() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("fetch", 11, LONG_POLL)
    edge.pass_time(499)
    assert client.frames() == []
    edge.pass_time(1)
    assert client.answer(0, "fetch", 11).responses[0].partitions[0].records == (b"",)


def test_acks_0_gets_no_bytes_and_holds_nothing_up() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.send(
        client.frame("produce", 9, produce(acks=0)) + client.frame("metadata", 9, NO_TOPICS)
    )
    assert client.correlation_ids() == [2]
    assert edge.cluster.brokers[1].replicas["t", 0].high_watermark == 1


def test_acks_0_that_fails_closes_the_connection() -> None:
    client = SocketlessServer().open()
    client.ask("produce", 9, produce(acks=0, topic="missing"))
    assert client.close_reason == "hung_up"
    assert client.frames() == []


def test_requests_before_a_malformed_one_are_answered() -> None:
    client = SocketlessServer().open()
    client.send(client.frame("metadata", 9, NO_TOPICS) + struct.pack(">ihhih", 10, 3, 1, 7, 500))
    assert client.correlation_ids() == [1]
    assert client.connection.is_closing


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", 0), "bad_frame"),
        (struct.pack(">i", -1), "bad_frame"),
        (struct.pack(">i", 104_857_601), "bad_frame"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "not_served"),
        (struct.pack(">ihhih", 10, 3, 14, 1, -1), "not_served"),
        (struct.pack(">ihhih", 10, 3, 1, 7, -1), "bad_request"),
    ],
    ids=["empty", "negative", "too large", "unknown API", "unknown version", "cut body"],
)
def test_malformed_bytes_close_their_connection_only(data: bytes, reason: str) -> None:
    edge = SocketlessServer()
    victim, other = edge.open(), edge.open()
    victim.send(data)
    assert victim.connection.is_closing
    assert victim.close_reason == reason
    other.ask("metadata", 9, NO_TOPICS)
    assert other.correlation_ids() == [1]


def framed(token: bytes) -> bytes:
    return struct.pack(">i", len(token)) + token


@pytest.mark.parametrize(
    ("data", "protocol"),
    [
        (bytes.fromhex("16030105a8010005a40303"), "tls_hello"),
        (bytes.fromhex("16030105"), "tls_hello"),
        (b"GET / HTTP/1.1\r\n\r\n", "http_request"),
        (framed(b"\0alice\0secret"), "sasl_token"),
        (framed(b"\0a\0b"), "sasl_token"),
        (framed(b"n,,n=alice,r=3rfcNHYJY1ZVvWVs7j"), "sasl_token"),
    ],
    ids=["TLS", "begin of TLS", "HTTP", "PLAIN", "short PLAIN", "SCRAM"],
)
def test_another_protocol_is_named_and_closes_its_connection(data: bytes, protocol: str) -> None:
    edge = SocketlessServer()
    events: list[Event] = []
    edge.cluster.events.listeners += (events.append,)
    client = edge.open()
    client.ask("api_versions", 3, ApiVersionsRequest(client_software_name="x"))
    client.send(data)
    assert client.connection.is_closing
    assert client.close_reason == protocol
    (event,) = events
    assert (event.kind, event.broker) == (Kind.OTHER_PROTOCOL, 1)
    assert event.details == {
        "protocol": protocol,
        "connection": client.connection.peer.connection_id,
        "client_id": client.connection.client_id,
    }
    assert "secret" not in repr((client.connection.close_reason, event))


def test_a_handshake_of_sasl_is_answered_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("sasl_handshake", 1, SaslHandshakeRequest(mechanism="PLAIN"))
    answer = client.answer(0, "sasl_handshake", 1)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert not client.connection.is_closing
    logged = capsys.readouterr().err
    assert logged.count("other_protocol") == 1
    assert "the client authenticates by SASL, and this is a plaintext listener" in logged


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    client = SocketlessServer().open()
    client.send(struct.pack(">ihhihb", 11, 18, 99, 5, -1, 0))
    assert client.frames() == [bytes.fromhex("00000005002300000001001200000004")]
    client.ask("api_versions", 3, ApiVersionsRequest(client_software_name="x"))
    assert not client.connection.is_closing


def test_an_unknown_version_of_api_versions_without_tagged_fields_closes() -> None:
    client = SocketlessServer().open()
    client.send(struct.pack(">ihhih", 10, 18, 99, 5, -1))
    assert client.frames() == []
    assert client.connection.is_closing


def test_a_version_above_the_brokers_limit_is_unknown() -> None:
    edge = SocketlessServer(api_max={"metadata": 8})
    client, newer = edge.open(), edge.open()
    client.ask("metadata", 8, NO_TOPICS)
    assert client.answer(0, "metadata", 8).topics == ()
    newer.ask("metadata", 9, NO_TOPICS)
    assert newer.connection.is_closing
    assert newer.frames() == []
    # Other APIs are as ever.
    client.ask("api_versions", 4, ApiVersionsRequest(client_software_name="x"))
    assert len(client.frames()) == 2


def test_an_api_that_is_not_served_is_unknown() -> None:
    client = SocketlessServer(api_max={"offset_for_leader_epoch": NOT_SERVED}).open()
    client.ask("offset_for_leader_epoch", 2, OffsetForLeaderEpochRequest())
    assert client.connection.is_closing
    assert client.frames() == []


def test_a_version_limit_of_api_versions_is_answered_in_version_0() -> None:
    client = SocketlessServer(api_max={"api_versions": 2}).open()
    client.ask("api_versions", 3, ApiVersionsRequest(client_software_name="x"))
    assert client.frames() == [bytes.fromhex("00000001002300000001001200000002")]
    client.ask("api_versions", 2, ApiVersionsRequest())
    assert client.answer(1, "api_versions", 2).error_code == ErrorCode.NONE
    assert not client.connection.is_closing


def test_a_frame_may_be_as_large_as_socket_request_max_bytes_says() -> None:
    edge = SocketlessServer({"socket.request.max.bytes": "60"})
    small, large = edge.open(), edge.open()
    small.ask("metadata", 9, NO_TOPICS)
    large.ask("metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="n" * 99),)))
    assert not small.connection.is_closing
    assert large.connection.is_closing


def test_reading_stops_while_too_many_requests_wait_and_none_is_lost() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.send(b"".join(client.frame("fetch", 11, LONG_POLL) for _ in range(MAX_IN_FLIGHT + 5)))
    assert not client.is_read_from()
    edge.pass_time(500)
    assert client.is_read_from()
    edge.pass_time(500)
    assert client.correlation_ids() == list(range(1, MAX_IN_FLIGHT + 6))


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    client = SocketlessServer().open()
    client.connection.pause_output()
    client.ask("metadata", 9, NO_TOPICS)
    assert not client.is_read_from()
    assert client.frames() == []
    client.resume_output()
    assert client.is_read_from()
    assert client.correlation_ids() == [1]


def test_a_bug_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    client = SocketlessServer().open()
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "handle", broken)
        client.ask("metadata", 9, MetadataRequest(topics=(MetadataRequestTopic(name="t"),)))
    assert client.exceptions == ["handler_failed"]
    client.ask("metadata", 9, NO_TOPICS)
    assert client.answer(0, "metadata", 9).topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.correlation_ids() == [1, 2]


def test_a_bug_in_the_error_response_as_well_costs_one_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    edge = SocketlessServer()
    client, other = edge.open(), edge.open()
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "handle", broken)
        patch.setattr(metadata, "refuse", broken)
        client.ask("metadata", 9, NO_TOPICS)
    assert client.exceptions == ["handler_failed", "refusal_failed"]
    assert client.close_reason == "hung_up"
    other.ask("metadata", 9, NO_TOPICS)
    assert other.correlation_ids() == [1]


def test_an_abandoned_connection_cancels_its_waits() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("fetch", 11, LONG_POLL)
    client.connection.abandon()
    assert not edge.cluster.brokers[1].replicas["t", 0].watermark_watch.waits
    edge.pass_time(500)
    assert client.frames() == []


def test_metadata_names_the_address_that_the_client_reached_where_none_is_advertised() -> None:
    client = SocketlessServer().open()
    client.ask("metadata", 9, NO_TOPICS)
    assert client.answer(0, "metadata", 9).brokers[0].host == "203.0.113.7"


def test_each_request_is_logged_where_the_owner_wants_that() -> None:
    client = SocketlessServer().open()
    client.ask("metadata", 9, NO_TOPICS)
    client.ask("produce", 9, produce(acks=1))
    assert client.requests == [("metadata", 9), ("produce", 9)]


def test_a_connection_needs_no_event_loop_no_sockets_and_no_log() -> None:
    impure = ("asyncio", "logging", "select", "selectors", "socket", "ssl", "structlog", "uvloop")
    program = (
        "import sys; import fencepost.broker.server.connection; "
        f"print([name for name in {impure!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


# -- the memory of requests ---------------------------------------------------------------------


def test_a_frame_that_would_take_too_much_closes_its_connection_alone() -> None:
    edge = SocketlessServer()
    edge.server.request_memory.limit = 1_000
    large, small = edge.open(), edge.open()
    large.send(struct.pack(">i", 5_000) + bytes(2_000))
    assert large.close_reason == "request_memory"
    small.ask("metadata", 9, NO_TOPICS)
    assert small.correlation_ids() == [1]
    assert edge.server.request_memory.used == 0


def test_memory_that_the_system_does_not_give_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SocketlessServer().open()

    def exhausted(_count: int) -> list[bytearray]:
        raise MemoryError

    monkeypatch.setattr(client.connection, "_received", exhausted)
    client.send(b"x")
    assert client.close_reason == "request_memory"


def test_messages_that_can_t_be_imported_for_lack_of_descriptors_are_no_bad_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(*_arguments: object) -> object:
        raise OSError(errno.EMFILE, "Too many open files")

    client = SocketlessServer().open()
    monkeypatch.setattr(connection, "decode_request", lacking)
    client.ask("fetch", 11, LONG_POLL)
    assert client.close_reason == "descriptors"


MANY: Final = MetadataRequest(
    topics=tuple(MetadataRequestTopic(name=f"unknown.{index}") for index in range(12_000))
)
MANY_BYTES: Final = 12_000 * len("unknown.0")


def test_a_large_request_is_read_and_answered_in_slices() -> None:
    edge = SocketlessServer({"auto.create.topics.enable": "false"})
    client, other = edge.open(), edge.open()
    client.ask("metadata", 9, MANY)
    client.ask("metadata", 9, NO_TOPICS)
    assert not client.is_read_from()
    turns = 0
    while not client.written:
        other.ask("metadata", 9, NO_TOPICS)  # others are served at once
        assert len(other.frames()) == turns + 1
        edge.cluster.scheduler.run_turn()
        client.turn()
        turns += 1
    assert turns > 5  # of three slices to read it, six to handle and three to write it
    client.turn()
    assert client.correlation_ids() == [1, 2]
    assert len(client.answer(0, "metadata", 9).topics) == 12_000


def test_a_large_request_that_is_malformed_closes_its_connection() -> None:
    edge = SocketlessServer()
    client = edge.open()
    whole = client.frame("metadata", 9, MANY)
    client.send(whole[:-5] + b"\xff" * 5)
    edge.turn()
    edge.turn()
    edge.turn()
    assert client.close_reason == "bad_request"
    assert not client.written


def test_a_connection_that_goes_while_a_large_request_is_read_or_answered() -> None:
    edge = SocketlessServer({"auto.create.topics.enable": "false"})
    for turns in count():
        client = edge.open()
        client.ask("metadata", 9, MANY)
        for _ in range(turns):
            edge.cluster.scheduler.run_turn()
            client.turn()
        if client.written:
            break
        assert edge.server.request_memory.used > MANY_BYTES
        client.connection.abandon()
        edge.turn()
        assert not client.written
        assert edge.server.request_memory.used == 0
        edge.clients.clear()
    assert turns > 5  # while it was read, handled and written


def test_a_request_that_changes_too_much_at_once_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "MAX_CHANGES", 10_000)
    names = tuple(f"unknown.{index:05}" for index in range(10_000))
    for named, code in (
        (names, ErrorCode.POLICY_VIOLATION),
        (names[1:], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        edge = SocketlessServer()
        client = edge.open()
        client.ask("delete_topics", 5, DeleteTopicsRequest(topic_names=named))
        while not client.written:
            edge.turn()
        results = client.answer(0, "delete_topics", 5).responses
        assert [(each.name, each.error_code) for each in results] == [
            (name, code) for name in named
        ]


def test_a_request_that_only_reads_may_name_as_much_as_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "MAX_CHANGES", 10_000)
    edge = SocketlessServer({"auto.create.topics.enable": "false"})
    client = edge.open()
    client.ask("metadata", 9, MANY)
    while not client.written:
        edge.turn()
    topics = client.answer(0, "metadata", 9).topics
    assert {each.error_code for each in topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_produce_without_acks_that_changes_too_much_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "MAX_CHANGES", 10_000)
    edge = SocketlessServer()
    client = edge.open()
    request = produce_request(*(("t", 0, b"") for _ in range(10_000)), acks=0)
    client.ask("produce", 9, request)
    while not client.connection.is_closing:
        edge.turn()
    assert client.close_reason == "hung_up"
    assert not client.written
