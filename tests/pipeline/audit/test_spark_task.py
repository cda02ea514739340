"""Every rule is shown each partition, whole, in order, and with what concerns all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from fencepost.pipeline.audit import spark_task as examining
from fencepost.pipeline.audit.job import AuditOptions, bucket_function
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.partition_summary import from_json, to_json
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    Rule,
    Severity,
    Violation,
)
from fencepost.pipeline.audit.spark_task import (
    MAX_LISTED,
    OUTPUT_SCHEMA,
    SUMMARY,
    PartitionResult,
    check_partitions,
    run_task,
)
from tests.pipeline.audit.summaries import NOW_MS, batches, event, traces, violation

Check = Callable[[PartitionEvidence], Iterator[Violation]]


class Rules:
    """Rules of a test, instead of the real ones."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._all: dict[str, Rule] = {}
        self.seen: list[PartitionEvidence] = []
        self.add("look", self._look, needs_trace=False)

    def add(self, name: str, check: Check, *, needs_trace: bool = False) -> None:
        self._all[name] = Rule(
            name=name,
            about="",
            source="",
            needs_trace=needs_trace,
            order=1,
            severity=Severity.DAMAGE,
            remedy="",
            check=check,
        )
        self._patch.setattr(examining, "RULES", self._all)

    def _look(self, evidence: PartitionEvidence) -> Iterator[Violation]:
        self.seen.append(evidence)
        yield from ()


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    return Rules(monkeypatch)


def run(
    rows: pa.Table,
    trace: pa.Table | None = None,
    metadata: dict[tuple[str, int], PartitionMetadata] | None = None,
) -> list[PartitionResult]:
    return list(check_partitions(rows, trace, metadata or {}, now_ms=NOW_MS))


def test_batches_come_by_place_broker_segment_and_position(rules: Rules) -> None:
    ordered = batches(
        {"broker": 1, "base_offset": 0},
        {"broker": 1, "base_offset": 10},
        {"broker": 1, "base_offset": 20, "segment": 20, "position": 0},
        {"broker": 2, "base_offset": 0},
        {"place": "tier", "broker": None, "segment_id": "a", "base_offset": 0},
        {"place": "tier", "broker": None, "segment_id": "b", "base_offset": 0},
        {"place": "tier", "broker": None, "segment_id": "b", "base_offset": 10},
        {"partition": 1, "broker": 1},
        {"topic": "other", "broker": 1},
    )
    shuffled = ordered.take([8, 6, 0, 7, 4, 2, 5, 3, 1])
    keys = [each.summary.key for each in run(shuffled)]
    assert keys == [("orders", 0), ("orders", 1), ("other", 0)]
    assert pa.concat_tables(each.batches for each in rules.seen) == ordered


def test_what_is_of_no_partition_concerns_each_and_exchanges_come_behind(rules: Rules) -> None:
    rows = traces(
        event("broker_changed", state="killed"),
        {"api": "Fetch"},
        event("topic_created", topic="orders"),
        {"api": "DeleteGroups", "topic": None, "partition": None},
        {"api": "Metadata", "topic": None, "partition": None},
        {"api": "Fetch", "partition": 1},
        {"api": "Fetch", "topic": "other"},
        event("topic_created", topic="other"),
        {"api": "Produce"},
    )
    found = run(batches(), rows.take([8, 0, 4, 6, 7, 1, 5, 3, 2]))
    lines = {
        (each.topic, each.partition): each.traces["line"].to_pylist()
        for each in rules.seen
        if each.traces is not None
    }
    assert lines == {
        ("orders", 0): [1, 3, 4, 2, 9],
        ("orders", 1): [1, 3, 4, 6],
        ("other", 0): [1, 4, 8, 7],
    }
    assert [each.summary.trace_rows for each in found] == [2, 1, 1]


def test_events_of_no_partition_are_joined_to_partitions_that_the_trace_does_not_name(
    rules: Rules,
) -> None:
    """Spark's tables have a column more than `TRACES`, and so have the rows of these partitions."""
    rows = traces(event("broker_changed", state="killed"), event("topic_created", topic="other"))
    from_spark = rows.append_column("bucket", pa.nulls(rows.num_rows, pa.int32()))
    (found,) = run(batches({}), from_spark)
    assert found.summary.trace_rows == 0
    (seen,) = rules.seen
    assert seen.traces is not None
    assert seen.traces["line"].to_pylist() == [1]


def test_what_only_the_ground_knows_is_examined_too(rules: Rules) -> None:
    known = PartitionMetadata(compacted=True)
    run(batches({}), None, {("orders", 3): known})
    assert [(each.partition, each.metadata.compacted) for each in rules.seen] == [
        (0, False),
        (3, True),
    ]
    assert [each.batches.num_rows for each in rules.seen] == [1, 0]
    assert all(each.traces is None for each in rules.seen)


def test_without_a_trace_no_rule_is_asked_that_needs_one(rules: Rules) -> None:
    rules.add("told", lambda _: iter([violation(rule="told")]), needs_trace=True)
    (without,) = run(batches({}))
    assert [each.rule for each in without.summary.rule_counts] == ["look"]
    (with_one,) = run(batches({}), traces())
    assert [(each.rule, each.found) for each in with_one.summary.rule_counts] == [
        ("look", 0),
        ("told", 1),
    ]


def test_every_rule_is_shown_when_the_audit_was_begun(rules: Rules) -> None:
    run_task(batches({}, {"partition": 1}), None, {}, (), now_ms=7, with_history=False)
    assert [each.now_ms for each in rules.seen] == [7, 7]


