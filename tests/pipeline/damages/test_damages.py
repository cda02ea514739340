"""Each damage to what fencepost wrote is one incident that names the cause, and nothing else is.

``make test-damages`` does the same to what a real Kafka wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from fencepost.pipeline.audit.condensed.window_rows import WINDOWS
from fencepost.pipeline.audit.condensed.window_scan import scan_folder_windows
from fencepost.pipeline.audit.incidents import offsets_text
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from tests.pipeline.damages.__main__ import PAGE, with_table
from tests.pipeline.damages.catalogue import DAMAGES
from tests.pipeline.damages.model import Target
from tests.pipeline.damages.outcome import (
    HEALTHY,
    incidents,
    kept_rows,
    outcomes,
    results,
    topics,
)
from tests.pipeline.damages.written import Written, fencepost_writes


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with fencepost_writes(tmp_path_factory.mktemp("written"), topics()) as made:
        yield made


def test_every_damage_is_one_incident_that_names_its_cause(
    written: Written, tmp_path: Path
) -> None:
    found = outcomes(written, tmp_path / "damaged")
    assert [each for each in found if not each.right] == []
    assert len(found) > len(HEALTHY) + len(DAMAGES)


def test_windows_tell_what_batches_tell_of_every_damage(written: Written, tmp_path: Path) -> None:
    copy = written.copy(tmp_path / "damaged")
    for each in DAMAGES:
        for count in each.replicas:
            each.do(Target(written=copy, topic=f"{each.name}-{count}"))
    windows = scan_folder_windows(copy.folder, checks=Checks.RECORDS)
    assert windows["batches"].null_count < windows.num_rows
    found = list(results(copy, windows))
    assert found == list(results(copy, scan_folder(copy.folder, checks=Checks.RECORDS)))


def test_an_audit_of_what_has_changed_tells_what_one_of_everything_tells(
    written: Written, tmp_path: Path
) -> None:
    copy = written.copy(tmp_path / "damaged")
    before, first = kept_rows(copy)
    for each in DAMAGES:
        for count in each.replicas:
            each.do(Target(written=copy, topic=f"{each.name}-{count}"))
    after, second = kept_rows(copy, before)
    assert first.trusted == 0
    assert second.trusted > second.read > len(DAMAGES)
    rows = after.filter(pc.is_null(after["summary"])).select(WINDOWS.names)
    found = list(results(copy, rows))
    assert found == list(results(copy, scan_folder(copy.folder, checks=Checks.RECORDS)))


def test_an_incident_counts_its_consequences_and_says_what_can_be_done(
    written: Written, tmp_path: Path
) -> None:
    copy = written.copy(tmp_path / "damaged")
    names = {each.name: each for each in DAMAGES}
    for replicas in (1, 3):
        topic = f"cut-closed-segment-{replicas}"
        names["cut-closed-segment"].do(Target(written=copy, topic=topic))
    found = incidents(copy)
    (alone,), (beside_others,) = (found[f"cut-closed-segment-{count}"] for count in (1, 3))
    consequences = {each.rule: each.findings for each in alone.consequences}
    assert consequences["contiguous-offsets"] == 1
    assert consequences["true-indexes"] > 1
    assert alone.findings == 1 + sum(consequences.values())
    assert (alone.lost, offsets_text(alone.lost)) == (((15, 24),), "offsets 15 to 23")
    assert alone.remedy.startswith("no copy has offsets 15 to 23: ")
    assert beside_others.lost == ()
    assert beside_others.remedy == (
        "broker 2 and broker 3 have offsets 15 to 23: stop broker 1, delete its directory "
        "cut-closed-segment-3-0, and start it, so that it copies the partition again"
    )


def test_damages_far_apart_are_incidents_of_their_own(written: Written, tmp_path: Path) -> None:
    copy = written.copy(tmp_path / "damaged")
    names = {each.name: each for each in DAMAGES}
    for name in ("flipped-record", "index-of-zeros", "torn-tail"):
        names[name].do(Target(written=copy, topic="healthy-3"))
    found = incidents(copy)["healthy-3"]
    assert [each.rule for each in found] == ["crc-and-structure", "torn-tail", "true-indexes"]
    assert [each.number for each in found] == [0, 1, 2]


def test_the_page_has_the_table_of_damages() -> None:
    page = PAGE.read_text()
    assert with_table(page) == page, "python -m tests.pipeline.damages --write-table"


def test_names_of_damages_differ() -> None:
    assert [
        name for name, count in Counter(each.name for each in DAMAGES).items() if count > 1
    ] == []
