"""Files that are on their way in or out: what a restart makes of them, and what they hide."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import fill
from tests.pipeline.audit.log_rows import Row, batch, replica
from tests.pipeline.audit.rigs import SMALL, Left, rig, unexplained
from tests.pipeline.audit.summaries import NOW_MS

RULE: Final = "leftover-files"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Left:
    with rig(tmp_path_factory.mktemp("rig") / "rig") as made:
        made.create("plain", 1, **SMALL)
        fill(made, "plain", 2)
        made.produce("plain", 3)
        made.stop()
        return made.left("left")


def of_rule(found: list[Violation]) -> list[Violation]:
    return [each for each in found if each.rule == RULE]


def add_suffix(path: Path, suffix: str) -> None:
    path.with_name(f"{path.name}{suffix}").write_bytes(path.read_bytes())


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned"])
def test_what_a_restart_removes(stopped: Left, tmp_path: Path, suffix: str) -> None:
    left = stopped.copy(tmp_path / "left")
    for path in left.log(1, "plain").glob(f"{30:020d}.*"):
        add_suffix(path, suffix)
    (found,) = left.audit("plain")
    assert (found.rule, found.broker, found.segment) == (RULE, 1, 30)
    assert suffix in found.message
    assert "a broker that starts removes them" in (found.explanation or "")


def test_what_a_broker_that_ended_in_order_had_put_into_place(
    stopped: Left, tmp_path: Path
) -> None:
    left = stopped.copy(tmp_path / "left")
    add_suffix(left.segments(1, "plain")[0], ".swap")
    (found,) = left.audit("plain")
    assert (found.rule, found.segment, found.explanation) == (RULE, 0, None)
    (left.log(1, "plain").parent / ".kafka_cleanshutdown").unlink()
    (found,) = left.audit("plain")
    assert found.explanation == "a broker that starts puts them into place"


def test_a_swap_that_hides_records(stopped: Left, tmp_path: Path) -> None:
    left = stopped.copy(tmp_path / "left")
    segment = left.segments(1, "plain")[0]
    add_suffix(segment, ".swap")
    header = damage.cut_last(segment.with_name(f"{segment.name}.swap"))
    (left.log(1, "plain").parent / ".kafka_cleanshutdown").unlink()
    (found,) = unexplained(of_rule(left.audit("plain")))
    assert (found.offset, found.end_offset) == (header.base_offset, 30)


def test_a_broker_that_leaves_swaps(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "swaps_not_finished") as made:
        made.create("t", 1, cleanup_policy="compact", **SMALL)
        fill(made, "t", 2, keys=4)
        made.about("t", "compact")
        made.stop()
        left = made.left("left")
    assert list(left.log(1, "t").glob("*.swap"))
    assert {each.rule for each in unexplained(left.audit("t"))} == {RULE}


# -- what it makes of names -----------------------------------------------------------------------


def judge(known: ReplicaMetadata, *rows: Row, compacted: bool = False) -> list[Violation]:
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        now_ms=NOW_MS,
        metadata=PartitionMetadata(replicas=(known,), compacted=compacted),
        batches=pa.Table.from_pylist(list(rows), schema=BATCHES),
        traces=None,
    )
    return list(RULES[RULE].check(evidence))


def names(*short: str) -> tuple[str, ...]:
    return tuple(
        f"{int(offset):020d}.{rest}" for offset, _, rest in (each.partition(".") for each in short)
    )


def test_nothing_is_left_over() -> None:
    assert judge(replica()) == []


def test_swaps_behind_one_that_is_not_finished() -> None:
    left = names("0.log.swap", "10.log.cleaned", "10.log.swap", "20.index.swap")
    found = judge(replica(clean=False, leftovers=left))
    assert [each.offset for each in found] == [10, 0, 10]
    cleaned, finished, dropped = [each.explanation or "" for each in found]
    assert "removes them" in cleaned
    assert "into place" in finished
    assert "removes them, as compaction had not written all" in dropped
    found = judge(replica(leftovers=left))
    assert [each.explanation is None for each in found] == [False, True, True]


@pytest.mark.parametrize(
    ("rows", "compacted", "expected"),
    [
        ([batch(0, 4), batch(5, 9)], False, []),
        ([batch(0, 4)], False, [(5, 10)]),
        ([batch(5, 9)], False, [(0, 5)]),
        ([], False, [(0, 10)]),
        ([batch(0, 4)], True, []),
        ([batch(0, 4, count=2)], False, []),
    ],
)
def test_what_is_hidden(rows: list[Row], compacted: bool, expected: list[tuple[int, int]]) -> None:
    known = replica(clean=False, leftovers=names("0.log.swap"), replaced=((0, 10),))
    found = judge(known, *rows, compacted=compacted)
    hidden = [(each.offset, each.end_offset) for each in found if each.explanation is None]
    assert hidden == expected
