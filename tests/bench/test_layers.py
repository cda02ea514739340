"""What layers cost is told by one server, which really goes without them for a while."""

from __future__ import annotations

import pytest

from bench import inside, layers, load
from bench.load import Moved


def test_a_share_is_of_the_time_that_a_full_batch_takes() -> None:
    moved = Moved(records=10 * inside.BATCH_RECORDS, seconds=0.005)  # 500 us a batch
    assert layers.share(5, moved) == pytest.approx(1)


def test_requests_of_each_sort_are_served_whole() -> None:
    server = inside.Inside()
    assert server.ask(layers.list_offsets_request()) > 0
    assert server.ask(layers.produce_request()) > 0
    assert server.ask(layers.fetch_request()) > inside.BATCH_RECORDS * load.RECORD_BYTES
    journal = server.server.journal
    assert [exchange.errors for exchange in journal] == [()] * 3


def test_without_its_layers_a_server_serves_and_notes_nothing() -> None:
    server = inside.Inside()
    with layers.without_layers():
        alone = server.ask(layers.list_offsets_request())
    assert not list(server.server.journal)
    assert server.ask(layers.list_offsets_request()) == alone
    assert len(list(server.server.journal)) == 1
    clients, _ = server.server.journal.metrics
    assert [figures.requests for figures in clients] == [1]


def test_all_that_is_asked_is_compared() -> None:
    count = 4 * inside.PORTIONS
    pairs = layers.pairs(inside.Inside(), layers.list_offsets_request(), count)
    assert len(pairs) == inside.PORTIONS
    assert all(pair.whole > 0 and pair.stripped > 0 for pair in pairs)
