"""kcat 1.7 (librdkafka 2.0): listing, producing, consuming, querying."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest

from tests.harness import batches
from tests.harness.require import tool
from tests.harness.run import Finished, run
from tests.harness.served_cluster import Cluster, unique

Kcat = Callable[..., Finished]

T = 1_700_000_000_000
RETAINED = {"retention.ms": "-1"}


@pytest.fixture
def kcat(cluster: Cluster) -> Kcat:
    program = tool("kcat")

    def call(*arguments: str, stdin: str | bytes = "", code: int | None = 0) -> Finished:
        command = [program, "-b", cluster.bootstrap, *arguments]
        return run(command, stdin=stdin, timeout_s=60, code=code)

    return call


def consumed(kcat: Kcat, topic: str, *options: str) -> list[str]:
    """What a consumer that ends at the end of the log prints."""
    return kcat("-C", "-q", "-e", "-t", topic, *options).lines


def lines(count: int) -> list[str]:
    return [f"line {i} of a text that looks much the same everywhere" for i in range(count)]


def text_of(values: Sequence[str]) -> str:
    return "".join(f"{value}\n" for value in values)


def stored(cluster: Cluster, topic: str, partition: int = 0) -> list[batches.Batch]:
    found, _ = batches.parse(cluster.stored(topic, partition))
    return found


# -- listing ------------------------------------------------------------------------------------


def test_lists_brokers_and_topics(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("listed", partitions=2)
    listing = kcat("-L").out
    assert "3 brokers:" in listing
    assert len(re.findall(r"^  broker \d+ at 127\.0\.0\.1:\d+", listing, re.MULTILINE)) == 3
    assert f'topic "{topic}" with 2 partitions:' in listing


def test_lists_one_topic_as_json(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("listed", partitions=3)
    listing = json.loads(kcat("-L", "-J", "-t", topic).out)
    brokers = sorted(broker["id"] for broker in listing["brokers"])
    (entry,) = listing["topics"]
    assert entry["topic"] == topic
    assert len(brokers) == 3
    for partition in entry["partitions"]:
        assert partition["leader"] in brokers
        assert sorted(each["id"] for each in partition["replicas"]) == brokers
        assert sorted(each["id"] for each in partition["isrs"]) == brokers


# -- producing and consuming --------------------------------------------------------------------


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_lines_come_back_in_order(cluster: Cluster, kcat: Kcat, acks: str) -> None:
    topic = cluster.create_topic("lines")
    sent = lines(1000)
    kcat("-P", "-t", topic, "-X", f"acks={acks}", stdin=text_of(sent))
    # -c and not -e: with acks=0 the last of them may still be on their way.
    got = kcat("-C", "-q", "-t", topic, "-o", "beginning", "-c", "1000").lines
    assert got == sent


def test_keys_headers_and_partitions(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("keys", partitions=3)
    kcat("-P", "-t", topic, "-p", "2", "-K:", "-H", "one=1", "-H", "empty=", stdin="k:v\n:w\n")
    shown = consumed(kcat, topic, "-o", "beginning", "-f", "%p|%o|%k|%s|%h\n")
    assert shown == ["2|0|k|v|one=1,empty=", "2|1||w|one=1,empty="]


def test_keys_decide_the_partition(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("keys", partitions=4)
    text = text_of([f"{i % 20}:{i}" for i in range(200)])
    kcat("-P", "-t", topic, "-K:", stdin=text)
    places: dict[str, set[str]] = {}
    for line in consumed(kcat, topic, "-o", "beginning", "-f", "%k %p\n"):
        key, partition = line.split()
        places.setdefault(key, set()).add(partition)
    assert len(places) == 20
    assert all(len(partitions) == 1 for partitions in places.values())


def test_tombstones_have_no_value(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("tombstones")
    kcat("-P", "-t", topic, "-K:", "-Z", stdin="k:v\nk:\n")
    assert consumed(kcat, topic, "-o", "beginning", "-f", "%k %S\n") == ["k 1", "k -1"]


def test_json_envelope(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("json")
    kcat("-P", "-t", topic, "-K:", "-H", "a=b", stdin="k:v\n")
    (envelope,) = [json.loads(line) for line in consumed(kcat, topic, "-o", "beginning", "-J")]
    assert envelope["topic"] == topic
    assert (envelope["partition"], envelope["offset"], envelope["tstype"]) == (0, 0, "create")
    assert (envelope["key"], envelope["payload"], envelope["headers"]) == ("k", "v", ["a", "b"])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_arrive_compressed(cluster: Cluster, kcat: Kcat, codec: str) -> None:
    topic = cluster.create_topic(f"codec-{codec}")
    sent = lines(500)
    kcat("-P", "-t", topic, "-z", codec, "-X", "linger.ms=200", stdin=text_of(sent))
    kept = stored(cluster, topic)
    assert {batch.codec for batch in kept} == {codec}
    assert sum(batch.records for batch in kept) == 500
    assert consumed(kcat, topic, "-o", "beginning") == sent


def test_uncompressed_stays_so(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("codec-none")
    kcat("-P", "-t", topic, stdin=text_of(lines(100)))
    assert {batch.codec for batch in stored(cluster, topic)} == {"none"}


def test_idempotent_producer_is_numbered(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("idempotent")
    sent = lines(300)
    options = ["-X", "enable.idempotence=true", "-X", "batch.num.messages=50"]
    kcat("-P", "-t", topic, *options, stdin=text_of(sent))
    kept = stored(cluster, topic)
    assert len({batch.producer_id for batch in kept}) == 1
    assert kept[0].producer_id >= 0
    assert [batch.base_sequence for batch in kept] == [batch.base_offset for batch in kept]
    assert consumed(kcat, topic, "-o", "beginning") == sent


def test_a_large_message(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("large")
    value = "x" * 900_000
    kcat("-P", "-t", topic, stdin=value)
    assert consumed(kcat, topic, "-o", "beginning") == [value]


# -- offsets ------------------------------------------------------------------------------------


@pytest.fixture
def ten(cluster: Cluster) -> str:
    """A topic of ten records, "0" to "9", a second apart."""
    topic = cluster.create_topic("ten", configs=RETAINED)
    records = [(T + 1000 * i, None, str(i).encode()) for i in range(10)]
    for part in (records[:4], records[4:]):
        cluster.append(topic, *part)
    return topic


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-o", "beginning"], "0123456789"),
        (["-o", "end"], ""),
        (["-o", "7"], "789"),
        (["-o", "-3"], "789"),
        (["-o", f"s@{T + 4500}"], "56789"),
        (["-o", f"s@{T + 2000}", "-o", f"e@{T + 5000}"], "234"),
    ],
)
def test_where_a_consumer_starts(kcat: Kcat, ten: str, options: list[str], expected: str) -> None:
    assert consumed(kcat, ten, *options) == list(expected)


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(-1, 10), (-2, 0), (T, 0), (T + 1, 1), (T + 4500, 5), (T + 9000, 9), (T + 9001, -1)],
)
def test_query_by_timestamp(kcat: Kcat, ten: str, timestamp: int, offset: int) -> None:
    # librdkafka turns "no such record" into the end of the log, which it prints as -1.
    assert kcat("-Q", "-t", f"{ten}:0:{timestamp}").out == f"{ten} [0] offset {offset}\n"


def test_query_for_a_target_that_this_version_does_not_know(kcat: Kcat, ten: str) -> None:
    answer = kcat("-Q", "-t", f"{ten}:0:-3", code=None)
    assert answer.code != 0
    assert "API version not supported" in answer.err


def test_consuming_from_beyond_the_end_resets(kcat: Kcat, ten: str) -> None:
    reset = ["-X", "topic.auto.offset.reset=earliest"]
    got = kcat("-C", "-q", "-t", ten, "-p", "0", "-o", "5000", *reset, "-c", "10").lines
    assert got == list("0123456789")


# -- groups -------------------------------------------------------------------------------------


def test_a_group_goes_on_where_it_was(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("group", partitions=2)
    group = unique("kcat-group")
    options = ["-q", "-X", "auto.offset.reset=earliest", "-X", "topic.auto.offset.reset=earliest"]
    for part in (lines(60), [f"more {i}" for i in range(40)]):
        kcat("-P", "-t", topic, stdin=text_of(part))
        got = kcat(*options, "-c", str(len(part)), "-G", group, topic).lines
        assert sorted(got) == sorted(part)


# -- refusals -----------------------------------------------------------------------------------


def test_an_unknown_topic_is_named(cluster: Cluster, kcat: Kcat) -> None:
    answer = kcat("-L", "-t", "no such topic")
    assert 'topic "no such topic" with 0 partitions:' in answer.out
    assert "Invalid topic" in answer.out


def test_a_missing_partition_is_refused(cluster: Cluster, kcat: Kcat) -> None:
    topic = cluster.create_topic("missing")
    answer = kcat("-P", "-t", topic, "-p", "9", stdin="v\n", code=None)
    assert answer.code != 0
    assert "Unknown partition" in answer.err
