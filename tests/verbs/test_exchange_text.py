"""A request and its answer in one line."""

from __future__ import annotations

from typing import Final

from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.exchange_text import exchange_line, exchange_text, subjects

EXAMPLE: Final = ExchangeState.examples[0]


def exchange(**given: object) -> ExchangeState:
    return ExchangeState.model_validate({**EXAMPLE, **given})


def line(first: ExchangeState, *others: ExchangeState) -> str:
    texts = [exchange_text(each) for each in (first, *others)]
    return exchange_line(texts[0], texts[-1], sum(text.records for text in texts))


def produce(offset: int, count: int = 1, **given: object) -> ExchangeState:
    batch = {"base_offset": 0, "count": count, "producer_epoch": -1}
    records = {"bytes": 70, "batches": [batch]}
    partition = {"index": 0, "records": records}
    answer = {"index": 0, "error_code": 0, "base_offset": offset}
    fields = {
        "api": "Produce",
        "version": 9,
        "request": {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [partition]}]},
        "response": {"responses": [{"name": "orders", "partition_responses": [answer]}]},
    }
    return exchange(**{**fields, **given})


def test_a_lookup_says_what_for_and_what_came() -> None:
    assert line(exchange()) == (
        "checkout -> 1  ListOffsets v5 orders-0: timestamp latest, is 42, ok"
    )


def test_records_are_counted_and_offsets_are_a_range() -> None:
    assert line(produce(7)) == "checkout -> 1  Produce v9 orders-0: 1 record, at 7, ok"
    assert line(produce(7), produce(8, 3)) == (
        "checkout -> 1  Produce v9 orders-0: 4 records, at 7 to 8, ok"
    )


def test_requests_of_the_same_kind_have_the_same_key() -> None:
    first, second = exchange_text(produce(7)), exchange_text(produce(8))
    assert first.key == second.key
    assert first.key != exchange_text(produce(7, response=None)).key
    assert first.key != exchange_text(produce(7, client_id="other")).key


def test_errors_are_named_once() -> None:
    errors = {"topics": [{"error_code": 6}, {"error_code": 6}, {"error_code": 4711}]}
    assert line(exchange(response=errors)).endswith(
        ": timestamp latest, NOT_LEADER_OR_FOLLOWER, error 4711"
    )
    assert not exchange_text(exchange(response=errors)).is_ok


def test_what_wants_no_answer_is_no_failure() -> None:
    request = {"acks": 0, "topic_data": []}
    assert line(produce(7, request=request, response=None)).endswith("Produce v9: sent")
    assert exchange_text(produce(7, request=request, response=None)).is_ok
    assert not exchange_text(exchange(response=None)).is_ok


def test_a_slow_answer_says_how_long_it_took() -> None:
    assert line(exchange(elapsed_us=150_000)).endswith("ok after 150 ms")


def test_protocols_of_a_group_are_no_topics() -> None:
    request = {"group_id": "shipping", "protocols": [{"name": "range"}]}
    assert subjects(exchange(api="JoinGroup", request=request)) == ["shipping"]


def test_topic_ids_are_shown_by_name() -> None:
    request = {"topics": [{"topic_id": "an-id", "partitions": [{"partition": 3}]}]}
    assert subjects(exchange(request=request, topic_names={"an-id": "orders"})) == ["orders-3"]
