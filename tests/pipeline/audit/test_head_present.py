"""The head of a log: what retention took is told from what is lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fencepost.pipeline.audit import partition_metadata
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    Violation,
)
from fencepost.pipeline.audit.rules import head_present
from fencepost.pipeline.datasource.schemas import BATCHES
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import delete_records, fill
from tests.pipeline.audit.log_rows import Row, batch, copied, of_broker, replica
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, rig, unexplained
from tests.pipeline.audit.summaries import NOW_MS

RULE = "head-present"
assert head_present.NAME == RULE


def judge(
    rows: list[Row],
    *replicas: ReplicaMetadata,
    tiered: bool | None = False,
    never_expires: bool = False,
) -> list[Violation]:
    metadata = PartitionMetadata(replicas=replicas, tiered=tiered, never_expires=never_expires)
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        now_ms=NOW_MS,
        metadata=metadata,
        batches=pa.Table.from_pylist(rows, schema=BATCHES),
        traces=None,
    )
    return list(head_present.check(evidence))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Segments at 0, 30 and 60; of ``expired`` the first two are deleted, by request or tiered."""
    with rig(tmp_path_factory.mktemp("rig") / "rig") as made:
        for topic in ("plain", "expired"):
            made.create(topic, **SMALL)
            fill(made, topic, 2)
            made.produce(topic, 3)
        delete_records(made, "expired", 60)
        made.create("tiered", **TIERED)
        fill(made, "tiered", 2)
        made.about("tiered", "tier", action="upload")
        made.about("tiered", "tier", action="delete-local")
        made.produce("tiered", 3)
        made.stop()
        return made.left("left")


def test_nothing_is_found_where_the_head_is_deleted_or_tiered(stopped: Left) -> None:
    assert stopped.segments(1, "expired")[0].stem == f"{60:020d}"
    assert stopped.segments(1, "tiered")[0].stem == f"{60:020d}"
    assert stopped.audit() == []
    known = partition_metadata.read_partition_metadata(stopped.place / "data")
    assert all(each.epochs_cut_first for of_one in known.values() for each in of_one.replicas)


def test_tiered_segments_are_not_missed_where_the_tier_is_not_read(
    stopped: Left, tmp_path: Path
) -> None:
    left = stopped.copy(tmp_path / "left")
    shutil.rmtree(left.place / "tier")
    assert left.audit() == []


def test_a_lost_head(stopped: Left, tmp_path: Path) -> None:
    left = stopped.copy(tmp_path / "left")
    damage.lose_segment(left.segments(2, "plain")[0])
    (found,) = left.audit("plain")
    assert (found.rule, found.broker, found.explanation) == (RULE, 2, None)
    assert (found.offset, found.end_offset, found.segment) == (0, 30, 30)
    assert "broker 1 and broker 3 have" in found.message
    for broker in (1, 3):
        damage.lose_segment(left.segments(broker, "plain")[0])
    found_now = unexplained(left.audit("plain"))
    assert [(each.rule, each.broker) for each in found_now] == [(RULE, 1), (RULE, 2), (RULE, 3)]
    assert all(" have " not in each.message for each in found_now)


def test_a_lost_head_behind_a_log_start(stopped: Left, tmp_path: Path) -> None:
    """All of the segments are gone that there were: what was deleted is not missed."""
    left = stopped.copy(tmp_path / "left")
    (segment,) = left.segments(3, "expired")
    for path in segment.parent.glob(f"{segment.stem}.*"):
        path.rename(path.with_name(path.name.replace(f"{60:020d}", f"{63:020d}")))
    found = [each for each in left.audit("expired") if each.rule == RULE]
    assert [(each.offset, each.end_offset, each.explanation) for each in found] == [(60, 63, None)]


def test_a_broker_that_records_no_log_start(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "log_start_not_recorded") as made:
        made.create("t", 1, **SMALL)
        fill(made, "t", 2)
        made.produce("t", 3)
        delete_records(made, "t", 60)
        made.stop()
        left = made.left("left")
    (found,) = unexplained(left.audit("t"))
    assert (found.rule, found.offset, found.end_offset) == (RULE, 0, 60)