def test_what_executors_are_sent_has_the_time_that_the_case_fixed(rules: Rules) -> None:
    case = AuditOptions(directory="/logs", now_ms=7)
    for trace in (None, traces()):
        sent = cloudpickle.loads(cloudpickle.dumps(bucket_function(case)))  # type: ignore[no-untyped-call]  # it has no types
        sent(batches({}), trace, {})
    assert [each.now_ms for each in rules.seen] == [7, 7]


def test_an_audit_is_begun_when_its_case_is_made() -> None:
    before = time.time_ns() // 1_000_000
    case = AuditOptions(directory="/logs")
    assert before <= case.now_ms <= time.time_ns() // 1_000_000
    assert replace(case, topics=("t",)).now_ms == case.now_ms


def test_only_rules_that_are_asked_for(rules: Rules) -> None:
    rules.add("other", lambda _: iter([violation(rule="other")]))
    (found,) = check_partitions(batches({}), None, {}, rules=("other",), now_ms=NOW_MS)
    assert [each.rule for each in found.summary.rule_counts] == ["other"]
    assert not rules.seen


def test_a_rule_that_fails_hides_nothing_of_the_others(rules: Rules) -> None:
    def fail(_: PartitionEvidence) -> Iterator[Violation]:
        yield violation(rule="fails")
        raise ZeroDivisionError("by what?")

    rules.add("fails", fail)
    rules.add("finds", lambda _: iter([violation(rule="finds")]))
    (found,) = run(batches({}))
    (failure,) = found.summary.failures
    assert (failure.rule, failure.topic, failure.partition) == ("fails", "orders", 0)
    assert failure.last_line == "ZeroDivisionError: by what?"
    assert [each.rule for each in found.summary.rule_counts] == ["look", "finds"]
    assert len(found.violations) == 1


def test_a_lineage_that_fails_hides_nothing_of_the_rules(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: PartitionEvidence) -> tuple[PartitionLineage, ...]:
        raise ZeroDivisionError("by what?")

    rules.add("finds", lambda _: iter([violation(rule="finds")]))
    (sound,) = run(batches({}))
    assert [len(each.sides) for each in sound.summary.lineages] == [1]
    monkeypatch.setattr(examining, "partition_lineages", fail)
    (found,) = run(batches({}))
    assert [each.rule for each in found.summary.failures] == ["lineage"]
    assert (found.summary.lineages, len(found.violations)) == ((), 1)


def test_findings_without_end_are_counted_and_not_all_told(rules: Rules) -> None:
    def finds(_: PartitionEvidence) -> Iterator[Violation]:
        for number in range(MAX_LISTED + 7):
            yield violation(rule="many", offset=number)
        yield Violation(
            rule="many", topic="orders", partition=0, message="", explanation="expected"
        )

    rules.add("many", finds)
    (found,) = run(batches({}))
    count = found.summary.rule_counts[1]
    assert (count.found, count.explained, count.listed) == (MAX_LISTED + 8, 1, MAX_LISTED)
    assert len(found.violations) == MAX_LISTED
    assert found.summary.violations == MAX_LISTED + 7


def test_an_account_tells_what_each_holds() -> None:
    rows = batches(
        {"base_offset": 0},
        {"base_offset": 10, "segment": 10, "size": 300},
        {"base_offset": 20, "segment": 10, "problem": "crc"},
        {"base_offset": None, "last_offset": None, "segment": 10, "problem": "trailing"},
        {"broker": 2, "base_offset": 0},
        {"place": "tier", "broker": None, "segment_id": "a", "base_offset": 0},
    )
    (found,) = run(rows)
    one, two, tier = found.summary.replicas
    assert (one.broker, one.batches, one.records, one.bytes, one.problems) == (1, 2, 20, 400, 2)
    assert (one.start, one.end, one.segments, one.largest) == (0, 20, 2, 300)
    assert [(each.start, each.end) for each in one.spans] == [(0, 10), (10, 20)]
    assert (two.place, two.broker, two.end) == ("log", 2, 10)
    assert (tier.place, tier.broker, tier.end) == ("tier", None, 10)
    assert from_json(to_json(found.summary)) == found.summary


def test_a_replica_of_many_segments_is_told_in_few() -> None:
    rows = batches(*({"base_offset": at * 10, "segment": at * 10} for at in range(1001)))
    (found,) = run(rows)
    (held,) = found.summary.replicas
    assert held.segments == 1001
    assert len(held.spans) == 167
    assert (held.spans[0].start, held.spans[-1].end) == (0, 10010)
    assert sum(each.bytes for each in held.spans) == held.bytes


def test_a_bucket_answers_findings_and_accounts(rules: Rules) -> None:
    rules.add(
        "finds", lambda each: iter([violation(each.partition, rule="finds")] * each.partition)
    )
    rows = batches({"partition": 1}, {"partition": 2})
    without_batch = {("orders", 7): PartitionMetadata()}
    answer = run_task(rows, None, without_batch, (), now_ms=NOW_MS, with_history=False)
    assert answer.schema == OUTPUT_SCHEMA
    told = answer.filter(answer[SUMMARY].is_valid())
    assert [from_json(each.as_py()).partition for each in told[SUMMARY]] == [1, 2, 7]
    rest = answer.filter(answer[SUMMARY].is_null())
    assert rest["partition"].to_pylist() == [1, 2, 2, *[7] * 7]
    nothing = run_task(batches(), None, {}, (), now_ms=NOW_MS, with_history=False)
    assert (nothing.schema, nothing.num_rows) == (OUTPUT_SCHEMA, 0)
