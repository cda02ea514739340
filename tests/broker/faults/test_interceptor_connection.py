"""Faults as a client's connection shows them: what is sent, in which order, and what is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.faults.kinds import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    Refuse,
    StaleMetadata,
    Throttle,
)
from fencepost.broker.metadata.image import PartitionImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker.faults.faulty import CODE, rule
from tests.broker.server.edge import Client, Edge, Message
from tests.broker.talk import batch

NO_TOPICS = MetadataRequest(topics=())
T = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
LONG_POLL = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    topics=(
        FetchTopic(topic="t", partitions=(FetchPartition(fetch_offset=0, partition_max_bytes=99),)),
    ),
)


def produce(acks: int = 1, producer: tuple[int, int, int] | None = None) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(batch(b"v", producer=producer)))
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name="t", partition_data=(data,)),),
    )


@pytest.fixture
def edge() -> Edge:
    return Edge()


def set_fault(edge: Edge, api: str, action: Action, *, count: int | None = 1) -> None:
    edge.cluster.faults.add(rule(api, action, count=count))


def end(edge: Edge) -> int:
    return edge.cluster.brokers[1].replicas["t", 0].log.log_end_offset


def code(answer: Message) -> int:
    found: int = answer.responses[0].partition_responses[0].error_code
    return found


# -- order --------------------------------------------------------------------------------------


def test_nothing_overtakes_a_delayed_request(edge: Edge) -> None:
    set_fault(edge, "produce", Delay(200))
    client = edge.connect()
    client.send(b"".join(client.frame("produce", 9, produce()) for _ in range(3)))
    edge.turn()
    assert (client.correlation_ids(), end(edge)) == ([], 0)
    assert not client.transport.is_reading()
    edge.pass_time(199)
    assert (client.correlation_ids(), end(edge)) == ([], 0)
    edge.pass_time(1)
    assert (client.correlation_ids(), end(edge)) == ([1, 2, 3], 3)
    assert client.transport.is_reading()
    assert [
        client.answer(n, "produce", 9).responses[0].partition_responses[0].base_offset
        for n in range(3)
    ] == [0, 1, 2]


def test_what_comes_while_a_request_is_delayed_waits_too(edge: Edge) -> None:
    set_fault(edge, "produce", Delay(200))
    client = edge.connect()
    client.ask("produce", 9, produce())
    client.ask("metadata", 9, NO_TOPICS)
    edge.turn()
    assert client.correlation_ids() == []
    edge.pass_time(200)
    assert client.correlation_ids() == [1, 2]


def test_another_connection_is_not_held_up(edge: Edge) -> None:
    set_fault(edge, "produce", Delay(200))
    edge.connect().ask("produce", 9, produce())
    other = edge.connect()
    other.ask("produce", 9, produce())
    assert (other.correlation_ids(), end(edge)) == ([1], 1)


def test_an_idempotent_producer_with_five_in_flight_stays_in_order(edge: Edge) -> None:
    set_fault(edge, "produce", Delay(100), count=None)
    client = edge.connect()
    requests = [produce(acks=-1, producer=(7, 0, sequence)) for sequence in range(5)]
    client.send(b"".join(client.frame("produce", 9, request) for request in requests))
    for done in range(1, 6):
        edge.pass_time(100)
        assert client.correlation_ids() == list(range(1, done + 1))
    assert [code(client.answer(n, "produce", 9)) for n in range(5)] == [0] * 5
    assert end(edge) == 5


def test_those_behind_a_refused_batch_of_an_idempotent_producer_are_out_of_order(
    edge: Edge,
) -> None:
    client = edge.connect()
    client.ask("produce", 9, produce(producer=(7, 0, 0)))
    set_fault(edge, "produce", Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    for sequence in (1, 2):
        client.ask("produce", 9, produce(producer=(7, 0, sequence)))
    assert [code(client.answer(n, "produce", 9)) for n in range(3)] == [
        0,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ]


def test_a_delayed_request_behind_a_long_poll_keeps_its_place(edge: Edge) -> None:
    set_fault(edge, "metadata", Delay(100))
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("metadata", 9, NO_TOPICS)
    edge.pass_time(100)
    assert client.correlation_ids() == []
    edge.pass_time(400)
    assert client.correlation_ids() == [1, 2]


def test_a_throttled_client_is_answered_at_once_and_then_not_read_from(edge: Edge) -> None:
    set_fault(edge, "produce", Throttle(300))
    client = edge.connect()
    client.send(b"".join(client.frame("produce", 9, produce()) for _ in range(2)))
    edge.turn()
    assert client.correlation_ids() == [1]
    assert client.answer(0, "produce", 9).throttle_time_ms == 300
    assert not client.transport.is_reading()
    edge.pass_time(299)
    assert (client.correlation_ids(), end(edge)) == ([1], 1)
    edge.pass_time(1)
    assert (client.correlation_ids(), end(edge)) == ([1, 2], 2)
    assert client.transport.is_reading()


def test_a_throttle_begins_when_the_answer_is_there(edge: Edge) -> None:
    set_fault(edge, "fetch", Throttle(300))
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("metadata", 9, NO_TOPICS)
    edge.pass_time(500)
    assert client.correlation_ids() == [1]
    edge.pass_time(300)
    assert client.correlation_ids() == [1, 2]


@pytest.mark.parametrize("acks", [0, 1])
def test_behind_a_dropped_request_nothing_is_read_any_more(edge: Edge, acks: int) -> None:
    set_fault(edge, "produce", Drop())
    client = edge.connect()
    client.send(b"".join(client.frame("produce", 9, produce(acks)) for _ in range(2)))
    edge.pass_time(3_600_000)
    assert (client.correlation_ids(), end(edge)) == ([], 1)
    assert not client.transport.is_reading()
    assert not client.transport.closed


# -- the end of a connection --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "appended"), [(DisconnectWhen.BEFORE, 0), (DisconnectWhen.AFTER, 1)]
)
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_the_connection_ends_instead_of_an_answer(
    edge: Edge, when: DisconnectWhen, appended: int, acks: int
) -> None:
    set_fault(edge, "produce", Disconnect(when))
    client = edge.connect()
    client.send(b"".join(client.frame("produce", 9, produce(acks)) for _ in range(2)))
    edge.turn()
    assert client.transport.closed
    assert (client.correlation_ids(), end(edge)) == ([], appended)


@pytest.mark.parametrize("when", DisconnectWhen)
def test_those_before_are_answered_before_the_end(edge: Edge, when: DisconnectWhen) -> None:
    set_fault(edge, "produce", Disconnect(when))
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.ask("produce", 9, produce())
    client.ask("metadata", 9, NO_TOPICS)
    edge.turn()
    if when is DisconnectWhen.BEFORE:
        assert (client.transport.closed, client.correlation_ids()) == (False, [])
        edge.pass_time(500)
    assert (client.transport.closed, client.correlation_ids()) == (True, [1])


def test_who_hangs_up_while_a_request_is_delayed_is_not_written_to(edge: Edge) -> None:
    set_fault(edge, "produce", Delay(200))
    client = edge.connect()
    client.ask("produce", 9, produce())
    client.connection.connection_lost(None)
    edge.pass_time(200)
    assert (bytes(client.transport.written), end(edge)) == (b"", 1)
    assert not edge.cluster.faults.pending.blocking_responses


def reset(edge: Edge) -> None:
    edge.cluster.reset()


def stop(edge: Edge) -> None:
    edge.cluster.brokers[1].stop(crash=False)


@pytest.mark.parametrize("end_of_it", [reset, stop])
@pytest.mark.parametrize("action", [Delay(200), Drop()])
def test_a_held_connection_ends_with_a_reset_and_with_its_broker(
    edge: Edge, end_of_it: Callable[[Edge], None], action: Action
) -> None:
    set_fault(edge, "metadata", action)
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    end_of_it(edge)
    edge.turn()
    assert (client.transport.closed, client.correlation_ids()) == (True, [])


def test_a_reset_lets_a_throttled_connection_go_on(edge: Edge) -> None:
    set_fault(edge, "metadata", Throttle(3_600_000))
    client = edge.connect()
    for _ in range(2):
        client.ask("metadata", 9, NO_TOPICS)
    edge.cluster.reset()
    edge.turn()
    assert client.correlation_ids() == [1, 2]


# -- metadata that is kept ----------------------------------------------------------------------


def leader(client: Client, number: int) -> tuple[int, int]:
    (partition,) = client.answer(number, "metadata", 9).topics[0].partitions
    return partition.leader_id, partition.leader_epoch


def test_answers_that_are_kept_do_not_hide_a_fault_nor_keep_what_it_did(edge: Edge) -> None:
    client = edge.connect()
    client.ask("metadata", 9, T)
    client.ask("metadata", 9, T)
    set_fault(edge, "metadata", Refuse(CODE))
    for _ in range(2):
        client.ask("metadata", 9, T)
    codes = [client.answer(n, "metadata", 9).topics[0].error_code for n in range(4)]
    assert codes == [0, 0, CODE, 0]


def test_stale_metadata_is_told_once(edge: Edge) -> None:
    before: PartitionImage = edge.cluster.controller.partition("t", 0)
    edge.cluster.controller.elect("t", 0, 1)
    edge.turn()
    client = edge.connect()
    client.ask("metadata", 9, T)
    set_fault(edge, "metadata", StaleMetadata(before.leader_epoch))
    for _ in range(2):
        client.ask("metadata", 9, T)
    assert [leader(client, n) for n in range(3)] == [(1, 1), (1, 0), (1, 1)]


def test_a_broken_batch_ends_the_connection_of_acks_0(edge: Edge) -> None:
    set_fault(edge, "produce", Corrupt())
    client = edge.connect()
    client.ask("produce", 9, produce(acks=0))
    edge.turn()
    assert (client.transport.closed, end(edge)) == (True, 0)


def test_the_journal_has_what_was_sent_and_what_was_answered(edge: Edge) -> None:
    set_fault(edge, "produce", Corrupt())
    client = edge.connect()
    request = produce()
    client.ask("produce", 9, request)
    (exchange,) = edge.server.journal
    sent: Message = exchange.request()
    assert sent.topic_data[0].partition_data[0].records == batch(b"v")
    assert code(exchange.response()) == ErrorCode.CORRUPT_MESSAGE