# -- what it makes of rows ------------------------------------------------------------------------

ROWS = [batch(30, 34, segment=30)]


@pytest.mark.parametrize(
    ("epochs", "log_start", "expected"),
    [
        (((0, 0),), None, (0, 30)),
        (((0, 30),), None, None),
        (((0, 30),), 12, None),
        (((0, 0),), 30, None),
        (((0, 0),), 32, None),
        (((0, 7),), 12, (12, 30)),
        ((), None, None),
        (None, None, None),
        (None, 12, (12, 30)),
        (((0, 0),), 99, (0, 30)),
        (((0, 99),), None, None),
    ],
)
def test_what_the_checkpoints_say(
    epochs: tuple[tuple[int, int], ...] | None,
    log_start: int | None,
    expected: tuple[int, int] | None,
) -> None:
    found = judge(ROWS, replica(segments=(30,), epochs=epochs, log_start=log_start))
    spans = [(each.offset, each.end_offset) for each in found]
    assert spans == ([] if expected is None else [expected])


def test_a_log_without_segments_has_no_head() -> None:
    assert judge([], replica(segments=(), log_start=7)) == []


def test_what_explains_it() -> None:
    lost = replica(segments=(30,))
    (crashed,) = judge(ROWS, replace(lost, clean=False))
    assert "lag behind" in (crashed.explanation or "")
    (unknown,) = judge(ROWS, lost, tiered=None)
    assert "tiered" in (unknown.explanation or "")
    (found,) = judge(ROWS, lost)
    assert found.explanation is None
    assert judge(ROWS, lost, tiered=True) == []


@pytest.mark.parametrize(
    ("epochs", "explained"),
    [(((0, 0),), False), (((0, 0), (1, 29)), False), (((0, 0), (1, 35)), True)],
    ids=["no later epoch", "an epoch before it", "a later epoch"],
)
def test_a_kafka_that_was_killed_while_retention_deleted(
    epochs: tuple[tuple[int, int], ...], explained: bool
) -> None:
    """And then started: it begins a leader epoch where it leads."""
    killed = replica(segments=(30,), epochs=epochs)
    (found,) = judge(ROWS, killed)
    assert (found.explanation is not None) == explained
    (found,) = judge(ROWS, killed, never_expires=True)
    assert found.explanation is None
    (found,) = judge(ROWS, replace(killed, epochs_cut_first=True))
    assert found.explanation is None


def test_what_other_replicas_tell_of_a_kafka_that_was_killed() -> None:
    killed = replica(segments=(30,), epochs=((0, 0), (1, 35)))
    rows = [*ROWS, *of_broker(2, batch(0, 29), batch(30, 34))]
    (found,) = judge(rows, killed, replica(2))
    assert found.explanation is None
    follower = replace(killed, epochs=((0, 0),))
    rows = [*ROWS, *of_broker(2, batch(40, 44, segment=40))]
    leader = replica(2, segments=(40,), epochs=((0, 40),))
    (found,) = judge(rows, follower, leader)
    assert found.explanation == "they are deleted, the log of broker 2 starts at 40"


def test_segments_in_the_tier_tell_that_a_topic_is_tiered() -> None:
    metadata = PartitionMetadata(
        replicas=(replica(segments=(30,)),), tier=(copied("s", 0, 29),), with_tier=True
    )
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        now_ms=NOW_MS,
        metadata=metadata,
        batches=pa.Table.from_pylist(ROWS, schema=BATCHES),
        traces=None,
    )
    assert list(head_present.check(evidence)) == []


def test_who_has_what_is_between() -> None:
    rows = [*ROWS, *of_broker(2, batch(0, 29), batch(30, 34)), *of_broker(3, batch(20, 34))]
    whole, half = replica(2), replica(3, segments=(20,), epochs=((0, 20),))
    (found,) = judge(rows, replica(segments=(30,)), whole, half)
    assert found.message.endswith("; broker 2 has what is between")
