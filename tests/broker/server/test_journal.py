"""The journal keeps the last exchanges, as many as its bounds allow."""

from __future__ import annotations

import pytest

from fencepost.broker.server import journal as module
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import encode_request, encode_response
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = BY_NAME["heartbeat"]


def note(journal: Journal, group: str = "g") -> Exchange:
    request = HeartbeatRequest(group_id=group, generation_id=3)
    frame = bytearray(b"".join(encode_request(HEARTBEAT, 3, 7, "c", request))[4:])
    exchange = Exchange(5, 1, "x", "c", HEARTBEAT, 3, 7, frame, 11)
    journal.open(exchange)
    return exchange


def finish(journal: Journal, exchange: Exchange) -> None:
    chunks = encode_response(HEARTBEAT, 3, 7, HeartbeatResponse(error_code=22))
    journal.close(exchange, chunks, 9)


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
