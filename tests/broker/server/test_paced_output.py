"""Responses that are sent a few bytes at a time, because a fault wants them so."""

from __future__ import annotations

import pytest

from fencepost.broker.faults.kinds import Action, Bandwidth, Pieces
from fencepost.broker.faults.selectors import RecordSelector
from fencepost.broker.server.paced_output import PacedOutput
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.faults.faulty import rule
from tests.broker.server.test_connection import LONG_POLL
from tests.harness.garbage import without_collector
from tests.harness.records import batch
from tests.harness.socketless_server import Client, SocketlessServer
from tests.harness.typed_requests import fetch_request, from_offset, produce_request

NO_TOPICS = MetadataRequest(topics=())
READ_ALL = fetch_request(("t", from_offset(0)))


@pytest.fixture
def edge() -> SocketlessServer:
    return SocketlessServer()


def set_fault(edge: SocketlessServer, api: str, action: Action, **more: object) -> None:
    edge.cluster.faults.add(rule(api, action, **more))


def pass_time(edge: SocketlessServer, by_ms: int) -> None:
    """Millisecond by millisecond, as a clock does."""
    for _ in range(by_ms):
        edge.pass_time(1)


def sizes(edge: SocketlessServer) -> tuple[int, int]:
    """Of a Metadata request without topics, and of its response, with their sizes in front."""
    client = edge.connect()
    request = client.frame("metadata", 9, NO_TOPICS)
    client.send(request)
    return len(request) - 4, len(client.written)


def half_answered(edge: SocketlessServer) -> Client:
    """A client that has been sent half of a slow response."""
    asked, answered = sizes(edge)
    set_fault(edge, "metadata", Bandwidth(100))
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    pass_time(edge, asked * 10 + answered * 5)
    assert 0 < len(client.written) < answered
    return client


def test_a_response_that_was_sent_is_freed_without_the_garbage_collector(
    edge: SocketlessServer,
) -> None:
    _, answered = sizes(edge)
    set_fault(edge, "metadata", Bandwidth(10_000))
    with without_collector(PacedOutput) as left:
        client = edge.connect()
        client.ask("metadata", 9, NO_TOPICS)
        pass_time(edge, 100)
        assert len(client.written) == answered
        assert left() == []


# -- bandwidth ----------------------------------------------------------------------------------


def test_a_request_and_its_response_take_their_time_at_the_bandwidth(
    edge: SocketlessServer,
) -> None:
    asked, answered = sizes(edge)
    set_fault(edge, "metadata", Bandwidth(1000))
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    pass_time(edge, asked + answered - 1)
    assert len(client.written) < answered
    pass_time(edge, 1)
    assert len(client.written) == answered
    assert client.correlation_ids() == [1]


def test_a_request_is_not_carried_out_before_its_last_byte_has_come(
    edge: SocketlessServer,
) -> None:
    set_fault(edge, "produce", Bandwidth(1000))
    client = edge.connect()
    frame = client.frame("produce", 9, produce_request(("t", 0, bytes(batch(b"v")))))
    client.send(frame)
    log = edge.cluster.brokers[1].replicas["t", 0].log
    pass_time(edge, len(frame) - 5)
    assert log.log_end_offset == 0
    pass_time(edge, 1)
    assert log.log_end_offset == 1


def test_bytes_come_as_time_passes(edge: SocketlessServer) -> None:
    asked, answered = sizes(edge)
    set_fault(edge, "metadata", Bandwidth(100))
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    pass_time(edge, asked * 10)
    seen = []
    while len(client.written) < answered:
        seen.append(len(client.written))
        pass_time(edge, 50)
    assert seen == list(range(0, answered, 5))


def test_a_high_bandwidth_is_not_slowed_down_by_the_number_of_batches(
    edge: SocketlessServer,
) -> None:
    client = edge.connect()
    for _ in range(50):
        client.ask("produce", 9, produce_request(("t", 0, bytes(batch(b"v")))))
    before = len(client.written)
    set_fault(edge, "fetch", Bandwidth(1_000_000))
    client.ask("fetch", 11, READ_ALL)
    assert len(client.written) == before
    pass_time(edge, 6)
    assert len(client.written) > before + 3000


