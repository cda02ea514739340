"""The journal keeps the last exchanges, as many as its bounds allow."""

from __future__ import annotations

import pytest

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server import journal as module
from fencepost.broker.server.journal import BrokerExchange, Exchange, Journal
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import encode_request, encode_response
from fencepost.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = BY_NAME["heartbeat"]
FETCH = BY_NAME["fetch"]


def note(journal: Journal, group: str = "g") -> Exchange:
    request = HeartbeatRequest(group_id=group, generation_id=3)
    frame = bytearray(b"".join(encode_request(HEARTBEAT, 3, 7, "c", request))[4:])
    exchange = Exchange(5, 1, "x", "c", HEARTBEAT, 3, 7, frame, 11)
    journal.open(exchange)
    return exchange


def finish(journal: Journal, exchange: Exchange) -> None:
    answer = HeartbeatResponse(error_code=22)
    journal.close(exchange, encode_response(HEARTBEAT, 3, 7, answer), answer, 9)


def test_an_exchange_is_decoded_when_asked() -> None:
    journal = Journal()
    exchange = note(journal)
    assert exchange.response() is None
    finish(journal, exchange)
    request, response = exchange.request(), exchange.response()
    assert isinstance(request, HeartbeatRequest)
    assert (request.group_id, request.generation_id) == ("g", 3)
    assert isinstance(response, HeartbeatResponse)
    assert response.error_code == 22
    assert exchange.answered_ms == 9
    assert exchange.elapsed_us is not None


def test_numbers_rise_and_go_on_after_clear() -> None:
    journal = Journal()
    assert [note(journal).number, note(journal).number] == [1, 2]
    assert list(journal.clear()) == [None, None]
    assert list(journal) == []
    assert note(journal).number == 3


def test_the_oldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EXCHANGES", 3)
    journal = Journal()
    for _ in range(5):
        note(journal)
    assert [exchange.number for exchange in journal] == [3, 4, 5]


def test_the_oldest_go_when_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    one = len(note(journal, "g" * 100).frame)
    monkeypatch.setattr(module, "MAX_BYTES", 3 * one)
    for _ in range(4):
        note(journal, "g" * 100)
    assert [exchange.number for exchange in journal] == [3, 4, 5]


def test_answers_count_too_but_not_those_of_exchanges_that_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = Journal()
    exchanges = [note(journal) for _ in range(3)]
    monkeypatch.setattr(module, "MAX_BYTES", 3 * len(exchanges[0].frame))
    finish(journal, exchanges[0])
    assert [exchange.number for exchange in journal] == [2, 3]
    finish(journal, exchanges[0])
    assert [exchange.number for exchange in journal] == [2, 3]


def test_listeners_hear_of_each_answer() -> None:
    journal, heard = Journal(), list[int]()
    journal.listeners.append(lambda exchange: heard.append(exchange.number))
    first, second = note(journal), note(journal)
    finish(journal, second)
    finish(journal, first)
    assert heard == [2, 1]


def test_what_is_abandoned_is_over_and_heard_of_once() -> None:
    journal, heard = Journal(), list[int]()
    journal.listeners.append(lambda exchange: heard.append(exchange.number))
    waiting, answered = note(journal), note(journal)
    finish(journal, answered)
    for exchange in (answered, waiting, waiting):
        journal.abandon(exchange)
    assert heard == [2, 1]
    assert waiting.done
    assert waiting.answered_ms is None


def test_responses_are_counted_before_a_reader_looks() -> None:
    journal = Journal()
    exchange = note(journal)
    finish(journal, exchange)
    before = exchange.errors
    (figures,) = journal.metrics[0]
    assert (figures.broker_id, figures.api, figures.requests) == (1, HEARTBEAT, 1)
    assert (figures.bytes_in, figures.errors) == (len(exchange.frame), {22: 1})
    assert figures.bytes_out == sum(map(len, exchange.chunks or ()))
    assert (before, exchange.errors) == ((), (22,))
    assert exchange.answer is None, "kept for longer than it takes"


def test_not_many_answers_wait_to_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DUE", 3)
    journal = Journal()
    exchanges = [note(journal) for _ in range(4)]
    for exchange in exchanges:
        finish(journal, exchange)
    assert [exchange.errors for exchange in exchanges] == [(22,), (22,), (22,), ()]
    journal.count_due()
    assert exchanges[3].errors == (22,)


def test_listeners_find_an_exchange_counted() -> None:
    journal, heard = Journal(), list[tuple[int, ...]]()
    journal.listeners.append(lambda exchange: heard.append(exchange.errors))
    finish(journal, note(journal))
    assert heard == [(22,)]


