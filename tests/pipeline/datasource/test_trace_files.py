"""Traces of served clusters as rows: what was asked and answered of each partition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from fencepost.pipeline.datasource.schemas import TRACES
from fencepost.pipeline.datasource.trace_exchanges import exchange_rows
from fencepost.pipeline.datasource.trace_files import (
    UnreadableTrace,
    cluster_id_of,
    find_trace_files,
    number_in_run,
    read_trace_directory,
    read_trace_file,
    run_of,
)
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.messages.delete_groups import DeleteGroupsRequest
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.pipeline.audit.tracing import TOPIC, Traced, batch, traced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKED = {"check.expected.offsets": "true"}
Row = dict[str, Any]


def _ask_everything(cluster: Traced) -> None:
    cluster.send(1, batch(0), batch(3))
    cluster.send(1, batch(9))
    cluster.send(1, batch(6), acks=1)
    cluster.latest(1, epoch=0)
    cluster.latest(1, version=1)
    cluster.fetch(1, 3, epoch=0)
    cluster.fetch(1, 99)
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=0, leader_epoch=0)
    epochs = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(OffsetForLeaderTopic(topic=TOPIC, partitions=(part,)),)
    )
    cluster.ask(1, "offset_for_leader_epoch", 4, epochs)
    coordinator = cluster.coordinator("group")
    cluster.commit(coordinator, "group", 3, 0)
    cluster.committed(coordinator, "group")
    cluster.ask(coordinator, "delete_groups", 2, DeleteGroupsRequest(groups_names=("group",)))
    deleted = DeleteRecordsPartition(partition_index=0, offset=3)
    topic = DeleteRecordsTopic(name=TOPIC, partitions=(deleted,))
    cluster.ask(1, "delete_records", 2, DeleteRecordsRequest(topics=(topic,), timeout_ms=9000))


def _fetch_in_a_session(cluster: Traced) -> None:
    """By topic id, and the second time without a word about the partition."""
    state = cluster.control.partition(TOPIC)
    topic_id, epoch = UUID(state["topic_id"]), state["leader_epoch"]
    asked = FetchPartition(
        partition=0, fetch_offset=6, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic_id=topic_id, partitions=(asked,))
    first = cluster.ask(1, "fetch", 13, FetchRequest(session_epoch=0, topics=(topic,)))
    data = PartitionProduceData(index=0, records=bytes(batch(9)))
    produced = TopicProduceData(topic_id=topic_id, partition_data=(data,))
    cluster.ask(1, "produce", 13, ProduceRequest(acks=-1, timeout_ms=9000, topic_data=(produced,)))
    cluster.ask(1, "fetch", 13, FetchRequest(session_id=first.session_id, session_epoch=1))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a cluster was that ran twice, and was killed."""
    place = tmp_path_factory.mktemp("traced")
    with traced(place, brokers=1) as cluster:
        cluster.create(TOPIC, 1, **CHECKED)
        _ask_everything(cluster)
        cluster.stop()
        cluster.start()
        _fetch_in_a_session(cluster)
        cluster.create("other", 1)
        cluster.wait_for_trace("topic_created")
        cluster.kill()
    return place


@pytest.fixture(scope="module")
def rows(place: Path) -> list[Row]:
    found: list[Row] = read_trace_directory(place / "trace").to_pylist()
    return found


def of(rows: list[Row], api: str, *columns: str) -> list[tuple[object, ...]]:
    """Some columns of the exchanges of an API."""
    return [tuple(row[name] for name in columns) for row in rows if row["api"] == api]


def test_what_was_produced(rows: list[Row]) -> None:
    columns = ("topic", "partition", "acks", "error", "offset")
    assert of(rows, "Produce", *columns) == [
        (TOPIC, 0, -1, 0, 0),
        (TOPIC, 0, -1, 2701, -1),
        (TOPIC, 0, 1, 0, 6),
        (TOPIC, 0, -1, 0, 9),
    ]
    first, refused, *_ = (row["batches"] for row in rows if row["api"] == "Produce")
    assert [(each["base_offset"], each["expected_offset"]) for each in first] == [(0, 0), (3, 3)]
    assert [(each["last_offset"], each["epoch"]) for each in first] == [(2, 0), (5, 0)]
    assert [(each["base_offset"], each["epoch"]) for each in refused] == [(9, -1)]


