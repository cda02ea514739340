"""Which of the metadata in a cluster's directories are read; which are told to be unreadable."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from fencepost.broker.data_dir.metadata_log import encode_line
from fencepost.pipeline.audit.cluster_metadata import ClusterMetadata
from fencepost.pipeline.audit.metadata_sources import read_cluster_metadata
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.datasource.log_directories import find_log_dirs
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.metadata_records import RegisterBrokerRecord
from tests.harness.metadata_logs import batch, batches, node, partition, snapshot, topic

DIR: Final = UUID(int=101)
OTHER_DIR: Final = UUID(int=102)


def read(folder: Path) -> ClusterMetadata:
    return read_cluster_metadata(find_log_dirs(folder))


def topics(*names: str, start: int = 0, epoch: int = 1) -> bytes:
    """A batch for each, that creates it."""
    return b"".join(
        batch(start + place, topic(name, UUID(int=ord(name))), epoch=epoch)
        for place, name in enumerate(names)
    )


def source(metadata: ClusterMetadata) -> tuple[str, int, int]:
    found = metadata.reading.source
    assert found is not None
    return found.path, found.start, found.end


def test_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    metadata = read(tmp_path)
    assert metadata.reading.lines == ("cluster metadata: none",)
    assert not metadata.topics


def test_the_copy_that_goes_furthest(tmp_path: Path) -> None:
    node(tmp_path, 1, log_0=topics("a"))
    furthest = node(tmp_path, 2, log_0=topics("a", "b"), log_2=topics("c", start=2), log_3=b"")
    node(tmp_path, 3, log_0=topics("a", "b") + topics("c", start=2)[:-1])
    node(tmp_path, 4)
    metadata = read(tmp_path)
    assert metadata.topics.keys() == {"a", "b", "c"}
    assert source(metadata) == (str(furthest), 0, 3)
    assert metadata.reading.problems == ()


def test_a_copy_with_more_of_the_history_completes_it(tmp_path: Path) -> None:
    node(tmp_path, 1, log_0=topics("a", "b"), snapshot_1=snapshot(topic("a", UUID(int=97))))
    state = snapshot(topic("a", UUID(int=97)), topic("b", UUID(int=98)))
    node(tmp_path, 2, log_1=topics("b", "c", start=1), snapshot_2=state)
    metadata = read(tmp_path)
    assert source(metadata)[1:] == (0, 3)
    assert metadata.topics["a"][0].created == 0


def test_another_copy_has_what_is_damaged(tmp_path: Path) -> None:
    whole = topics("a", "b", "c")
    size = len(whole) // 3
    damaged = whole[: 2 * size - 1] + b"?" + whole[2 * size :]
    furthest = node(tmp_path, 1, log_0=damaged + topics("d", start=3))
    node(tmp_path, 2, log_0=whole)
    metadata = read(tmp_path)
    assert source(metadata) == (str(furthest), 0, 4)
    assert metadata.topics.keys() == {"a", "b", "c", "d"}
    assert metadata.reading.problems == ()


def test_damage_that_no_copy_has(tmp_path: Path) -> None:
    whole = topics("a", "b", "c")
    damaged = whole[: 2 * len(whole) // 3 - 1] + b"?" + whole[2 * len(whole) // 3 :]
    log = node(tmp_path, 1, log_0=damaged)
    metadata = read(tmp_path)
    assert source(metadata) == (str(log), 0, 1)
    (problem,) = metadata.reading.problems
    assert problem == (
        f"{log} can't be read from offset 1 on: the checksum of the batch at offset 1 is wrong"
    )


def test_copies_that_part(tmp_path: Path) -> None:
    """A later epoch holds, as among controllers, however long the others are."""
    longer = node(tmp_path, 1, log_0=topics("a", "x", "y", "z"))
    holds = node(tmp_path, 2, log_0=topics("a") + topics("b", start=1, epoch=2))
    metadata = read(tmp_path)
    assert metadata.topics.keys() == {"a", "b"}
    assert source(metadata) == (str(holds), 0, 2)
    (problem,) = metadata.reading.problems
    assert problem == (
        f"{longer} parts from {holds}: the one ends at offset 4, with a batch that the other does "
        "not have there"
    )


def test_a_copy_that_ends_before_the_other_begins_can_not_be_compared(tmp_path: Path) -> None:
    node(tmp_path, 1, log_0=topics("a", "x"))
    state = snapshot(topic("a", UUID(int=97)))
    node(tmp_path, 2, log_5=topics("b", start=5), snapshot_5=state)
    metadata = read(tmp_path)
    assert metadata.topics.keys() == {"a", "b"}
    assert source(metadata)[1:] == (5, 6)
    assert metadata.reading.problems == ()


def test_a_snapshot_alone(tmp_path: Path) -> None:
    log = node(tmp_path, 1, snapshot_7=snapshot(topic(), partition(1)))
    metadata = read(tmp_path)
    assert source(metadata) == (str(log), 7, 7)
    assert metadata.reading.lines == (
        f"cluster metadata: {log}, the state before offset 7; how it came about is not there",
    )


def registry(path: Path, version: int) -> None:
    path.write_bytes(encode_line([["cluster", 2, "c", 2], ["version", version]]))


def test_fencepost_metadata_are_newer_than_those_of_the_kafka_that_it_went_on_from(
    tmp_path: Path,
) -> None:
    log = node(tmp_path, 1, log_0=topics("a"))
    registry(log.parent / "registry.log", 3)
    registry(tmp_path / "registry.log", 5)
    metadata = read(tmp_path)
    assert source(metadata) == (str(tmp_path / "registry.log"), 5, 6)


def test_a_damaged_file_of_fencepost(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "registry.log").write_bytes(b"?\n" + encode_line([["version", 1]]))
    none, problem = read(tmp_path).reading.lines
    assert none == "cluster metadata: none"
    assert problem.startswith(f"{tmp_path}/registry.log: line 1 is damaged")


def test_a_directory_that_can_not_be_read(tmp_path: Path) -> None:
    log = node(tmp_path, 1)
    (log / f"{0:020d}.log").mkdir()
    none, problem = read(tmp_path).reading.lines
    assert none == "cluster metadata: none"
    assert problem == f"{log}/{0:020d}.log can't be read: Is a directory"


def test_an_empty_log(tmp_path: Path) -> None:
    node(tmp_path, 1, log_0=batches(0))
    assert read(tmp_path).reading.lines == ("cluster metadata: none",)


# -- replicas that are not there ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("registered", "found"), [((), [1]), ((DIR,), [1]), ((DIR, OTHER_DIR), None)]
)
def test_what_a_broker_lacks_is_known_where_all_its_directories_are_there(
    tmp_path: Path, registered: tuple[UUID, ...], found: list[int] | None
) -> None:
    values = (
        RegisterBrokerRecord(1, log_dirs=registered),
        RegisterBrokerRecord(2),
        topic(),
        partition(1, 2),
    )
    log = node(tmp_path, 1, log_0=batches(0, *values))
    with (log.parent / "meta.properties").open("a") as about:
        about.write(f"directory.id={format_uuid(DIR)}\n")
    known = read_partition_metadata(tmp_path)
    absent = {key: [each.broker for each in known[key].absent] for key in known}
    assert absent == ({} if found is None else {("t", 0): found})
    assert read_partition_metadata(tmp_path, topics=["u"]) == {}