def test_what_is_forgotten_has_been_counted() -> None:
    journal = Journal()
    finish(journal, note(journal))
    waiting = note(journal)
    list(journal.clear())
    journal.abandon(waiting)
    (figures,) = journal.metrics[0]
    assert (figures.requests, figures.unanswered) == (2, 1)
    assert figures.bytes_in == 2 * len(waiting.frame)
    assert journal.size == (0, 0)


def test_requests_between_brokers_are_metered_apart(ctx: Context[Broker]) -> None:
    journal = Journal()
    ask(journal, ctx, fetched(20, 30))
    clients, brokers = journal.metrics
    assert list(clients) == []
    (figures,) = brokers
    assert (figures.api, figures.requests) == (FETCH, 1)
    assert (figures.bytes_in, figures.bytes_out) == (0, 50)


@pytest.fixture
def ctx() -> Context[Broker]:
    address = Address(host="127.0.0.1", port=9092, advertised_host="")
    clock = ManualClock(17)
    broker = Cluster(ClusterOptions(addresses=(address,)), clock).brokers[1]
    peer = Peer(connection_id="broker-2", host="127.0.0.1")
    return Context(broker, 12, "broker-2-fetcher-0", peer, clock.now_ms(), clock.wall_ms())


def fetched(*sizes: int) -> FetchResponse:
    data = PartitionData(partition_index=0, records=tuple(bytes(size) for size in sizes))
    return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(data,)),))


def ask(journal: Journal, ctx: Context[Broker], answer: FetchResponse | None) -> BrokerExchange:
    journal.observe(FETCH, ctx, FetchRequest())(answer)
    exchange = next(journal.newest_first(clients=False))
    assert isinstance(exchange, BrokerExchange)
    return exchange


def test_requests_between_brokers_are_kept_as_they_are(ctx: Context[Broker]) -> None:
    journal, heard = Journal(), list[int]()
    journal.listeners.append(lambda exchange: heard.append(exchange.number))
    request, answer = FetchRequest(), fetched(10)
    answered = journal.observe(FETCH, ctx, request)
    (exchange,) = journal
    assert (exchange.done, exchange.response(), heard) == (False, None, [])
    answered(answer)
    assert exchange.request() is request
    assert exchange.response() is answer
    assert (exchange.broker_id, exchange.connection_id, exchange.time_ms) == (1, "broker-2", 17)
    assert (exchange.done, exchange.answered_ms, heard) == (True, 17, [1])


def test_an_answer_that_never_came_ends_an_exchange_too(ctx: Context[Broker]) -> None:
    exchange = ask(Journal(), ctx, None)
    assert (exchange.done, exchange.response()) == (True, None)


def test_errors_are_noted(ctx: Context[Broker]) -> None:
    data = PartitionData(partition_index=0, error_code=6)
    answer = FetchResponse(
        error_code=70, responses=(FetchableTopicResponse(topic="t", partitions=(data,)),)
    )
    assert ask(Journal(), ctx, answer).errors == (70, 6)


def test_numbers_are_shared_and_each_sort_is_bounded_by_itself(
    monkeypatch: pytest.MonkeyPatch, ctx: Context[Broker]
) -> None:
    monkeypatch.setattr(module, "MAX_EXCHANGES", 2)
    journal = Journal()
    note(journal)
    for _ in range(3):
        ask(journal, ctx, fetched())
    note(journal)
    assert [exchange.number for exchange in journal] == [1, 3, 4, 5]
    assert [each.number for each in journal.newest_first()] == [5, 4, 3, 1]
    assert [each.number for each in journal.newest_first(brokers=False)] == [5, 1]
    assert [each.number for each in journal.newest_first(clients=False)] == [4, 3]
    assert journal.newest == 5


def test_records_between_brokers_count(
    monkeypatch: pytest.MonkeyPatch, ctx: Context[Broker]
) -> None:
    journal = Journal()
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    for _ in range(3):
        ask(journal, ctx, fetched(20, 20))
    assert [exchange.number for exchange in journal] == [2, 3]
    assert journal.size == (2, 80)
    assert list(journal.clear()) == [None, None]
    assert journal.size == (0, 0)


def test_a_large_answer_is_counted_at_once() -> None:
    """What it costs is not left to a later request, nor its message kept until then."""
    journal = Journal()
    exchange = note(journal)
    answer = HeartbeatResponse(error_code=22)
    journal.close(exchange, [bytes((64 << 10) + 1)], answer, 9)
    assert exchange.answer is None
    assert exchange.errors == (22,)
    small = note(journal)
    finish(journal, small)
    assert small.answer is not None
