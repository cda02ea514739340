"""KIP-207 as a streaming query meets it: the end of a partition goes back after an election."""

from __future__ import annotations

import pytest

from fencepost.pipeline.stream.options import OnDataLoss
from fencepost.pipeline.stream.query_monitor import explain_failure
from tests.harness.wait import wait_until
from tests.pipeline.stream.ground import TOPIC, Ground, failure, numbered, spans

NOT_LEADER_OR_FOLLOWER = 6  # what a query hears that is about to ask as the election comes
OFFSET_NOT_AVAILABLE = 78
WENT_BACK = "data loss: Partition orders-0 offset was changed from 20 to 10"


def lag(ground: Ground) -> None:
    """Let the leader alone know that all have twenty records; broker 2 knows it of ten."""
    for follower in (2, 3):
        ground.verbs.hold(TOPIC, 0, follower)
    ground.send("a", 10, 20, acks="1")
    ground.verbs.step(TOPIC, 0, 2, fetches=2)
    ground.verbs.step(TOPIC, 0, 3, fetches=2)
    assert ground.verbs.partition(TOPIC, 0).high_watermark == 20


def elect(ground: Ground) -> None:
    elected = ground.verbs.elect(TOPIC, 0, leader=2)
    assert (elected.leader, elected.isr, elected.high_watermark) == (2, (1, 2, 3), 10)


def heal(ground: Ground) -> None:
    """Broker 3 fetches from the new leader, which then knows what the old one knew."""
    for follower in (2, 3):
        ground.verbs.release(TOPIC, 0, follower)
    wait_until("all is known", lambda: ground.verbs.partition(TOPIC, 0).high_watermark == 20)


def test_without_the_gate_the_query_fails_although_nothing_is_lost(ungated: Ground) -> None:
    ungated.send("a", 0, 10)
    query = ungated.begin()
    query.processAllAvailable()
    lag(ungated)
    query.processAllAvailable()
    assert spans(query) == [(None, 10), (10, 20)]
    elect(ungated)
    assert explain_failure(failure(query)) == WENT_BACK
    assert [answer["offset"] for answer in ungated.answers("ListOffsets")][-1] == 10
    assert refusals(ungated) == 0
    # The election lost no record, and what was written is right.
    heal(ungated)
    assert ungated.read() == numbered("a", 0, 20)
    # Nor does it help to start again: Spark has written down the offset before it looked at it.
    ungated.send("a", 20, 30)
    assert explain_failure(failure(ungated.begin())) == WENT_BACK
    assert ungated.read() == numbered("a", 0, 20)
    # What helps is to let Spark forget the batch that it never did.
    for name in ("2", ".2.crc"):
        assert not (ungated.checkpoint / "commits" / name).exists()
        (ungated.checkpoint / "offsets" / name).unlink()
    ungated.catch_up()
    assert ungated.read() == numbered("a", 0, 30)


def test_without_the_gate_a_query_that_goes_on_reads_again(ungated: Ground) -> None:
    ungated.send("a", 0, 10)
    query = ungated.begin(on_data_loss=OnDataLoss.GO_ON)
    query.processAllAvailable()
    lag(ungated)
    query.processAllAvailable()
    elect(ungated)
    wait_until("it has gone back", lambda: spans(query)[-1] == (20, 10))
    heal(ungated)
    ungated.send("a", 20, 30)
    query.processAllAvailable()
    assert spans(query)[:3] == [(None, 10), (10, 20), (20, 10)]
    assert (spans(query)[3][0], spans(query)[-1][1]) == (10, 30)
    assert ungated.read() == sorted([*numbered("a", 0, 30), *numbered("a", 10, 20)])


def test_without_the_gate_spark_may_look_again_in_time(ungated: Ground) -> None:
    ungated.send("a", 0, 10)
    query = ungated.begin(fetchOffset_numRetries="2000")
    query.processAllAvailable()
    lag(ungated)
    query.processAllAvailable()
    elect(ungated)
    wait_until("it was told 10", lambda: ungated.answers("ListOffsets")[-1]["offset"] == 10)
    heal(ungated)
    ungated.send("a", 20, 30)
    query.processAllAvailable()
    assert ungated.read() == numbered("a", 0, 30)


@pytest.mark.parametrize("on_data_loss", OnDataLoss)
def test_with_the_gate_the_query_goes_on_untouched(field: Ground, on_data_loss: OnDataLoss) -> None:
    field.send("a", 0, 10)
    query = field.begin(on_data_loss=on_data_loss)
    query.processAllAvailable()
    lag(field)
    query.processAllAvailable()
    elect(field)
    wait_until("it was refused and asked again", lambda: refusals(field) >= 3)
    assert query.isActive
    heal(field)
    field.send("a", 20, 30)
    query.processAllAvailable()
    assert query.exception() is None
    told = spans(query)
    assert (told[:2], told[2][0], told[-1][1]) == ([(None, 10), (10, 20)], 20, 30)
    assert field.read() == numbered("a", 0, 30)


def refusals(ground: Ground) -> int:
    """How often the gate of KIP-207 sent the query away."""
    codes = [answer["error_code"] for answer in ground.answers("ListOffsets")]
    assert set(codes) <= {0, NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE}
    return codes.count(OFFSET_NOT_AVAILABLE)