def test_nothing_overtakes_a_slow_response(edge: SocketlessServer) -> None:
    asked, answered = sizes(edge)
    set_fault(edge, "metadata", Bandwidth(1000))
    client = edge.connect()
    for _ in range(2):
        client.ask("metadata", 9, NO_TOPICS)
    assert not client.transport.is_reading()
    pass_time(edge, asked + answered - 1)
    assert len(client.written) < answered
    pass_time(edge, 1)
    assert client.correlation_ids() == [1, 2]
    assert client.transport.is_reading()


def test_a_slow_response_behind_a_long_poll_keeps_its_place(edge: SocketlessServer) -> None:
    set_fault(edge, "metadata", Bandwidth(1000))
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("metadata", 9, NO_TOPICS)
    pass_time(edge, 400)
    assert client.written == b""
    pass_time(edge, 100)
    pass_time(edge, 300)
    assert client.correlation_ids() == [1, 2]


@pytest.mark.parametrize("action", [Bandwidth(1000), Pieces(7)])
def test_acks_0_gets_no_slow_response_and_the_next_request_is_served(
    edge: SocketlessServer, action: Action
) -> None:
    set_fault(edge, "produce", action)
    client = edge.connect()
    client.ask("produce", 9, produce_request(("t", 0, bytes(batch(b"v"))), acks=0))
    client.ask("metadata", 9, NO_TOPICS)
    pass_time(edge, 500)
    assert client.correlation_ids() == [2]


def test_a_reset_sends_the_rest_of_a_slow_response_at_once(edge: SocketlessServer) -> None:
    client = half_answered(edge)
    edge.cluster.reset()
    edge.turn()
    assert client.correlation_ids() == [1]
    client.ask("metadata", 9, NO_TOPICS)
    assert client.correlation_ids() == [1, 2]


def test_a_connection_that_closes_sends_the_rest_of_a_slow_response_at_once(
    edge: SocketlessServer,
) -> None:
    client = half_answered(edge)
    client.connection.close()
    assert client.correlation_ids() == [1]
    assert client.transport.closed


def test_a_client_that_goes_is_sent_no_more_of_a_slow_response(edge: SocketlessServer) -> None:
    client = half_answered(edge)
    sent = len(client.written)
    client.connection.connection_lost(None)
    assert not edge.cluster.faults.pending.blocking_responses
    pass_time(edge, 1000)
    assert len(client.written) == sent


# -- pieces -------------------------------------------------------------------------------------


def test_a_response_is_written_piece_by_piece(edge: SocketlessServer) -> None:
    _, answered = sizes(edge)
    set_fault(edge, "metadata", Pieces(7))
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    writes = [len(client.written)]
    while len(client.written) < answered:
        edge.cluster.scheduler.run_turn()
        while edge.flushes:
            edge.flushes.pop(0).flush()
        writes.append(len(client.written))
    assert writes == [*range(7, answered, 7), answered]
    assert client.correlation_ids() == [1]


def test_a_manual_clock_need_not_be_advanced_for_pieces(edge: SocketlessServer) -> None:
    set_fault(edge, "metadata", Pieces(1), count=None)
    client = edge.connect()
    for _ in range(2):
        client.ask("metadata", 9, NO_TOPICS)
    for _ in range(3):
        edge.turn()
    assert client.correlation_ids() == [1, 2]


def test_only_the_response_with_a_record_is_sent_in_pieces(edge: SocketlessServer) -> None:
    set_fault(edge, "fetch", Pieces(7), record=RecordSelector(key="k0"))
    client = edge.connect()
    client.ask("fetch", 11, READ_ALL)
    client.ask("produce", 9, produce_request(("t", 0, bytes(batch(b"v")))))
    assert client.correlation_ids() == [1, 2]
    before = len(client.written)
    client.ask("fetch", 11, READ_ALL)
    assert len(client.written) == before + 7
    edge.turn()
    assert client.correlation_ids() == [1, 2, 3]
