"""What is still known of exchanges and topics that are gone."""

from __future__ import annotations

from uuid import UUID

import pytest

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.server import journal_history as module
from fencepost.broker.server.journal_history import DeletedTopics, DroppedExchanges, DroppedKind

KIND = DroppedKind(of_brokers=False, broker_id=1, api_key=0, version=9, client_id="c")


def test_exchanges_that_fall_out_are_counted_by_what_is_known_of_them() -> None:
    dropped = DroppedExchanges()
    dropped.count(KIND, 3)
    dropped.count(KIND._replace(version=10), 4)
    dropped.count(KIND, 9)
    assert dict(dropped.counts()) == {KIND: 2, KIND._replace(version=10): 1}
    assert (dropped.uncounted, dropped.last) == (0, 9)
    dropped.clear()
    assert (dict(dropped.counts()), dropped.last) == ({}, 0)


def test_only_so_many_kinds_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KINDS", 2)
    dropped = DroppedExchanges()
    for client_id in ("a", "b", "c", "a"):
        dropped.count(KIND._replace(client_id=client_id), 1)
    dropped.count(KIND._replace(client_id="x" * 1000), 1)
    assert sum(dict(dropped.counts()).values()) == 3
    assert dropped.uncounted == 2


def test_a_long_client_id_is_not_kept() -> None:
    dropped = DroppedExchanges()
    dropped.count(KIND._replace(client_id="x" * 1000), 1)
    assert (dict(dropped.counts()), dropped.uncounted) == ({}, 1)


def test_the_last_deleted_topics_are_known_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DELETED", 2)
    topics = DeletedTopics()
    for number in (1, 2, 3):
        details = {"topic_id": str(UUID(int=number))}
        topics.record(
            Event(kind=Kind.TOPIC_DELETED, time_ms=0, topic=f"t{number}", details=details)
        )
    topics.record(Event(kind=Kind.RESET, time_ms=0))
    assert topics.names == {UUID(int=2): "t2", UUID(int=3): "t3"}
    topics.clear()
    assert topics.names == {}
