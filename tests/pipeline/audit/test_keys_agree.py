"""Compacted replicas agree by keys, whatever cleaners have taken; what one has lost is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from fencepost.cli.commands import run
from fencepost.pipeline.audit.job import AuditOptions, AuditResult, audit, list_logs
from fencepost.pipeline.audit.keys.key_differences import KeyDifference, KeyDifferences
from fencepost.pipeline.audit.metadata_rows import KeyShare
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES, Level
from tests.pipeline.audit import damage
from tests.pipeline.audit.keys.compacted_cluster import Compacted, compact
from tests.pipeline.audit.log_rows import Row, batch, of_broker, replica
from tests.pipeline.audit.rigs import Left
from tests.pipeline.audit.summaries import NOW_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = "keys-agree"


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Compacted:
    return compact(tmp_path_factory.mktemp("compacted") / "rig")


@pytest.fixture
def mixed(compacted: Compacted, tmp_path: Path) -> Left:
    """Broker 2 was not cleaned, to be damaged."""
    return compacted.mixed(tmp_path / "mixed")


def options(left: Left, **more: object) -> AuditOptions:
    made = AuditOptions(directory=str(left.place / "data"), now_ms=time.time_ns() // 1_000_000)
    return replace(made, **more)  # type: ignore[arg-type]  # fields, as the tests say


def of_rule(found: AuditResult) -> list[tuple[object, ...]]:
    rows = found.violations.to_pylist()
    names = ("topic", "broker", "other_broker", "offset", "message", "explanation")
    return sorted(tuple(row[name] for name in names) for row in rows if row["rule"] == RULE)


def without_batch(path: Path, number: int) -> None:
    position, header = damage.batches(path)[number]
    data = path.read_bytes()
    path.write_bytes(data[:position] + data[position + header.size :])


def told(key: int, offset: int, what: str) -> str:
    return f"the newest value of key 'key {key}', at offset {offset}, {what}"


def damaged(left: Left) -> list[tuple[object, ...]]:
    """Lose two values on broker 3, and let one be another on broker 1; their findings."""
    damage.falsify(left.segments(1, "plain")[0], 0)
    without_batch(left.segments(3, "deleted")[0], 1)
    lost = "is on brokers 1 and 2 and not on broker 3"
    other = "is another on broker 1 than on brokers 2 and 3"
    return [
        ("deleted", 3, 1, 24, told(3, 24, lost), None),
        ("deleted", 3, 1, 26, told(5, 26, lost), None),
        ("plain", 1, 2, 83, told(2, 83, other), None),
    ]


# -- directories ----------------------------------------------------------------------------------


def test_a_cleaner_was_on_some_brokers(mixed: Left) -> None:
    for topic in ("plain", "deleted", "transactional"):
        first, second = (mixed.segments(broker, topic) for broker in (1, 2))
        counts = [
            sum(header.record_count for path in each for _, header in damage.batches(path))
            for each in (first, second)
        ]
        assert counts[0] < counts[1] / 2


@pytest.mark.parametrize("which", ["before", "after", "mixed"])
def test_nothing_is_told_wherever_cleaners_were(
    spark: SparkSession, compacted: Compacted, mixed: Left, which: str
) -> None:
    left = {"before": compacted.before, "after": compacted.after, "mixed": mixed}[which]
    found = audit(spark, options(left))
    assert found.violations.num_rows == 0
    assert found.failures == ()
    assert left.audit() == []


def test_a_value_that_is_lost_or_another_on_one_broker_is_told_with_its_key(
    spark: SparkSession, mixed: Left
) -> None:
    expected = damaged(mixed)
    found = audit(spark, options(mixed))
    assert of_rule(found) == expected
    names = ("topic", "broker", "other_broker", "offset", "message", "explanation")
    alone = [each for each in mixed.audit() if each.rule == RULE]
    assert sorted(tuple(getattr(each, name) for name in names) for each in alone) == expected


def test_an_audit_with_a_state_tells_what_a_full_one_tells(
    spark: SparkSession, mixed: Left, tmp_path: Path
) -> None:
    with_state = options(mixed, state=str(tmp_path / "state"))
    assert of_rule(audit(spark, with_state)) == []
    expected = damaged(mixed)
    for _ in range(2):
        found = audit(spark, with_state)
        assert of_rule(found) == expected
        assert found.extent is not None
        assert found.extent.trusted > 0


def test_headers_alone_are_read_no_more_than_before(
    spark: SparkSession, mixed: Left, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(mixed)
    for more, shares in (({}, 3), ({"level": Level.BATCHES}, 0), ({"rules": ("torn-tail",)}, 0)):
        listing = list_logs(spark, options(mixed, **more))
        # The internal topics have one replica, or nothing was written to them.
        assert listing.count(KeyShare) >= shares > 0 or listing.count(KeyShare) == shares
        listing.unpersist()
    assert run(["audit", str(mixed.place / "data"), "--level", "batches", "--rule", RULE]) == 0
    assert "needs --level records" in capsys.readouterr().out


# -- judged ---------------------------------------------------------------------------------------


def difference(holder: int, other: int, offset: int = 4, **more: object) -> KeyDifference:
    made = KeyDifference(
        holder=holder,
        other=other,
        offset=offset,
        time_ms=NOW_MS - 3 * 86_400_000,
        key="'a'",
        is_there=False,
    )
    return replace(made, **more)  # type: ignore[arg-type]  # fields, as the tests say


CLEANED = (batch(0, 4, count=2), batch(8, 9))


def judge(
    *found: KeyDifference,
    rows: tuple[Row, ...] = CLEANED,
    replicas: tuple[ReplicaMetadata, ...] = (),
    more: int = 0,
) -> list[Violation]:
    """What is made of differences of three replicas that a cleaner was over."""
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        metadata=PartitionMetadata(
            replicas=replicas or tuple(map(replica, (1, 2, 3))),
            compacted=True,
            key_differences=KeyDifferences(found=found, more=more),
        ),
        batches=pa.Table.from_pylist(
            [row for broker in (1, 2, 3) for row in of_broker(broker, *rows)], schema=BATCHES
        ),
        now_ms=NOW_MS,
        traces=None,
    )
    return list(RULES[RULE].check(evidence))


def test_what_two_brokers_have_a_third_has_lost() -> None:
    (found,) = judge(difference(1, 3), difference(2, 3))
    assert (found.broker, found.other_broker, found.offset) == (3, 1, 4)
    assert found.explanation is None


def test_what_one_alone_has_may_have_been_deleted_while_it_was_away() -> None:
    (found,) = judge(difference(1, 3))
    assert found.explanation == (
        "a tombstone of the key may have been behind it, and have gone before broker 1 fetched it, "
        "if that was away for so long"
    )


def test_no_tombstone_has_gone_since_what_was_written_just_now() -> None:
    (found,) = judge(difference(1, 3, time_ms=NOW_MS - 1000))
    assert found.explanation is None


def test_no_tombstone_was_behind_it_where_all_is_there() -> None:
    rows = tuple(batch(base, base + 1) for base in range(0, 10, 2))
    (found,) = judge(difference(1, 3), rows=rows)
    assert found.explanation is None


def test_a_cleaner_may_be_at_work_while_its_broker_runs() -> None:
    running = (replica(1), replica(2), replica(3, clean=False))
    (found,) = judge(difference(1, 3), difference(2, 3), replicas=running)
    assert found.explanation is not None
    assert found.explanation.startswith("broker 3 has not ended in order: ")


def test_another_value_is_never_explained_and_the_odd_one_is_named() -> None:
    pairs = difference(1, 2, is_there=True), difference(2, 3, is_there=True)
    (found,) = judge(*pairs)
    assert (found.broker, found.other_broker, found.explanation) == (2, 1, None)
    assert found.message == (
        "the newest value of key 'a', at offset 4, is another on broker 2 than on brokers 1 and 3"
    )


DAMAGED: Row = {"place": "log", "broker": 1, "segment": 0, "position": 500, "size": 500}


@pytest.mark.parametrize(
    "changed",
    [
        lambda: judge(difference(1, 3), replicas=(replica(1), replica(2), replica(3, log_start=5))),
        lambda: judge(difference(1, 3), rows=(*CLEANED, DAMAGED | {"problem": "crc"})),
        lambda: judge(difference(1, 3, offset=11)),
    ],
    ids=["deleted", "damaged", "behind the end"],
)
def test_nothing_is_said_of_what_a_replica_need_not_have(
    changed: Callable[[], list[Violation]],
) -> None:
    assert changed() == []


def test_what_is_not_listed_is_counted_beside_what_nothing_explains() -> None:
    assert len(judge(difference(1, 3), more=7)) == 1
    *_, last = judge(difference(1, 3), difference(2, 3), more=7)
    assert last.message == "7 more values of keys are not the same in all replicas"
