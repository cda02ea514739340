"""Logs of a real Kafka have no violations, killed or not; damage to them is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.pipeline.audit import partition_metadata
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from tests.harness.kafka_writes import KafkaWrites
from tests.pipeline.audit import damage
from tests.pipeline.audit.rigs import LOG_RULES, followed


def audit(folder: Path) -> list[Violation]:
    rows = scan_folder(folder, checks=Checks.RECORDS)
    known = partition_metadata.read_partition_metadata(folder, with_coordinators=True)
    return followed(rows, None, known, LOG_RULES)


def test_nothing_is_found(kafka_wrote: KafkaWrites) -> None:
    for wrote in (kafka_wrote.killed, kafka_wrote.stopped):
        known = partition_metadata.read_partition_metadata(wrote.folder)
        assert {topic for topic, _ in known} >= {"plain", "compacted", "transactions"}
        assert [each for each in audit(wrote.folder) if each.explanation is None] == []
    assert audit(kafka_wrote.stopped.folder) == []


def test_who_is_compacted(kafka_wrote: KafkaWrites) -> None:
    known = partition_metadata.read_partition_metadata(kafka_wrote.stopped.folder)
    compacted = {topic for (topic, _), each in known.items() if each.compacted}
    assert compacted == {"compacted", "__consumer_offsets", "__transaction_state"}


@pytest.mark.parametrize("topic", ["plain", "transactions", "compacted"])
def test_a_flipped_bit(kafka_wrote: KafkaWrites, tmp_path: Path, topic: str) -> None:
    folder = kafka_wrote.stopped.copy(tmp_path / "copy")
    path = next(
        each for each in sorted((folder / f"{topic}-0").glob("*.log")) if each.stat().st_size
    )
    damage.flip_in(path, 0)
    found = audit(folder)
    assert {each.rule for each in found} <= {"crc-and-structure", "true-indexes"}
    assert [each.explanation for each in found if each.rule == "crc-and-structure"] == [None]


def test_a_lost_segment(kafka_wrote: KafkaWrites, tmp_path: Path) -> None:
    folder = kafka_wrote.stopped.copy(tmp_path / "copy")
    segments = sorted((folder / "plain-0").glob("*.log"))
    assert len(segments) > 2
    damage.lose_segment(segments[1])
    (found,) = audit(folder)
    assert (found.rule, found.offset) == ("contiguous-offsets", int(segments[1].stem))
    assert found.end_offset == int(segments[2].stem)
