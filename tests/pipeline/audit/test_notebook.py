"""The questions that docs/audit.md answers in a notebook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from docs.generate import ROOT
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import fill
from tests.pipeline.audit.rigs import SMALL, TIERED, Left, Rig, rig
from tests.pipeline.damages.written import Topic, fencepost_writes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = (ROOT / "docs" / "audit.md").read_text()
SCRIPT: Final = re.findall(r"<!-- notebook: questions -->\n```python\n(.*?)```", PAGE, re.DOTALL)[0]
FIRST: Final = 'folder, tier = "kafka", None\n'


def answers(spark: SparkSession, folder: Path, tier: Path | None = None) -> Mapping[str, Any]:
    """The DataFrames that the script makes, by name."""
    assert FIRST in SCRIPT
    where = (str(folder), None if tier is None else tier.as_uri())
    script = SCRIPT.replace(FIRST, "folder, tier = WHERE\n")
    names: dict[str, Any] = {"spark": spark, "WHERE": where}
    exec(compile(script, "audit.md", "exec"), names)
    return names


def test_it_is_short() -> None:
    code = [line for line in SCRIPT.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= 30


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """``tiered`` has two segments in the tier alone; ``split`` parts at offset 12."""
    with rig(tmp_path_factory.mktemp("left")) as made:
        made.create("tiered", **TIERED)
        fill(made, "tiered", 3)
        made.about("tiered", "tier", action="upload")
        made.about("tiered", "tier", action="delete-local")
        made.produce("tiered", 6)
        _part(made)
        made.kill()
        return made.left("killed")


def _part(made: Rig) -> None:
    """Broker 1 has alone what was never committed, and stays away."""
    made.create("split", **SMALL)
    made.produce("split", 12)
    for follower in (2, 3):
        made.about("split", f"replicas/{follower}/hold")
    made.produce("split", 9, acks="1")
    made.tell("brokers/1/kill")
    for follower in (2, 3):
        made.about("split", f"replicas/{follower}/release")
    made.produce("split", 15)


def test_where_replicas_part_and_what_the_tier_alone_has(spark: SparkSession, left: Left) -> None:
    found = answers(spark, left.place / "data", left.place / "tier")
    parted = {(row.broker, row.other_broker, row.parts_at) for row in found["parted"].collect()}
    assert parted == {(1, 2, 12), (1, 3, 12), (2, 1, 12), (3, 1, 12)}
    segments = [(row.topic, row.segment, row.last) for row in found["only_in_tier"].collect()]
    assert sorted(segments) == [("tiered", 0, 29), ("tiered", 30, 59), ("tiered", 60, 89)]
    assert found["duplicated"].count() == 0


def test_who_duplicated_and_what_read_committed_sees(spark: SparkSession, tmp_path: Path) -> None:
    topics = [
        Topic(name="twice", replicas=1),
        Topic(name="transactions", replicas=1, transactional=True),
    ]
    with fencepost_writes(tmp_path, topics) as written:
        log = min((written.log_dir(1) / "twice-0").glob("*.log"))
        damage.write_twice(log)
        found = answers(spark, written.folder)
        (row,) = found["duplicated"].collect()
        assert (row.topic, row.base_sequence, row.offsets) == ("twice", 9, [9, 9])
        seen = found["read_committed"].where("topic = 'transactions'").collect()
    # Batches of three and a marker; every other transaction is aborted.
    committed = [first + number for first in range(0, 56, 8) for number in range(3)]
    assert sorted(row.offset for row in seen) == committed
    assert found["parted"].count() == 0
