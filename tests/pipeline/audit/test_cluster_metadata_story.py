"""What cluster metadata explain without a trace: the same of a real Kafka and of fencepost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fencepost.pipeline.audit.cluster_metadata import ClusterMetadata
from fencepost.pipeline.audit.lineage.description import describe
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.metadata_sources import read_cluster_metadata
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.datasource.log_directories import find_log_dirs
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.storage.formats.checkpoints import decode_offsets, encode_offsets
from tests.harness import records
from tests.pipeline.audit.metadata_stories import Told, told_to_fencepost, told_to_kafka
from tests.pipeline.audit.rigs import LOG_RULES, followed

_LOST: Final = "10 records of epoch 0, committed by"
STORIES: Final = {"kafka": told_to_kafka, "fencepost": told_to_fencepost}


@pytest.fixture(scope="module", params=STORIES)
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with STORIES[request.param](tmp_path_factory.mktemp(request.param)) as left:
        yield left


@pytest.fixture
def metadata(told: Told) -> ClusterMetadata:
    return read_cluster_metadata(find_log_dirs(told.folder))


def audit(folder: Path, *topics: str) -> list[Violation]:
    rows = scan_folder(folder, topics=topics or None, checks=Checks.RECORDS)
    known = read_partition_metadata(folder, topics=topics)
    return followed(rows, None, known, LOG_RULES)


def lineages(folder: Path, topic: str) -> tuple[PartitionLineage, ...]:
    rows = scan_folder(folder, topics=(topic,))
    known = read_partition_metadata(folder, topics=(topic,))
    (result,) = check_partitions(rows, None, known, now_ms=0)
    return result.summary.lineages


def test_all_is_known_from_the_beginning(told: Told, metadata: ClusterMetadata) -> None:
    source = metadata.reading.source
    assert source is not None
    assert (source.start, metadata.reading.problems) == (0, ())
    assert metadata.brokers.keys() == {1, 2, 3}
    assert metadata.topics.keys() == {told.lost, told.kept, told.moved, told.gone}
    assert metadata.topic_configs[told.lost] == {"retention.ms": "-1"}


def test_the_ids_are_those_of_the_directories(told: Told, metadata: ClusterMetadata) -> None:
    known = read_partition_metadata(told.folder)
    for topic in (told.lost, told.kept, told.gone):
        (found,) = metadata.partition(topic, 0).incarnations
        assert {each.topic_id for each in known[topic, 0].replicas} == {found.topic_id}


def test_the_elections(told: Told, metadata: ClusterMetadata) -> None:
    (lost,) = metadata.partition(told.lost, 0).incarnations
    assert [(e.leader, e.leader_epoch, e.is_unclean) for e in lost.elections] == [
        (told.first, 0, False),
        (-1, 1, False),
        (told.late, 2, True),
    ]
    for topic in (told.kept, told.moved):
        (found,) = metadata.partition(topic, 0).incarnations
        assert {each.is_unclean for each in found.elections} == {False}
        assert found.last.leader == told.bystander


def test_the_reassignment_and_the_deletion(told: Told, metadata: ClusterMetadata) -> None:
    (moved,) = metadata.partition(told.moved, 0).incarnations
    old, now = {told.first, told.bystander}, {told.bystander, told.late}
    assert [set(each.replicas) for each in moved.assignments] == [old, old | now, now]
    assert moved.assignments[1].adding == (told.late,)
    assert moved.assignments[1].removing == (told.first,)
    (gone,) = metadata.partition(told.gone, 0).incarnations
    assert gone.created is not None
    assert gone.deleted is not None
    assert gone.created < gone.deleted


def test_an_unclean_election_explains_what_is_lost(told: Told) -> None:
    (found,) = audit(told.folder)
    assert (found.rule, found.topic, found.offset) == ("replicas-agree", told.lost, 10)
    assert f"below the high watermark of broker {told.first} (20)" in found.message
    assert found.explanation == (
        "the cluster metadata say that the election of leader epoch 2 was unclean, leader "
        f"{told.late}"
    )


def test_the_lineage_of_what_is_lost(told: Told) -> None:
    """KIP-320: who parts where, what is lost, and what a client and a follower would be told."""
    (lineage,) = lineages(told.folder, told.lost)
    first, late = f"broker {told.first}", f"broker {told.late}"
    parted = f"{first} (epoch 0) and {late} (epoch 2) part at offset 10"
    # What `late` has committed it may not have written down when it ended.
    unwritten = re.compile(rf"(?<=leads); high watermark \d+|, committed.* by {late}$")
    assert [unwritten.sub("", line) for line in describe(lineage)] == [
        f"{first}: epoch 0 from 0 to 19; high watermark 20",
        f"{late}: epoch 0 from 0 to 9, epoch 2 from 10 to 24; leads",
        f"{parted}; their common ancestor is offset 9 of epoch 0",
        f"{first} alone has offsets 10 to 19, which {late} does not have: {_LOST} {first}",
        f"{late} alone has offsets 10 to 24, which {first} does not have: 15 records of epoch 2",
        f"{first} would truncate to 10 as follower of {late}, and lose 10 records",
        f"{late} answers OffsetForLeaderEpoch of epoch 0: epoch 0 ends at 10",
    ]


def test_a_replica_that_is_behind_parts_from_none(told: Told) -> None:
    (lineage,) = lineages(told.folder, told.kept)
    assert not lineage.parts


def test_where_all_elections_were_clean_it_is_a_violation(told: Told, tmp_path: Path) -> None:
    """As if ``first`` had committed more of ``kept`` than its successor had."""
    folder = shutil.copytree(told.folder, tmp_path / "copy")
    (log_dir,) = [each.path for each in find_log_dirs(folder) if each.broker == told.first]
    with (log_dir / f"{told.kept}-0" / f"{0:020d}.log").open("ab") as log:
        log.write(records.batch(b"a", b"b", b"c", base_offset=10, leader_epoch=0))
    checkpoint = log_dir / "replication-offset-checkpoint"
    known = decode_offsets(checkpoint.read_bytes())
    checkpoint.write_bytes(encode_offsets({**known, (told.kept, 0): 13}))
    found = [each for each in audit(folder, told.kept) if each.rule == "replicas-agree"]
    assert found
    for each in found:
        assert "batches of leader epochs" in each.message
        assert f"below the high watermark of broker {told.first} (13)" in each.message
        assert each.explanation is None


def test_without_metadata_it_may_have_been_an_unclean_election(told: Told, tmp_path: Path) -> None:
    folder = shutil.copytree(told.folder, tmp_path / "copy")
    for path in (*folder.rglob("__cluster_metadata-0"), *folder.rglob("registry.log")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (found,) = audit(folder)
    assert found.explanation == (
        "an unclean election of leader epoch 2 explains it, and there is no trace that tells of "
        "another reason"
    )


def test_directories_that_are_gone(told: Told, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(told.folder, tmp_path / "copy"))
    paths = {each.broker: each.path for each in find_log_dirs(folder)}
    for topic, broker in (
        (told.lost, told.late),  # it leads
        (told.kept, told.first),  # not in sync
        (told.gone, told.first),  # deleted
        (told.moved, told.bystander),
        (told.moved, told.late),
    ):
        shutil.rmtree(paths[broker] / f"{topic}-0")
    shutil.rmtree(paths[told.first] / f"{told.moved}-0", ignore_errors=True)  # reassigned
    found = [each for each in audit(folder) if each.rule == "assigned-replicas"]
    assert {(each.topic, each.broker, each.explanation) for each in found} == {
        (told.lost, told.late, None),
        (
            told.kept,
            told.first,
            f"broker {told.first} is not in sync, and makes the directory when it starts",
        ),
        (told.moved, told.bystander, None),
        (told.moved, told.late, None),
    }
    assert audit(folder, told.gone) == []


def test_a_broker_whose_directories_are_not_all_there_lacks_nothing(
    told: Told, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(told.folder, tmp_path / "copy"))
    paths = {each.broker: each.path for each in find_log_dirs(folder)}
    shutil.rmtree(paths[told.late])
    assert {each.broker for each in audit(folder)} <= {told.first, told.bystander}
