"""What layers cost is told by one server, which really goes without them for a while."""

from __future__ import annotations

import pytest

from bench import layers, load
from bench.load import Moved


def test_a_cost_is_the_median_of_its_pairs() -> None:
    pairs = [
        layers.Pair(whole=12, stripped=10),
        layers.Pair(whole=99, stripped=10),
        layers.Pair(whole=9, stripped=10),
    ]
    assert layers.cost(pairs) == pytest.approx(2)


def test_a_share_is_of_the_time_that_a_full_batch_takes() -> None:
    moved = Moved(records=10 * layers.BATCH_RECORDS, seconds=0.005)  # 500 us a batch
    assert layers.share(5, moved) == pytest.approx(1)


def test_requests_of_each_sort_are_served_whole() -> None:
    inside = layers.Inside()
    assert inside.ask(layers.list_offsets_request()) > 0
    assert inside.ask(layers.produce_request()) > 0
    assert inside.ask(layers.fetch_request()) > layers.BATCH_RECORDS * load.RECORD_BYTES
    journal = inside.server.journal
    assert [exchange.errors for exchange in journal] == [()] * 3


def test_without_its_layers_a_server_serves_and_notes_nothing() -> None:
    inside = layers.Inside()
    with layers.without_layers():
        alone = inside.ask(layers.list_offsets_request())
    assert not list(inside.server.journal)
    assert inside.ask(layers.list_offsets_request()) == alone
    assert len(list(inside.server.journal)) == 1
    clients, _ = inside.server.journal.meters
    assert [figures.requests for figures in clients] == [1]


def test_all_that_is_asked_is_compared() -> None:
    pairs = layers.Inside().pairs(layers.list_offsets_request(), 4 * layers.PORTIONS)
    assert len(pairs) == layers.PORTIONS
    assert all(pair.whole > 0 and pair.stripped > 0 for pair in pairs)
