"""Forged records of the metadata log, whose checksums are right: each is refused in one line."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.metadata_checks import InvalidRecord, check_record
from fencepost.broker.data_dir.metadata_log import encode_line
from tests.harness.driver import Driver
from tests.harness.durable_driver import DIR
from tests.harness.faulty_file_system import FaultyFileSystem

REGISTRY = DIR / "registry.log"
ID = "0123456789abcdef0123456789abcdef"
OTHER_ID = "1123456789abcdef0123456789abcdef"
HEAD: list[list[Any]] = [["cluster", 1, "c", 1], ["brokers", {"1": 1}]]
PARTITION = [[1], [1], 1, 0, 0]
TOPIC = ["topic", "t", ID, {}, [PARTITION]]
DEEP = "[" * 100_000 + "]" * 100_000


def topic(name: object, topic_id: object, configs: object, *partitions: object) -> list[Any]:
    return ["topic", name, topic_id, configs, list(partitions)]


def of(*fields: object) -> list[Any]:
    """A topic with one partition of these fields."""
    return topic("t", ID, {}, list(fields))


FORGED: list[tuple[list[Any], str]] = [
    (topic("../../evil", ID, {}, PARTITION), "'../../evil' is no name of a topic"),
    (topic("a/b", ID, {}, PARTITION), "is no name of a topic"),
    (topic("..", ID, {}, PARTITION), "is no name of a topic"),
    (topic("", ID, {}, PARTITION), "is no name of a topic"),
    (topic("t" * 250, ID, {}, PARTITION), "longer than the max"),
    (topic("a\nb", ID, {}, PARTITION), r"'a\\nb' is no name of a topic"),
    (topic("\x1b[31m", ID, {}, PARTITION), r"'\\x1b\[31m' is no name"),
    (topic(7, ID, {}, PARTITION), "7 is no name of a topic"),
    (topic(["t"], ID, {}, PARTITION), "is no name of a topic"),
    (topic("t", "xyz", {}, PARTITION), "is to be 32 hexadecimal digits"),
    (topic("t", "0" * 32, {}, PARTITION), "not all 0"),
    (topic("t", None, {}, PARTITION), "is to be 32 hexadecimal digits"),
    (topic("u", ID, {}, PARTITION), "is that of another topic"),
    (topic("t", ID, {"foo.bar": "1"}, PARTITION), "config 'foo.bar' is not known"),
    (topic("t", ID, {"retention.ms": "soon"}, PARTITION), "retention.ms"),
    (topic("t", ID, {"retention.ms": 5}, PARTITION), "is to be text"),
    (topic("t", ID, ["retention.ms"], PARTITION), "are to be a JSON object"),
    (topic("t", ID, {}), "is to have one at least"),
    (["topic", "t", ID, {}, "none"], "is to have one at least"),
    (["topic", "t", ID, {}], "has 3 fields, and is to have 4"),
    (of([1], [1], 1, 0), "is to have 5 to 9 fields"),
    (of([], [], -1, 0, 0), "has no replicas"),
    (of([-1], [-1], -1, 0, 0), "no id of a broker 0 to 2147483647"),
    (of([1 << 31], [1 << 31], 1 << 31, 0, 0), "no id of a broker 0 to 2147483647"),
    (of([1, 1], [1], 1, 0, 0), "each is to be there once"),
    (of([1.5], [1], 1, 0, 0), "no id of a broker"),
    (of("1", [1], 1, 0, 0), "are to be a list of broker ids"),
    (of([1], [2], 1, 0, 0), "the ISR of t-0: 2 is no id of a broker among"),
    (of([1], [1], 2, 0, 0), "the leader of t-0: 2 is no id"),
    (of([1], [1], None, 0, 0), "the leader of t-0: None is no id"),
    (of([1], [1], 1, -1, 0), "the leader epoch of t-0 is -1"),
    (of([1], [1], 1, 2**31 - 1, 0), "the leader epoch of t-0"),
    (of([1], [1], 1, 0, 2**40), "the partition epoch of t-0"),
    (of([1], [1], 1, 0, 0, [7]), "the eligible leaders of t-0"),
    (of([1], [1], 1, 0, 0, [], [], [9]), "the adding replicas of t-0"),
    (["cluster", 0, "c", 1], "the layout is 0"),
    (["cluster", "2", "c", 1], "the layout is '2'"),
    (["cluster", 99, "c", 1], "made by a newer fencepost"),
    (["cluster", 1, "", 1], "the cluster's id is ''"),
    (["cluster", 1, "c\n", 1], "the cluster's id"),
    (["cluster", 1, "c", -1], "the number of starts is -1"),
    (["brokers", {"x": 1}], "a broker's id is 'x'"),
    (["brokers", {"2147483648": 1}], "a broker's id is 2147483648"),
    (["brokers", {"1": "a"}], "the epoch of broker 1"),
    (["brokers", [1]], "are to be a JSON object"),
    (["version", True], "the version of the image is True"),
    (["version", 1e300], "the version of the image"),
    (["features", {"foo": 1}], "the feature 'foo' is not known"),
    (["features", {"metadata.version": 999}], "is to be a number from"),
    (["producer_ids", -5], "the next producer id is -5"),
    (["broker_configs", 1, {"foo": 1}], "broker: 'foo' is 1, and is to be text"),
    (["broker_configs", 1, {"log.retention.ms": "x"}], "log.retention.ms"),
    (["broker_configs", "1", {}], "a broker's id is '1'"),
    (["group_configs", "", {}], "'' is no name of a group"),
    (["group_configs", "g", {"foo": "1"}], "group 'g': the config 'foo' is not known"),
    (["group_configs", "g", {"consumer.session.timeout.ms": "x"}], "consumer.session.timeout.ms"),
    (["client_metrics_configs", "", {}], "'' is no name of a client metrics subscription"),
    (["client_metrics_configs", "s", {"foo": "1"}], "Unknown client metrics configuration: foo"),
    (["client_metrics_configs", "s", {"metrics": 1}], "is 1, and is to be text"),
    (["client_metrics_configs", "s", {"match": "x"}], "Illegal client matching pattern: x"),
    (["partition", "none", 0, PARTITION], "no record before has such a topic"),
    (["partition", "t", 9, PARTITION], "an index of topic t is 9"),
    (["partition", "t", "0", PARTITION], "an index of topic t"),
    (["configs", "none", {}], "no record before has such a topic"),
    (["deleted", "none", ID], "no record before has such a topic"),
    (["deleted", "t", OTHER_ID], "is deleted by the id"),
    (["nonsense", 1], "is no kind of record"),
    ([], "is no record"),
    ([[1]], "is no record"),
]


def refusal(files: FaultyFileSystem) -> str:
    before = files.names(PurePath("/"))
    with pytest.raises(DataDirUnusable) as caught:
        Driver(1, data_dir=open_data_dir(files, DIR, broker_ids=[1], sync=False))
    text = str(caught.value)
    assert text.isprintable()
    assert files.names(PurePath("/")) == before
    return text


def registry(data: bytes) -> FaultyFileSystem:
    files = FaultyFileSystem()
    files.make_dirs(DIR)
    files.write_atomic(REGISTRY, data, sync=False)
    return files


@pytest.mark.parametrize(("record", "problem"), FORGED, ids=[str(i) for i in range(len(FORGED))])
def test_a_forged_record_is_refused_in_a_line_that_says_what_is_wrong(
    record: list[Any], problem: str
) -> None:
    files = registry(encode_line([*HEAD, TOPIC]) + encode_line([record]))
    with pytest.raises(DataDirUnusable, match=problem):
        open_data_dir(files, DIR, broker_ids=[1], sync=False)
    assert "/data" in refusal(files)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\xff" * 100,
        bytes(4096),
        encode_line([["brokers", {"1": 1}]]),
        encode_line([]),
        b'00000000 [["cluster",1,"c",1]]\n',
    ],
)
def test_a_file_that_is_no_metadata_log_is_refused(data: bytes) -> None:
    assert "/data/registry.log" in refusal(registry(data))


@pytest.mark.parametrize("text", ["{}", "[1]", "null", '"x"', "[", "[" * 5000, "1" * 5000, DEEP])
def test_a_line_of_other_json_is_refused(text: str) -> None:
    from binascii import crc32

    line = b"%08x %b\n" % (crc32(text.encode()), text.encode())
    assert "/data/registry.log" in refusal(registry(line))
    whole = encode_line(HEAD)
    assert "line 2 is damaged" in refusal(registry(whole + line + whole))


def test_what_a_cluster_writes_is_accepted() -> None:
    topics: dict[str, Any] = {}
    check_record(TOPIC, topics)
    check_record(["features", {"metadata.version": 29}], topics)
    with pytest.raises(InvalidRecord):
        check_record(["topic"], topics)


def test_replicas_on_brokers_that_are_not_started_are_refused() -> None:
    record = of([1, 7], [1], 1, 0, 0)
    assert "start with --brokers 7" in refusal(registry(encode_line([*HEAD, record])))
