"""The ids in partition.metadata: a wrong one is told from a topic that was created again."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.storage.formats.checkpoints import encode_partition_metadata
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import fill
from tests.pipeline.audit.log_rows import Row, batch, copied, of_broker, replica
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, rig, unexplained
from tests.pipeline.audit.summaries import NOW_MS

RULE = "one-topic-id"
OTHER = encode_partition_metadata(UUID(int=7))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Left:
    with rig(tmp_path_factory.mktemp("rig") / "rig") as made:
        made.create("plain", **SMALL)
        fill(made, "plain", 1)
        made.produce("plain", 6)
        made.create("tiered", **TIERED)
        fill(made, "tiered", 1)
        made.about("tiered", "tier", action="upload")
        made.about("tiered", "tier", action="delete-local")
        made.produce("tiered", 3)
        made.stop()
        return made.left("left")


@pytest.mark.parametrize("topic", ["plain", "tiered"])
def test_an_id_that_is_wrong(stopped: Left, tmp_path: Path, topic: str) -> None:
    left = stopped.copy(tmp_path / "left")
    (left.log(2, topic) / "partition.metadata").write_bytes(OTHER)
    (found,) = left.audit()
    assert (found.rule, found.topic, found.broker, found.explanation) == (RULE, topic, 2, None)
    assert "AAAAAAAAAAAAAAAAAAAABw" in found.message


def test_what_has_a_wrong_id_is_compared_all_the_same(stopped: Left, tmp_path: Path) -> None:
    left = stopped.copy(tmp_path / "left")
    (left.log(2, "plain") / "partition.metadata").write_bytes(OTHER)
    header = damage.falsify(left.segments(2, "plain")[0], 4)
    found = unexplained(left.audit("plain"))
    assert {(each.rule, each.offset) for each in found} == {
        (RULE, None),
        ("replicas-agree", header.base_offset),
    }


def test_brokers_that_make_ids_up(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "topic_ids_made_up") as made:
        made.create("t", **SMALL)
        made.produce("t", 6)
        made.stop()
        left = made.left("left")
    found = left.audit("t")
    assert [(each.rule, each.explanation) for each in found] == [(RULE, None)] * 2


# -- what it makes of rows ------------------------------------------------------------------------


def judge(
    rows: list[Row], *replicas: ReplicaMetadata, rule: str = RULE, with_tier: bool = False
) -> list[Violation]:
    metadata = PartitionMetadata(
        replicas=replicas, tier=(copied("s", 0, 4),) if with_tier else (), with_tier=with_tier
    )
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        now_ms=NOW_MS,
        metadata=metadata,
        batches=pa.Table.from_pylist(rows, schema=BATCHES),
        traces=None,
    )
    return list(RULES[rule].check(evidence))


ONE, TWO, THREE = replica(1), replica(2), replica(3, topic_id="b")
SAME = [batch(0, 4), batch(5, 9)]


def test_all_say_the_same() -> None:
    rows = [*SAME, *of_broker(2, *SAME)]
    assert judge(rows, ONE, TWO) == []
    assert judge(rows, ONE, replica(2, topic_id=None)) == []
    assert judge([], replica(topic_id=None)) == []


@pytest.mark.parametrize(
    ("batches", "is_wrong"),
    [
        (SAME, True),
        ([batch(5, 9)], True),
        ([batch(0, 4), batch(5, 9, crc=7)], True),
        ([batch(0, 4, crc=7), batch(5, 9, crc=8)], False),
        ([batch(0, 4, 1)], False),
        ([batch(10, 14)], False),
        ([], False),
    ],
)
def test_a_batch_in_common_tells(batches: list[Row], is_wrong: bool) -> None:
    rows = [*SAME, *of_broker(2, *SAME), *of_broker(3, *batches)]
    (found,) = judge(rows, ONE, TWO, THREE)
    assert (found.broker, found.explanation is None) == (3, is_wrong)


def test_of_two_either_may_be_right() -> None:
    (found,) = judge([*SAME, *of_broker(3, *SAME)], ONE, THREE)
    assert (found.broker, found.explanation) == (3, None)
    assert "topic id b, other replicas with the same batches say a" in found.message


def test_logs_of_two_incarnations_are_not_compared() -> None:
    other = [batch(0, 4, crc=7)]
    rows = [*SAME, *of_broker(3, *other)]
    assert judge(rows, ONE, THREE, rule="replicas-agree") == []
    rows = [*SAME, *of_broker(3, *other, batch(5, 9))]
    (found,) = judge(rows, ONE, THREE, rule="replicas-agree")
    assert (found.offset, found.end_offset) == (0, 5)


def test_the_tier_of_either_id_is_of_both() -> None:
    rows = [batch(5, 9, segment=5), *of_broker(3, batch(5, 9, segment=5))]
    one, three = replica(1, segments=(5,)), replica(3, segments=(5,), topic_id="b")
    lost = judge(rows, one, three, rule="tier-and-log", with_tier=True)
    assert {each.broker for each in lost if "neither" in each.message} == {1, 3}