def test_what_was_fetched(rows: list[Row], place: Path) -> None:
    fetched = [row for row in rows if row["api"] == "Fetch"]
    assert [row["topic"] for row in fetched] == [TOPIC] * 4
    columns = ("fetch_offset", "current_leader_epoch", "error", "high_watermark")
    epoch = fetched[2]["current_leader_epoch"]
    assert of(rows, "Fetch", *columns) == [
        (3, 0, 0, 9),
        (99, -1, 1, -1),
        (6, epoch, 0, 9),
        (None, None, 0, 12),
    ]
    metadata = place / "data" / "broker-1" / f"{TOPIC}-0" / "partition.metadata"
    assert fetched[2]["topic_id"] in metadata.read_text()
    assert [each["base_offset"] for each in fetched[0]["batches"]] == [3, 6]
    assert fetched[2]["session_id"] == fetched[3]["session_id"] > 0
    assert [row["replica_id"] for row in fetched] == [-1] * 4


def test_what_was_listed(rows: list[Row]) -> None:
    columns = ("version", "timestamp", "current_leader_epoch", "offset", "epoch")
    assert of(rows, "ListOffsets", *columns) == [(6, -1, 0, 9, 0), (1, -1, -1, 9, -1)]
    epochs = ("asked_epoch", "current_leader_epoch", "offset", "epoch")
    assert of(rows, "OffsetForLeaderEpoch", *epochs) == [(0, 0, 9, 0)]
    assert of(rows, "DeleteRecords", "offset", "log_start_offset") == [(3, 3)]


def test_what_was_committed(rows: list[Row]) -> None:
    columns = ("group", "topic", "error", "offset", "epoch")
    assert of(rows, "OffsetCommit", *columns)[-1] == ("group", TOPIC, 0, 3, 0)
    assert of(rows, "OffsetFetch", *columns)[-1] == ("group", TOPIC, 0, 3, 0)
    assert of(rows, "DeleteGroups", *columns) == [("group", None, 0, None, None)]


def test_what_was_committed_in_a_transaction() -> None:
    asked = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": 2}
    answered = {"partition_index": 0, "error_code": 0}
    line = {
        "api": "TxnOffsetCommit",
        "request": {"group_id": "g", "topics": [{"name": "t", "partitions": [asked]}]},
        "response": {"topics": [{"name": "t", "partitions": [answered]}]},
    }
    (row,) = exchange_rows(line)
    assert [row[name] for name in ("topic", "partition", "group", "offset", "epoch", "error")] == [
        *("t", 0, "g", 5, 2, 0)
    ]


def test_runs_do_not_mix(rows: list[Row]) -> None:
    assert [row["line"] for row in rows] == sorted(row["line"] for row in rows)
    assert sorted({run_of(row["number"]) for row in rows}) == [0, 1]
    exchanges = [row for row in rows if row["kind"] == "exchange"]
    assert all(row["number"] <= row["newest"] for row in exchanges)
    assert number_in_run(exchanges[0]["number"]) == 1
    starts = [row for row in rows if row["kind"] == "trace_started"]
    assert [run_of(row["newest"]) for row in starts] == [0, 1]
    assert [row["kind"] for row in rows].count("trace_ended") == 1


def test_events(rows: list[Row]) -> None:
    (created, known) = (
        row for row in rows if row["topic"] == TOPIC and row["kind"].startswith("topic_")
    )
    assert [created["kind"], known["kind"]] == ["topic_created", "topic_known"]
    assert created["topic_id"] == known["topic_id"]
    details = json.loads(known["details"])
    assert details["configs"] == CHECKED
    assert details["leaders"][0][0] == 1
    assert format_uuid(UUID(details["topic_id"])) == known["topic_id"]
    coordinators = [row for row in rows if row["kind"].startswith("coordinator_")]
    assert all(row["partition"] is None for row in coordinators)


