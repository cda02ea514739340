from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.storage.formats.file_names import (
    DirectoryState,
    FileKind,
    FileState,
    PartitionDirectory,
    SegmentFile,
    deleted_directory_name,
    directory_name,
    offset_name,
    parse_directory_name,
    parse_segment_file_name,
    segment_file_name,
)

LIVE, DELETED = DirectoryState.LIVE, DirectoryState.DELETED


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("00000000000000000000.log", (0, FileKind.LOG, FileState.LIVE)),
        ("00000000000000000012.index", (12, FileKind.OFFSET_INDEX, FileState.LIVE)),
        ("00000000000000000012.timeindex", (12, FileKind.TIME_INDEX, FileState.LIVE)),
        ("00000000000000000000.txnindex", (0, FileKind.TRANSACTION_INDEX, FileState.LIVE)),
        ("00000000000000000060.snapshot", (60, FileKind.PRODUCER_SNAPSHOT, FileState.LIVE)),
        ("09223372036854775807.log", (2**63 - 1, FileKind.LOG, FileState.LIVE)),
        ("00000000000000000000.log.deleted", (0, FileKind.LOG, FileState.DELETED)),
        (
            "00000000000000000012.snapshot.deleted",
            (12, FileKind.PRODUCER_SNAPSHOT, FileState.DELETED),
        ),
        ("00000000000000000036.log.cleaned", (36, FileKind.LOG, FileState.CLEANED)),
        ("00000000000000000036.timeindex.swap", (36, FileKind.TIME_INDEX, FileState.SWAP)),
    ],
)
def test_names_of_a_segments_files(name: str, said: tuple[int, FileKind, FileState]) -> None:
    assert parse_segment_file_name(name) == SegmentFile(*said)
    assert segment_file_name(*said) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "leader-epoch-checkpoint",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata",
        "00000000000000000000",
        "0.log",
        "000000000000000000000.log",
        "0000000000000000000x.log",
        "-0000000000000000001.log",
        "00000000000000000000.logs",
        "00000000000000000000xlog",
        "00000000000000000000.log.tmp",
        "00000000000000000000.log.deleted.deleted",
        "00000000000000000000.log.deleted\n",
        "\N{ARABIC-INDIC DIGIT ONE}".rjust(20, "0") + ".log",
    ],
)
def test_other_names_say_nothing_of_a_segment(name: str) -> None:
    assert parse_segment_file_name(name) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain-0", ("plain", 0, LIVE)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49, LIVE)),
        ("a-b.c_D-1-12", ("a-b.c_D-1", 12, LIVE)),
        ("a.b-delete-1", ("a.b-delete", 1, LIVE)),
        ("deleted-0.56cac3f766a94f928b1101d73285d1d6-delete", ("deleted", 0, DELETED)),
        ("a.b-3.c-0.56cac3f766a94f928b1101d73285d1d6-delete", ("a.b-3.c", 0, DELETED)),
        ("t-0.56cac3f766a94f928b1101d73285d1d6-future", ("t", 0, DirectoryState.FUTURE)),
        ("t-0.56cac3f766a94f928b1101d73285d1d6-stray", ("t", 0, DirectoryState.STRAY)),
    ],
)
def test_names_of_a_partitions_directory(name: str, said: tuple[str, int, DirectoryState]) -> None:
    assert parse_directory_name(name) == PartitionDirectory(*said)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "plain",
        "-0",
        "plain-",
        "plain-x",
        "plain-0.x-gone",
        "plain-0.deleted",
        "plain-0\n",
        "a b-0",
    ],
)
def test_other_names_say_nothing_of_a_partition(name: str) -> None:
    assert parse_directory_name(name) is None


@pytest.mark.parametrize("length", [1, 100, 213, 214, 249])
def test_a_directory_on_its_way_out_has_no_more_than_255_characters(length: int) -> None:
    topic, unique = "t" * length, UUID(int=1)
    name = deleted_directory_name(topic, 7, unique)
    assert name.endswith(f"-7.{unique.hex}-delete")
    assert len(name) == min(length, 213) + 42
    assert parse_directory_name(name) == PartitionDirectory(topic[:213], 7, DELETED)


@given(
    topic=st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    partition=st.integers(0, 2**31 - 1),
)
def test_every_topic_has_a_directory(topic: str, partition: int) -> None:
    said = PartitionDirectory(topic, partition, LIVE)
    assert parse_directory_name(directory_name(topic, partition)) == said


def test_offsets_have_twenty_digits() -> None:
    assert offset_name(42) == "00000000000000000042"
