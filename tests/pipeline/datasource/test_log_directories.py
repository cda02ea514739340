"""Where logs are found, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.pipeline.datasource.log_directories import (
    LogDir,
    UnreadableSource,
    find_log_dirs,
    find_replicas,
)
from fencepost.storage.formats.checkpoints import encode_properties
from tests.pipeline.datasource.segments import batch


def log_dir(path: Path, broker: int, cluster: str = "c", *, clean: bool = False) -> Path:
    path.mkdir(parents=True)
    said = encode_properties({"node.id": str(broker), "cluster.id": cluster, "version": "1"})
    (path / "meta.properties").write_bytes(said)
    if clean:
        (path / ".kafka_cleanshutdown").write_bytes(b"{}")
    return path


def brokers(folder: Path) -> list[tuple[int, str]]:
    return [(each.broker, str(each.path.relative_to(folder))) for each in find_log_dirs(folder)]


def test_a_log_directory_itself(tmp_path: Path) -> None:
    log_dir(tmp_path / "logs", 4, clean=True)
    assert find_log_dirs(str(tmp_path / "logs")) == (
        LogDir(path=tmp_path / "logs", broker=4, cluster_id="c", clean=True),
    )


def test_a_data_directory(tmp_path: Path) -> None:
    for broker in (10, 9):
        log_dir(tmp_path / f"broker-{broker}", broker)
    (tmp_path / "registry.log").write_bytes(b"")
    (tmp_path / "something").mkdir()
    assert brokers(tmp_path) == [(9, "broker-9"), (10, "broker-10")]


def test_a_folder_of_them(tmp_path: Path) -> None:
    """A disk of a broker each, or two."""
    log_dir(tmp_path / "a" / "disk1", 1)
    log_dir(tmp_path / "a" / "disk2", 1)
    log_dir(tmp_path / "b", 2)
    assert brokers(tmp_path) == [(1, "a/disk1"), (1, "a/disk2"), (2, "b")]


def test_a_kafkas_directory_that_was_served_with_more_brokers(tmp_path: Path) -> None:
    log_dir(tmp_path / "logs", 1)
    log_dir(tmp_path / "logs" / "broker-2", 2)
    log_dir(tmp_path / "logs" / "broker-2.d1", 2)
    (tmp_path / "logs" / "t-0").mkdir()
    assert brokers(tmp_path / "logs") == [(1, "."), (2, "broker-2"), (2, "broker-2.d1")]


def test_a_broker_that_did_not_say_who_it_is(tmp_path: Path) -> None:
    (tmp_path / "broker-3").mkdir()
    assert brokers(tmp_path) == [(3, "broker-3")]


def test_a_kafka_of_old(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=7\n")
    assert [each.broker for each in find_log_dirs(tmp_path)] == [7]


def test_none_is_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"is not a directory$"):
        find_log_dirs(tmp_path / "missing")
    (tmp_path / "t-0").mkdir()
    with pytest.raises(
        UnreadableSource, match=r"^no log directory in .*: none has meta\.properties"
    ):
        find_log_dirs(tmp_path)


def test_two_clusters(tmp_path: Path) -> None:
    log_dir(tmp_path / "a", 1, "first")
    log_dir(tmp_path / "b", 2, "second")
    with pytest.raises(UnreadableSource, match=r"more than one cluster: .*first.* and .*second"):
        find_log_dirs(tmp_path)


def test_an_id_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("node.id=x\n")
    with pytest.raises(UnreadableSource, match=r"node\.id=x, which is no number"):
        find_log_dirs(tmp_path)


# -- replicas -------------------------------------------------------------------------------------


def replicas(folder: Path, topics: list[str] | None = None) -> list[tuple[str, int, int]]:
    found = find_replicas(find_log_dirs(folder), topics)
    return [(each.topic, each.partition, each.broker) for each in found]


def test_live_directories_of_topics(tmp_path: Path) -> None:
    for broker in (1, 2):
        path = log_dir(tmp_path / f"broker-{broker}", broker)
        for name in ("a-b-1", "a-0", "a-10", "a-9", "__cluster_metadata-0", "no", "a"):
            (path / name).mkdir()
        for state in ("delete", "future", "stray"):
            (path / f"a-5.0123456789abcdef0123456789abcdef-{state}").mkdir()
        (path / "a-7").write_bytes(b"a file")
    everything = [("a", index, broker) for index in (0, 9, 10) for broker in (1, 2)]
    assert replicas(tmp_path) == [*everything, ("a-b", 1, 1), ("a-b", 1, 2)]
    assert replicas(tmp_path, ["a"]) == everything
    assert replicas(tmp_path, []) == []


def test_the_same_replica_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (log_dir(tmp_path / name, 1) / "t-0").mkdir()
    with pytest.raises(UnreadableSource, match=r"broker 1 has t-0 twice: .*one/t-0 and .*two/t-0"):
        replicas(tmp_path)


# -- segments -------------------------------------------------------------------------------------


def segments(tmp_path: Path, *files: str) -> list[str]:
    """The logs of a partition with these files; those of records hold offsets 10 a segment."""
    folder = log_dir(tmp_path / "logs", 1) / "t-0"
    folder.mkdir()
    for name in files:
        offset = int(name.split(".")[0])
        full = f"{offset:020d}{name.removeprefix(str(offset))}"
        (folder / full).write_bytes(batch(offset, 10) if ".log" in name else b"")
    (replica,) = find_replicas(find_log_dirs(tmp_path))
    assert [each.active for each in replica.segments] == [
        each is replica.segments[-1] for each in replica.segments
    ]
    return [
        f"{each.base_offset}{each.log.name[20:]}{' swapped' * each.swapped}"
        for each in replica.segments
    ]


def test_segments_in_order(tmp_path: Path) -> None:
    found = segments(
        tmp_path, "10.log", "0.log", "0.index", "20.log.deleted", "30.snapshot", "5.index"
    )
    assert found == ["0.log", "10.log"]


def test_what_compaction_did_not_finish(tmp_path: Path) -> None:
    assert segments(tmp_path, "0.log", "10.log", "0.log.cleaned") == ["0.log", "10.log"]


def test_what_compaction_was_about_to_put_into_place(tmp_path: Path) -> None:
    """All between the first's beginning and the last's end is replaced."""
    found = segments(tmp_path, "0.log", "5.log", "10.log", "0.log.swap", "0.index.swap")
    assert found == ["0.log.swap swapped", "10.log"]


def test_swaps_behind_one_that_is_not_finished(tmp_path: Path) -> None:
    found = segments(tmp_path, "0.log", "10.log", "20.log", "0.log.cleaned", "10.log.swap")
    assert found == ["0.log", "10.log", "20.log"]


def left_over(tmp_path: Path, *files: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Files on their way in or out, and what is left out for those on their way in."""
    segments(tmp_path, *files)
    (replica,) = find_replicas(find_log_dirs(tmp_path))
    return [name.lstrip("0") for name in replica.leftovers], list(replica.replaced)


def test_files_that_are_left_over(tmp_path: Path) -> None:
    found = left_over(tmp_path, "10.log", "20.log.deleted", "10.log.cleaned", "30.snapshot.deleted")
    assert found == (["10.log.cleaned", "20.log.deleted", "30.snapshot.deleted"], [])


def test_what_is_left_out_for_what_is_put_into_place(tmp_path: Path) -> None:
    found = left_over(tmp_path, "10.log", "15.log", "20.log", "10.log.swap")
    assert found == (["10.log.swap"], [(10, 20), (15, 25)])


def test_no_segment(tmp_path: Path) -> None:
    assert segments(tmp_path) == []


def test_names_of_the_indexes(tmp_path: Path) -> None:
    segments(tmp_path, "7.log")
    (replica,) = find_replicas(find_log_dirs(tmp_path))
    (segment,) = replica.segments
    assert segment.offset_index.name == "00000000000000000007.index"
    assert segment.time_index.name == "00000000000000000007.timeindex"
