"""What a query has read is taken away by an unclean election, and its place is taken."""

from __future__ import annotations

from fencepost.pipeline.stream.options import OnDataLoss
from fencepost.pipeline.stream.query_monitor import explain_failure
from tests.harness.wait import wait_until
from tests.pipeline.stream.ground import TOPIC, Ground, failure, numbered, spans


def read_what_will_be_lost(ground: Ground) -> None:
    """Twenty records are read, of which broker 3 has ten."""
    ground.send("a", 0, 10)
    ground.verbs.hold(TOPIC, 0, 3, leave_isr=True)
    ground.send("a", 10, 20)
    ground.catch_up()
    assert ground.read() == numbered("a", 0, 20)


def lose(ground: Ground) -> None:
    elected = ground.verbs.elect(TOPIC, 0, leader=3, unclean=True)
    assert (elected.leader, elected.high_watermark) == (3, 10)


def test_a_shorter_log_fails_the_query(field: Ground) -> None:
    read_what_will_be_lost(field)
    lose(field)
    field.send("b", 10, 15)
    lost = explain_failure(failure(field.begin()))
    assert lost == "data loss: Partition orders-0 offset was changed from 20 to 15"
    assert field.read() == numbered("a", 0, 20)


def test_a_query_that_goes_on_misses_what_took_the_place(field: Ground) -> None:
    read_what_will_be_lost(field)
    lose(field)
    field.send("b", 10, 15)
    query = field.begin(on_data_loss=OnDataLoss.GO_ON)
    query.processAllAvailable()
    assert spans(query) == [(20, 15)]
    field.send("b", 15, 25)
    query.processAllAvailable()
    assert (spans(query)[1][0], spans(query)[-1][1]) == (15, 25)
    # b10 to b14 are nowhere, and a10 to a19, which Kafka does not have any more, stay.
    assert field.read() == sorted([*numbered("a", 0, 20), *numbered("b", 15, 25)])


def test_a_log_that_has_grown_past_it_is_not_noticed_at_all(field: Ground) -> None:
    """Spark keeps offsets without their epochs, and so KIP-320 does not help it."""
    read_what_will_be_lost(field)
    lose(field)
    field.send("b", 10, 25)
    ((records, span),) = field.catch_up(OnDataLoss.FAIL)
    assert (records, span.start, span.end) == (5, 20, 25)
    assert field.read() == [*numbered("a", 0, 20), *numbered("b", 20, 25)]
    assert field.verbs.trace(api="OffsetForLeaderEpoch", source="clients") == []


def test_records_that_are_deleted_before_they_are_read(field: Ground) -> None:
    field.send("a", 0, 10)
    field.catch_up()
    field.send("a", 10, 20)
    delete_before(field, 15)
    lost = explain_failure(failure(field.begin()))
    assert (
        lost == "data loss: Could not read records in offset [10, 20) for topic partition orders-0"
    )
    ((records, span),) = field.catch_up(OnDataLoss.GO_ON)
    assert (records, span.start, span.end) == (5, 10, 20)
    assert field.read() == [*numbered("a", 0, 10), *numbered("a", 15, 20)]


def delete_before(ground: Ground, offset: int) -> None:
    partition = {"PartitionIndex": 0, "Offset": offset}
    body = {"Topics": [{"Name": TOPIC, "Partitions": [partition]}], "TimeoutMs": 5000}
    with ground.cluster.connect(ground.cluster.leader(TOPIC)) as connection:
        connection.call("DeleteRecords", 2, body)
    wait_until("they are gone", lambda: ground.cluster.end_offset(TOPIC, timestamp=-2) == offset)
