"""What a query hardly notices: another broker leads, or a broker is gone for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.wait import wait_until
from tests.pipeline.stream.ground import CLIENT, TOPIC, Ground, numbered, spans

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def test_every_record_once_while_the_leader_changes(field: Ground) -> None:
    query = field.begin(max_offsets=7)
    for round_, leader in enumerate((2, 3, 1)):
        field.send("a", 20 * round_, 20 * round_ + 10)
        wait_for(query, 20 * round_ + 1)
        assert field.verbs.elect(TOPIC, 0, leader=leader).leader == leader
        field.send("a", 20 * round_ + 10, 20 * round_ + 20)
    query.processAllAvailable()
    assert query.exception() is None
    assert field.read() == numbered("a", 0, 60)
    starts, ends = zip(*spans(query), strict=True)
    assert starts[1:] == ends[:-1]
    asked = field.verbs.trace(api="Fetch", client_id=CLIENT, limit=4096)
    assert {exchange.broker for exchange in asked} == {1, 2, 3}


def wait_for(query: StreamingQuery, offset: int) -> None:
    wait_until(f"it is at {offset}", lambda: reached(query) >= offset)


def reached(query: StreamingQuery) -> int:
    """The offset that is to be read next."""
    done = spans(query)
    return done[-1][1] if done else 0


def test_every_record_once_while_brokers_are_killed(field: Ground) -> None:
    query = field.begin(max_offsets=7)
    field.send("a", 0, 20)
    query.processAllAvailable()
    for broker in (1, 2):
        field.verbs.kill_broker(broker)
        start = 20 * broker
        field.send("a", start, start + 20)
        query.processAllAvailable()
        field.verbs.start_broker(broker)
    assert query.exception() is None
    assert field.read() == numbered("a", 0, 60)
