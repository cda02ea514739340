"""The responses of a connection: their encoding, and the requests that wait for them."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.handlers import metadata
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.socketless_server import SocketlessServer

NO_TOPICS: Final = MetadataRequest(topics=())
MANY: Final = MetadataRequest(
    topics=tuple(MetadataRequestTopic(name=f"unknown.{index}") for index in range(12_000))
)
LONG_POLL: Final = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    topics=(
        FetchTopic(topic="t", partitions=(FetchPartition(fetch_offset=0, partition_max_bytes=99),)),
    ),
)


def test_a_response_that_cannot_be_encoded_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SocketlessServer().open()
    monkeypatch.setattr(metadata, "handle", lambda *_: NO_TOPICS)
    client.ask("metadata", 9, NO_TOPICS)
    assert client.exceptions == ["answer_not_encodable"]
    assert client.close_reason == "answer_not_encodable"
    assert client.frames() == []


def test_a_late_response_is_announced_to_the_owner() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("fetch", 11, LONG_POLL)
    edge.clock.move_to(edge.clock.now_ms() + 500)
    edge.cluster.scheduler.run_due()
    assert client.is_output_ready
    assert client.frames() == []
    edge.turn()
    assert client.correlation_ids() == [1]


def test_requests_that_wait_when_the_owner_closes_get_no_response() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("metadata", 9, NO_TOPICS)
    client.ask("fetch", 11, LONG_POLL)
    client.connection.close()
    edge.pass_time(500)
    assert client.correlation_ids() == [1]
    assert client.close_reason is None


def test_a_request_counts_until_it_is_answered() -> None:
    edge = SocketlessServer()
    memory = edge.server.request_memory
    client = edge.open()
    frame = client.frame("fetch", 11, LONG_POLL)
    client.send(frame[:10])
    assert 0 < memory.used < len(frame)
    client.send(frame[10:])
    assert memory.used == len(frame) - 4
    edge.pass_time(500)
    assert client.correlation_ids() == [1]
    assert memory.used == 0


@pytest.mark.parametrize("sent", ["part of a request", "a request that waits"])
def test_what_a_lost_connection_held_counts_no_more(sent: str) -> None:
    edge = SocketlessServer()
    client = edge.open()
    frame = client.frame("fetch", 11, LONG_POLL)
    client.send(frame[:-1] if sent == "part of a request" else frame + frame[:10])
    assert edge.server.request_memory.used > 0
    client.connection.abandon()
    assert edge.server.request_memory.used == 0


def test_at_the_limit_a_connection_whose_requests_wait_is_not_read_from() -> None:
    edge = SocketlessServer()
    client = edge.open()
    client.ask("fetch", 11, LONG_POLL)
    assert client.is_read_from()
    edge.server.request_memory.limit = edge.server.request_memory.used
    assert not client.is_read_from()
    assert edge.open().is_read_from()
    edge.pass_time(500)
    assert client.is_read_from()


def test_a_large_response_that_cannot_be_encoded_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edge = SocketlessServer()
    client = edge.open()
    monkeypatch.setattr(metadata, "handle", lambda *_: object())
    client.ask("metadata", 9, MANY)
    for _ in range(5):
        edge.turn()
    assert client.close_reason == "answer_not_encodable"
    assert client.exceptions == ["answer_not_encodable"]


def test_what_waits_behind_a_long_poll_counts_and_what_is_answered_at_once_does_not() -> None:
    edge = SocketlessServer()
    memory, client = edge.server.request_memory, edge.open()
    client.ask("metadata", 9, NO_TOPICS)
    assert memory.used == 0
    frames = client.frame("fetch", 11, LONG_POLL), client.frame("metadata", 9, NO_TOPICS)
    client.send(b"".join(frames))
    assert memory.used == sum(map(len, frames)) - 8
    edge.pass_time(500)
    assert client.correlation_ids() == [1, 2, 3]
    assert memory.used == 0
