"""What the rules about traces make of rows of a trace and of logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.pipeline.audit.rule import PartitionMetadata
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit import log_rows
from tests.pipeline.audit.log_rows import copied, in_tier, of_broker, replica
from tests.pipeline.audit.trace_rows import (
    Row,
    away,
    commit,
    created,
    event,
    evidence,
    fetch,
    found,
)
from tests.pipeline.audit.tracing import TRACE_RULES


def held(base: int, last: int, epoch: int = 0, *, crc: int = 0) -> log_rows.Row:
    """A batch of broker 1."""
    return log_rows.batch(base, last, epoch, crc=crc)


def sent(base: int, last: int, epoch: int = 0, *, crc: int = 0, error: int = 0) -> Row:
    """A request to acks=all with one batch, as it was appended."""
    batch = {
        "base_offset": base,
        "last_offset": last,
        "count": last - base + 1,
        "epoch": epoch,
        "crc": crc,
    }
    answered = base if error == 0 else -1
    return {"api": "Produce", "acks": -1, "offset": answered, "error": error, "batches": [batch]}


def elected(epoch: int, *, unclean: bool = False) -> Row:
    details = {"leader": 1, "leader_epoch": epoch, "unclean": unclean}
    return event("leader_changed", details=details)


# -- acknowledged-present -------------------------------------------------------------------------


def test_an_unclean_election_explains_nothing_of_its_own_epoch_or_later() -> None:
    rows = [
        created("a"),
        sent(0, 4, crc=1),
        elected(1, unclean=True),
        sent(0, 4, epoch=1, crc=2),
        sent(5, 9, epoch=1, crc=3),
    ]
    metadata = PartitionMetadata(replicas=(replica(epochs=((0, 0), (1, 0))),))
    given = evidence(*rows, metadata=metadata, batches=[held(0, 4, 1, crc=2), held(5, 9, 1, crc=3)])
    assert found("acknowledged-present", given) == [(0, True)]
    given = evidence(*rows, metadata=metadata)
    assert found("acknowledged-present", given) == [(0, True), (0, False)]


@pytest.mark.parametrize("others", [("b", 1), ("a", 1)], ids=["of another topic", "of a zombie"])
def test_who_else_has_copied_something_to_the_tier(others: tuple[str, int]) -> None:
    topic_id, epoch = others
    tier = (
        copied("first", 0, 4),
        replace(copied("second", 0, 4, (epoch, 0)), topic_id=topic_id),
    )
    rows = [
        *in_tier("first", held(0, 4, crc=1)),
        *in_tier("second", held(0, 4, epoch, crc=2)),
        log_rows.batch(5, 9, segment=5, crc=3),
    ]
    metadata = PartitionMetadata(replicas=(replica(segments=(5,)),), tier=tier, with_tier=True)
    for crc, expected in ((1, []), (7, [(0, False)])):
        given = evidence(created("a"), sent(0, 4, crc=crc), metadata=metadata, batches=rows)
        assert found("acknowledged-present", given) == expected


# -- fetched-share --------------------------------------------------------------------------------

_BEGUN = event("log_started_from_tier", broker=2, details={"offset": 5, "previous_offset": 0})


def told_start(offset: int, *, to: int = 2) -> Row:
    """Broker 1 says where its own log begins."""
    return {"api": "ListOffsets", "replica_id": to, "timestamp": -4, "offset": offset}


def fetched(offset: int, *, size: int = 100, error: int = 0, by: int = 2) -> Row:
    return {
        "api": "Fetch",
        "replica_id": by,
        "fetch_offset": offset,
        "bytes": size,
        "batches": [],
        "error": error,
    }


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([told_start(5), _BEGUN, fetched(5)], []),
        ([told_start(4), _BEGUN, fetched(5)], [5]),
        ([told_start(4, to=3), told_start(5), _BEGUN], []),
        ([told_start(5), _BEGUN, fetched(3)], [5]),
        ([told_start(5), _BEGUN, fetched(3, size=0)], []),
        ([told_start(5), _BEGUN, fetched(3, by=3)], []),
        ([told_start(5), _BEGUN, away(2, "running"), fetched(3)], []),
    ],
)
def test_where_a_follower_begins_and_goes_on(rows: list[Row], expected: list[int]) -> None:
    assert found("fetched-share", evidence(created("a"), *rows)) == [(o, False) for o in expected]


_MOVED = fetched(5, size=0, error=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([_MOVED, told_start(6)], []),
        ([_MOVED, told_start(5)], [5]),
        ([_MOVED, told_start(5, to=-1)], [5]),
        ([_MOVED, fetched(4, by=3)], [5]),
        ([_MOVED, fetched(4, by=-1)], []),
        ([_MOVED, fetched(4, by=3, size=0)], []),
        ([told_start(5), _MOVED], []),
        ([_MOVED, {**told_start(5), "number": 2}], []),
        ([_MOVED, {**told_start(5), "broker": 3}], []),
        ([_MOVED, {**told_start(5), "error": 6}], []),
        ([_MOVED, event("log_truncated", broker=1), told_start(5)], []),
        ([_MOVED, event("log_truncated", broker=2), told_start(5)], [5]),
        ([event("log_truncated", broker=1), _MOVED, told_start(5)], [5]),
        ([fetched(5, size=0), told_start(5)], []),
    ],
)
def test_a_leader_that_refuses_what_it_has(rows: list[Row], expected: list[int]) -> None:
    """A log never begins earlier than it did, and what is seen later tells."""
    assert found("fetched-share", evidence(created("a"), *rows)) == [(o, False) for o in expected]


# -- topics of one name ---------------------------------------------------------------------------


def test_logs_of_a_topic_that_was_deleted_say_nothing_of_the_one_there() -> None:
    """Two brokers still have the old one, and one has the new one."""
    old = of_broker(2, held(0, 4, crc=1)), of_broker(3, held(0, 4, crc=1))
    replicas = (
        replica(1, topic_id="new"),
        replica(2, topic_id="old"),
        replica(3, topic_id="old"),
    )
    rows = [
        created("new"),
        sent(0, 4, crc=2),
        sent(5, 9, crc=2),
        commit(8),
        sent(0, 4, crc=1, error=ErrorCode.EXPECTED_OFFSET_MISMATCH),
        event("trace_ended", partition=None, topic=None),
    ]
    given = evidence(
        *rows,
        metadata=PartitionMetadata(replicas=replicas),
        batches=[held(0, 4, crc=2), held(5, 9, crc=2), *old[0], *old[1]],
    )
    assert {rule: found(rule, given) for rule in TRACE_RULES} == {rule: [] for rule in TRACE_RULES}


# -- a trace that has gaps ------------------------------------------------------------------------


def run(kind: str) -> Row:
    """The server starts, or ends in order."""
    begun: Row = {"configs": {}, "dynamic_configs": {}} if kind == "trace_started" else {}
    return event(kind, partition=None, topic=None, details=begun)


@pytest.mark.parametrize("ended", [True, False])
def test_what_a_server_that_was_killed_could_not_write_down(ended: bool) -> None:
    """A batch that was refused is there, and a group reads an offset that was never committed."""
    rows = [
        run("trace_started"),
        created("a"),
        sent(0, 4, crc=1, error=ErrorCode.EXPECTED_OFFSET_MISMATCH),
        commit(3),
        *([run("trace_ended")] if ended else []),
        run("trace_started"),
        fetch(4),
        run("trace_ended"),
    ]
    metadata = PartitionMetadata(replicas=(replica(),))
    given = evidence(*rows, metadata=metadata, batches=[held(0, 4, crc=1)])
    assert found("expected-offsets", given) == ([(0, False)] if ended else [])
    assert found("committed-offsets", given) == [(4, not ended)]


def test_a_server_that_was_killed_before_there_was_the_topic() -> None:
    rows = [
        run("trace_started"),
        run("trace_started"),
        created("a"),
        sent(0, 4, crc=1, error=ErrorCode.EXPECTED_OFFSET_MISMATCH),
        commit(3),
        fetch(4),
        run("trace_ended"),
    ]
    metadata = PartitionMetadata(replicas=(replica(),))
    given = evidence(*rows, metadata=metadata, batches=[held(0, 4, crc=1)])
    assert found("expected-offsets", given) == [(0, False)]
    assert found("committed-offsets", given) == [(4, False)]


def test_an_offset_of_a_transaction_fits_the_log_as_any_other_does() -> None:
    rows = [created("a"), sent(0, 4, crc=1)]
    metadata = PartitionMetadata(replicas=(replica(),))
    for offset, expected in ((5, []), (6, [(6, False)])):
        committed = commit(offset, api="TxnOffsetCommit")
        given = evidence(*rows, committed, metadata=metadata, batches=[held(0, 4, crc=1)])
        assert found("committed-offsets", given) == expected
