"""Exchanges that are left out change nothing, however a trace comes in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.pipeline.audit.rule import PartitionMetadata
from fencepost.pipeline.audit.spark_task import PartitionResult, check_partitions
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit import log_rows
from tests.pipeline.audit.log_rows import of_broker, replica
from tests.pipeline.audit.summaries import NOW_MS
from tests.pipeline.audit.trace_rows import Row, away, created, event, evidence
from tests.pipeline.audit.trace_scan.passed import passed
from tests.pipeline.audit.tracing import TRACE_RULES

_LOG: Final = [log_rows.batch(base, base + 1, base // 4, crc=base // 2) for base in range(0, 8, 2)]
_BATCHES: Final = pa.Table.from_pylist(
    [{"topic": "t", "partition": 0, **row} for row in (*_LOG, *of_broker(2, *_LOG[:2]))], BATCHES
)
_KNOWN: Final = {
    ("t", 0): PartitionMetadata(replicas=(replica(1, topic_id="b"), replica(2, topic_id="b"))),
    ("t", 1): PartitionMetadata(),
    ("u", 0): PartitionMetadata(),
}
_EXAMPLES: Final = 60
_OFFSETS: Final = st.integers(0, 8)
_EPOCHS: Final = st.integers(-1, 2)


def _one_of(*values: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  # whatever a column has
    return st.sampled_from(values)


_BROKERS: Final = _one_of(1, 1, 1, 2)
_FAILS_RARELY: Final = _one_of(*[0] * 15, ErrorCode.NOT_LEADER_OR_FOLLOWER)
_COMMON: Final = {
    "broker": _BROKERS,
    "topic": _one_of(*"t" * 19, "u"),
    "partition": _one_of(*[0] * 19, 1),
    "answered_ms": _one_of(*[1] * 19, None),
    "current_leader_epoch": _EPOCHS,
    "error": _FAILS_RARELY,
}


def _exchange(api: str, **columns: st.SearchStrategy[Any]) -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({"api": st.just(api), **_COMMON, **columns})


def _batch(base: int, epoch: int, note: int, expected: int | None) -> Row:
    batch = {"base_offset": base, "last_offset": base + 1, "count": 2, "epoch": epoch}
    return {**batch, "crc": base // 2 + note, "producer_id": -1, "expected_offset": expected}


_BATCH: Final = st.builds(
    _batch, _one_of(0, 2, 4, 8), _EPOCHS, _one_of(0, 0, 0, 1, -1), _one_of(None, 0, 2)
)
_LATEST: Final = _exchange(
    "ListOffsets",
    timestamp=st.just(-1),
    offset=_OFFSETS,
    epoch=_EPOCHS,
    isolation_level=_one_of(0, 0, 0, 0, 1),
    replica_id=_one_of(*[-1] * 7, 2),
    log_start_offset=st.none(),
)
_FETCH: Final = _exchange(
    "Fetch",
    replica_id=_one_of(-1, 2, 3),
    version=st.just(17),
    session_id=_one_of(None, 5, 5, 6),
    fetch_offset=_OFFSETS,
    bytes=_one_of(0, 100),
    batches=st.lists(_BATCH, max_size=2),
)
_SILENT: Final = _FETCH.map(
    lambda row: {**row, "session_id": 5, "fetch_offset": None, "current_leader_epoch": None}
)
"""What a fetch session does not say again."""
_OLD_FETCH: Final = _exchange("Fetch", replica_id=st.just(2), version=st.just(12))
_LOG_START: Final = _exchange("Fetch", version=st.just(17), log_start_offset=_OFFSETS)
_PRODUCE: Final = _exchange(
    "Produce",
    acks=_one_of(-1, 1),
    offset=_OFFSETS,
    batches=st.lists(_BATCH, min_size=1, max_size=2),
)
_APPENDED: Final = _PRODUCE.map(
    lambda row: {**row, "acks": -1, "offset": row["batches"][0]["base_offset"]}
)
"""It lies where its producer was told, if it has an epoch."""
_REFUSED: Final = _PRODUCE.map(lambda row: {**row, "error": ErrorCode.EXPECTED_OFFSET_MISMATCH})
_TOLD_START: Final = _exchange(
    "ListOffsets",
    replica_id=_one_of(2, 2, 3),
    version=st.just(11),
    timestamp=_one_of(-4, -6),
    offset=_OFFSETS,
)
_MOVED: Final = _FETCH.map(
    lambda row: {**row, "error": ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, "bytes": 0}
)
_GROUPS: Final = (
    _exchange("OffsetCommit", group=_one_of("g", "g", "h"), offset=_OFFSETS, epoch=_EPOCHS),
    _exchange("OffsetFetch", group=_one_of("g", "g", "h"), offset=_OFFSETS, epoch=_EPOCHS),
    _exchange("OffsetDelete", group=st.just("g")),
    st.just({"api": "DeleteGroups", "group": "g", "topic": None, "partition": None}),
)
_ELECTED: Final = st.builds(
    lambda epoch, unclean: event(
        "leader_changed", details={"leader": 1, "leader_epoch": epoch, "unclean": unclean}
    ),
    st.integers(1, 3),
    st.booleans(),
)
_AWAY: Final = st.builds(away, _BROKERS, _one_of("isolated", "rejoined", "running"))
_WIPED: Final = _BROKERS.map(
    lambda broker: event("replica_wiped", broker=broker, details={"alone": False})
)
_BEGUN: Final = _OFFSETS.map(
    lambda offset: event(
        "log_started_from_tier", broker=2, details={"offset": offset, "previous_offset": 0}
    )
)
_ANOTHER_LOG: Final = _BROKERS.map(lambda broker: event("log_truncated", broker=broker))
_STARTED: Final = st.just(
    event(
        "trace_started",
        partition=None,
        topic=None,
        details={"configs": {}, "dynamic_configs": {}},
    )
)
_RECREATED: Final = _one_of("a", "b").map(created)
_THEMES: Final[Mapping[str, Sequence[st.SearchStrategy[Row]]]] = {
    "acknowledged-present": (
        _PRODUCE,
        *[_APPENDED] * 2,
        _LOG_START,
        _LOG_START,
        _OLD_FETCH,
        _WIPED,
        _ELECTED,
    ),
    "latest-never-back": (*[_LATEST] * 6, _OLD_FETCH, _WIPED, _ELECTED, _RECREATED),
    "no-stale-epoch": (*[_LATEST] * 2, *[_FETCH] * 2, _SILENT, _PRODUCE, _AWAY, _ELECTED),
    "expected-offsets": (_PRODUCE, _PRODUCE, _REFUSED, _STARTED),
    "committed-offsets": (*_GROUPS, _LOG_START, _STARTED),
    "fetched-share": (_TOLD_START, _BEGUN, *[_FETCH] * 2, _MOVED, _ANOTHER_LOG),
}
"""By rule: what it looks at."""
_ALL: Final = tuple({id(each): each for theme in _THEMES.values() for each in theme}.values())


@st.composite
def histories(draw: st.DrawFn, rule: str) -> pa.Table:
    """Requests that are answered in some order, and events; mostly of what a rule looks at."""
    theme = _THEMES[rule]
    kinds = _one_of(*draw(_one_of(theme, theme, theme, (*theme, *_ALL)))).flatmap(lambda kind: kind)
    rows = draw(st.lists(st.tuples(kinds, _one_of(0, 0, 0, 0, 1, 3)), min_size=6, max_size=18))
    # Each is answered when so many other requests have been taken up, an event at once.
    ends = [(at if "kind" in row else at + wait, at, row) for at, (row, wait) in enumerate(rows, 1)]
    told = [
        {**row, "number": at, "newest": min(end, len(rows))}
        for end, at, row in sorted(ends, key=lambda each: each[:2])
    ]
    begin = {**created("b"), "number": 0, "newest": 0}
    end = event("trace_ended", partition=None, topic=None, number=len(rows), newest=len(rows))
    found = evidence(begin, *told, end).traces
    assert found is not None
    return found


def judged(traces: pa.Table) -> list[PartitionResult]:
    return list(check_partitions(_BATCHES, traces, _KNOWN, now_ms=NOW_MS))


@pytest.mark.parametrize("rule", TRACE_RULES)
def test_any_chunks_give_what_the_whole_gives(rule: str) -> None:
    """Findings, explanations, incidents, lineages and counts: all that is told of a partition."""
    found = 0

    @settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(histories(rule), st.lists(st.integers(1, 12), min_size=1, max_size=3))
    def check(traces: pa.Table, sizes: Sequence[int]) -> None:
        nonlocal found
        whole = judged(traces)
        found += any(each.rule == rule for result in whole for each in result.violations)
        assert judged(passed(traces, sizes)) == whole

    check()
    assert found, "there was something to find"


def test_a_batch_is_claimed_by_a_request_of_another_chunk_than_the_refused_one() -> None:
    batch = {**_LOG[1], "producer_id": -1}
    sent = {"api": "Produce", "acks": 1, "offset": 2, "batches": [batch]}
    before = {**sent, "offset": 0, "batches": [{**_LOG[0], "producer_id": -1}]}
    refused = {**sent, "error": ErrorCode.EXPECTED_OFFSET_MISMATCH}
    end = event("trace_ended", partition=None, topic=None)
    for rows, count in (((refused, end), 1), ((refused, sent, end), 0), ((sent, refused, end), 0)):
        found = evidence(created("b"), before, *rows).traces
        assert found is not None
        for traces in (found, passed(found, [1])):
            (whole, *_) = judged(traces)
            assert [v.rule for v in whole.violations].count("expected-offsets") == 2 * count


def test_what_a_leader_shows_is_in_another_chunk_than_its_refusal() -> None:
    asked = {"api": "Fetch", "replica_id": 2, "fetch_offset": 5, "bytes": 0, "batches": []}
    moved = {**asked, "error": ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE}
    starts = [
        {"api": "ListOffsets", "replica_id": 2, "timestamp": -4, "offset": offset}
        for offset in (6, 5, 4, 5)
    ]
    found = evidence(created("b"), moved, *starts).traces
    assert found is not None
    (whole, *_), (left, *_) = judged(found), judged(passed(found, [1]))
    assert [v.rule for v in whole.violations].count("fetched-share") == 1
    assert left == whole