def test_only_some_topics(place: Path, rows: list[Row]) -> None:
    found = [
        row
        for piece in find_trace_files(place / "trace")
        for each in read_trace_file(piece, {"other"})
        for row in each.to_pylist()
    ]
    assert found == [row for row in rows if row["topic"] in (None, "other")]


def test_a_line_that_is_not_whole_is_none(place: Path, rows: list[Row], tmp_path: Path) -> None:
    *_, last = find_trace_files(place / "trace")
    torn = tmp_path / Path(last.path).name
    torn.write_bytes(Path(last.path).read_bytes()[:-3])
    found = read_trace_directory(tmp_path).to_pylist()
    own = [row for row in rows if run_of(row["newest"]) == 1]
    assert [row["kind"] for row in found] == [row["kind"] for row in own[:-1]]


def test_what_is_written_later_is_not_read(place: Path, tmp_path: Path) -> None:
    """A log that is read before must not lack what a trace tells."""
    first, *_ = find_trace_files(place / "trace")
    text = Path(first.path).read_bytes()
    grows = tmp_path / Path(first.path).name
    grows.write_bytes(text)
    (piece,) = find_trace_files(tmp_path)
    grows.write_bytes(text * 2)
    count = sum(each.num_rows for each in read_trace_file(piece))
    assert count == sum(each.num_rows for each in read_trace_file(first))


def test_no_trace_is_said_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        UnreadableTrace, match=f"there is no trace in {tmp_path}: serve --trace writes"
    ):
        find_trace_files(tmp_path)
    with pytest.raises(UnreadableTrace, match="no such file or directory"):
        find_trace_files(tmp_path / "missing")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{'newest': 1}", "line 2 is no JSON"),
        ("\0\0\0", "line 2 is no JSON"),
        ("[]", "line 2 is none of serve --trace"),
        ("{}", "line 2 is none of serve --trace"),
    ],
)
def test_a_line_that_is_none_is_told(place: Path, tmp_path: Path, text: str, why: str) -> None:
    first, *_ = find_trace_files(place / "trace")
    good = Path(first.path).read_text().splitlines()[0]
    damaged = tmp_path / "trace-20260102T030405Z-1-0001.jsonl"
    damaged.write_text(f"{good}\n{text}\n{good}\n")
    with pytest.raises(UnreadableTrace, match=f"^{damaged}, {why}$"):
        read_trace_directory(tmp_path)


def test_the_data_source_reads_the_same(spark: SparkSession, place: Path, rows: list[Row]) -> None:
    reader = spark.read.format("fencepost").option("level", "traces")
    found = reader.load(str(place / "trace")).toArrow()
    assert found.schema.remove_metadata().equals(TRACES)
    assert found.sort_by([("line", "ascending"), ("kind", "ascending")]).to_pylist() == sorted(
        rows, key=lambda row: (row["line"], row["kind"])
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"event": {"kind": "trace_started", "details": {"cluster_id": "abc"}}}\n', "abc"),
        ('{"event": {"kind": "trace_started", "details": {"cluster_id": 7}}}\n', None),
        ('{"event": {"kind": "trace_started", "details": {}}}\n', None),
        ('{"event": {"kind": "reset", "details": {"cluster_id": "abc"}}}\n', None),
        ('{"number": 1}\n', None),
        ("[]\n", None),
        ("not json\n", None),
        ("", None),
    ],
)
def test_a_file_says_of_which_cluster_it_is(tmp_path: Path, text: str, found: str | None) -> None:
    (tmp_path / "trace-x-0001.jsonl").write_text(text)
    (file,) = find_trace_files(tmp_path)
    assert cluster_id_of(file) == found
