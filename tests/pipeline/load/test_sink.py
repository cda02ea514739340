"""What a task does, without Spark: each row once, or a refusal that names the place."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from fencepost.client import Client, NewRecord, Partition, encode_records, produce
from fencepost.pipeline.load import partition_load
from fencepost.pipeline.load.batch_encoding import BatchLimits, ChunkBuilder
from fencepost.pipeline.load.options import LoadInterrupted
from fencepost.pipeline.load.sink import Assignment, TaskResult, load_rows
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.compression import Codec
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from fencepost.testing.cluster import AsyncCluster
from tests.conditional.weather import bad_weather
from tests.harness.log_reader import log_of
from tests.pipeline.load.rows import HEADERS, batch_of, content, parts, records

TOPIC: Final = "loaded"
CHECKED: Final = {"check.expected.offsets": "true", "retention.ms": "-1"}
"""Some records are old."""
ROWS: Final = records(1_000)
LIMITS: Final = BatchLimits(batch_records=10, batch_bytes=100_000, chunk_bytes=4_000)
FOREIGN: Final = [NewRecord(value=b"foreign", timestamp=1)]

pytestmark = pytest.mark.fencepost(
    brokers=3,
    topics=[
        {"name": TOPIC, "partitions": 3, "replication_factor": 3, "configs": CHECKED},
        {
            "name": "stamped",
            "partitions": 1,
            "replication_factor": 3,
            "configs": {
                **CHECKED,
                "message.timestamp.type": "LogAppendTime",
                "compression.type": "zstd",
            },
        },
        {"name": "unchecked", "partitions": 1, "replication_factor": 1},
    ],
)


@pytest.fixture
async def client(fencepost_async: AsyncCluster) -> AsyncIterator[Client]:
    async with Client(fencepost_async.bootstrap, client_id="another-client") as made:
        yield made


def assignment(
    cluster: AsyncCluster,
    topic: str = TOPIC,
    bases: Sequence[int] = (0, 0, 0),
    limits: BatchLimits = LIMITS,
    patience_s: float = 30.0,
) -> Assignment:
    return Assignment(
        bootstrap=cluster.bootstrap,
        topic=topic,
        topic_id=None,
        bases=tuple(bases),
        limits=limits,
        patience_s=patience_s,
    )


async def brought(told: Assignment, *rows: pa.RecordBatch) -> TaskResult:
    return await asyncio.to_thread(load_rows, told, iter(rows))


async def append(client: Client, at: int, found: Sequence[NewRecord], index: int = 0) -> None:
    """Another writer appends."""
    client.forget()
    leader = await client.leader(TOPIC, index)
    partition = Partition(topic=TOPIC, index=index)
    done = await produce(leader, partition, encode_records(found, base_offset=at))
    assert done is not None
    assert done.error == 0, done


async def test_all_rows_in_their_order(fencepost_async: AsyncCluster, client: Client) -> None:
    both = [batch_of(ROWS, 1), batch_of(ROWS[:100], 2)]
    done = await brought(assignment(fencepost_async), *both)
    assert done.refused is None
    assert [(each.partition, each.found, each.appended) for each in done.partitions] == [
        (1, 0, 1_000),
        (2, 0, 100),
    ]
    assert content(await log_of(client, TOPIC, 1)) == content(ROWS)
    assert content(await log_of(client, TOPIC, 2)) == content(ROWS[:100])


async def test_again_it_finds_them(fencepost_async: AsyncCluster, client: Client) -> None:
    told = assignment(fencepost_async)
    await brought(told, batch_of(ROWS[:400]))
    again = await brought(told, batch_of(ROWS))
    (loaded,) = again.partitions
    assert loaded.next_offset == 1_000
    # A chunk that would go on is not that which was the last one.
    assert 380 <= loaded.found <= 400
    assert content(await log_of(client, TOPIC)) == content(ROWS)


def _bytes_in(response: Any) -> int:  # noqa: ANN401  # an answer to Fetch, as JSON
    """Of all records."""
    parts_ = (each for topic in response["responses"] for each in topic["partitions"])
    return sum((each["records"] or {"bytes": 0})["bytes"] for each in parts_)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
async def test_the_same_batches_are_read_back_once_and_not_decoded(
    fencepost_async: AsyncCluster, codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = BatchLimits(batch_records=10, batch_bytes=100_000, chunk_bytes=4_000, codec=codec)
    told = assignment(fencepost_async, limits=limits)
    await brought(told, batch_of(ROWS))

    def decoded(*_: object) -> None:
        pytest.fail("record by record")

    monkeypatch.setattr(partition_load, "decode_records", decoded)
    again = await brought(told, batch_of(ROWS))
    assert [each.found for each in again.partitions] == [1_000]
    fetched = await fencepost_async.trace(api="Fetch", client_id="fencepost-load", limit=4096)
    chunks = ChunkBuilder(limits)
    bytes_there = sum(each.size for each in (*chunks.add(batch_of(ROWS)), *chunks.finish()))
    assert bytes_there <= sum(_bytes_in(each.response) for each in fetched) < 1.2 * bytes_there


@pytest.mark.parametrize(
    "limits",
    [
        BatchLimits(batch_records=7, chunk_bytes=2_000),
        BatchLimits(),
        BatchLimits(batch_records=10, chunk_bytes=4_000, codec=Codec.LZ4),
    ],
)
async def test_other_batches_with_the_same_records_are_known(
    fencepost_async: AsyncCluster, client: Client, limits: BatchLimits
) -> None:
    await brought(assignment(fencepost_async), batch_of(ROWS[:400]))
    again = await brought(assignment(fencepost_async, limits=limits), batch_of(ROWS))
    assert again.refused is None
    assert content(await log_of(client, TOPIC)) == content(ROWS)


async def test_batches_that_the_broker_rewrote_are_accepted(
    fencepost_async: AsyncCluster,
) -> None:
    told = assignment(fencepost_async, "stamped", (0,))
    await brought(told, batch_of(ROWS))
    again = await brought(told, batch_of(ROWS))
    assert [each.found for each in again.partitions] == [1_000]


@pytest.mark.parametrize("count", [1, 10, 20, 400])
async def test_foreign_records_in_place_of_rows_are_not_taken_for_them(
    fencepost_async: AsyncCluster, client: Client, count: int
) -> None:
    """Who goes by the log's end alone loses as many rows as there are foreign ones."""
    await brought(assignment(fencepost_async), batch_of(ROWS[:300]))
    await append(client, 300, FOREIGN * count)
    again = await brought(assignment(fencepost_async), batch_of(ROWS))
    assert again.refused == f"{TOPIC}-0 has something else at offset 300 than the source"
    assert again.partitions == ()
    assert content(await log_of(client, TOPIC)) == content([*ROWS[:300], *FOREIGN * count])


@pytest.mark.parametrize("chunks", [1, 2])
async def test_foreign_records_that_come_meanwhile_stop_it(
    fencepost_async: AsyncCluster, client: Client, chunks: int
) -> None:
    second = await fencepost_async.add_fault(
        "Produce", topic=TOPIC, client_id="fencepost-load", after=1, action={"delay": 5000}
    )
    limits = BatchLimits(batch_records=10, chunk_bytes=1)
    loading = asyncio.create_task(
        brought(assignment(fencepost_async, limits=limits), batch_of(ROWS))
    )
    await fencepost_async.wait_for_fault(second.id)
    await append(client, 10, FOREIGN * 10 * chunks)
    done = await loading
    assert done.refused == f"{TOPIC}-0 has something else at offset 10 than the source"
    assert content(await log_of(client, TOPIC)) == content([*ROWS[:10], *FOREIGN * 10 * chunks])


async def test_rows_of_others_behind_the_last_one_are_left_alone(
    fencepost_async: AsyncCluster, client: Client
) -> None:
    told = assignment(fencepost_async, bases=(2, 0, 0))
    await append(client, 0, FOREIGN * 2)
    await brought(told, batch_of(ROWS))
    await append(client, 1_002, FOREIGN)
    again = await brought(told, batch_of(ROWS))
    assert [each.found for each in again.partitions] == [1_000]
    assert content(await log_of(client, TOPIC)) == content([*FOREIGN * 2, *ROWS, *FOREIGN])


async def test_two_at_once_bring_them_once(fencepost_async: AsyncCluster, client: Client) -> None:
    """A task that Spark believes dead may go on."""
    tasks = [brought(assignment(fencepost_async), batch_of(ROWS)) for _ in range(3)]
    for done in await asyncio.gather(*tasks):
        assert done.refused is None
    assert content(await log_of(client, TOPIC)) == content(ROWS)


class Killed(Exception):
    pass


async def test_attempts_that_end_anywhere_in_bad_weather(
    fencepost_async: AsyncCluster, client: Client
) -> None:
    drawn = random.Random(27)

    def until_killed() -> Iterator[pa.RecordBatch]:
        left = drawn.randrange(1_500)
        for part in parts(batch_of(ROWS), iter(lambda: drawn.randrange(1, 60), 0)):
            if (left := left - part.num_rows) < 0:
                raise Killed
            yield part

    done: TaskResult | None = None
    async with bad_weather(fencepost_async, TOPIC, 27, probability=0.02):
        for _ in range(12):
            try:
                done = await asyncio.to_thread(
                    load_rows, assignment(fencepost_async), until_killed()
                )
            except Killed:
                continue
    done = await brought(assignment(fencepost_async), batch_of(ROWS))
    assert done.refused is None
    assert content(await log_of(client, TOPIC)) == content(ROWS)


async def test_a_base_that_the_log_does_not_reach(fencepost_async: AsyncCluster) -> None:
    done = await brought(assignment(fencepost_async, bases=(5, 0, 0)), batch_of(ROWS))
    assert done.refused is not None
    assert done.refused.startswith(f"{TOPIC}-0 ends at offset 0, before 5")


async def delete_before(client: Client, offset: int) -> None:
    topics = (
        DeleteRecordsTopic(
            name=TOPIC, partitions=(DeleteRecordsPartition(partition_index=0, offset=offset),)
        ),
    )
    request = DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
    leader = await client.leader(TOPIC, 0)
    deleted = await leader.ask_any(BY_NAME["delete_records"], 2, request)
    assert deleted.topics[0].partitions[0].error_code == 0


async def test_a_base_that_is_deleted(fencepost_async: AsyncCluster, client: Client) -> None:
    await brought(assignment(fencepost_async), batch_of(ROWS))
    await delete_before(client, 10)
    done = await brought(assignment(fencepost_async), batch_of(ROWS))
    assert done.refused is not None
    assert done.refused.startswith(f"{TOPIC}-0 begins at offset 10")


async def test_rows_that_are_deleted_while_they_are_compared(
    fencepost_async: AsyncCluster, client: Client
) -> None:
    await brought(assignment(fencepost_async), batch_of(ROWS))
    second = await fencepost_async.add_fault(
        "Fetch", topic=TOPIC, client_id="fencepost-load", after=1, action={"delay": 5000}
    )
    again = asyncio.create_task(brought(assignment(fencepost_async), batch_of(ROWS)))
    await fencepost_async.wait_for_fault(second.id)
    await delete_before(client, 990)
    # Long before its patience has ended.
    done = await asyncio.wait_for(again, 25)
    assert done.refused is not None
    found = re.fullmatch(
        rf"{TOPIC}-0 does not have the record at offset (\d+) any more: it begins at "
        r"offset 990 now; retention \(retention.ms, retention.bytes\) or DeleteRecords took what "
        r"was before",
        done.refused,
    )
    assert found is not None, done.refused
    assert 0 < int(found[1]) < 990


async def test_a_topic_that_does_not_check(fencepost_async: AsyncCluster) -> None:
    one = BatchLimits(batch_records=10, chunk_bytes=1)
    told = assignment(fencepost_async, "unchecked", (0,), one)
    assert (await brought(told, batch_of(ROWS[:10]))).refused is None
    done = await brought(told, batch_of(ROWS[10:20]))
    assert done.refused == "unchecked-0 has something else at offset 0 than the source"


@pytest.mark.parametrize(
    ("partitions", "why"),
    [
        ([3], "a row says partition 3; loaded has 3"),
        ([-1], "a row says partition -1; loaded has 3"),
        ([None], "a row says partition none; loaded has 3"),
        ([0, 1, 0], "rows of loaded-0 stand between those of others"),
    ],
)
async def test_rows_that_are_not_arranged(
    fencepost_async: AsyncCluster, partitions: list[int | None], why: str
) -> None:
    rows = batch_of(ROWS[: len(partitions)])
    rows = rows.set_column(0, "partition", pa.array(partitions, pa.int32()))
    assert (await brought(assignment(fencepost_async), rows)).refused == why


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"v"}])
async def test_a_header_without_a_key(
    fencepost_async: AsyncCluster, client: Client, header: dict[str, bytes | None] | None
) -> None:
    good = batch_of(ROWS[:3])
    headers = pa.array([None, [{"key": "k", "value": None}, header], []], HEADERS)
    at = good.schema.get_field_index("headers")
    rows = good.set_column(at, "headers", headers)
    done = await brought(assignment(fencepost_async), rows)
    assert done.refused == "a row of loaded-0 has a header without a key"
    assert await log_of(client, TOPIC) == []


async def test_brokers_that_do_not_answer_interrupt_it(fencepost_async: AsyncCluster) -> None:
    for api, when in (("Produce", "after"), ("Fetch", "before")):
        await fencepost_async.add_fault(
            api, source="clients", topic=TOPIC, count=None, action={"disconnect": when}
        )
    with pytest.raises(LoadInterrupted, match="loaded-0: whether the records are at 0"):
        await brought(assignment(fencepost_async, patience_s=1.0), batch_of(ROWS[:5]))


async def test_a_leader_that_is_behind_is_asked_again(fencepost_async: AsyncCluster) -> None:
    told = assignment(fencepost_async)
    await brought(told, batch_of(ROWS))
    await fencepost_async.add_fault(
        "Fetch", source="clients", topic=TOPIC, count=2, action={"error": "OFFSET_OUT_OF_RANGE"}
    )
    again = await brought(told, batch_of(ROWS))
    assert [each.found for each in again.partitions] == [1_000]


async def test_rows_that_the_broker_does_not_take(fencepost_async: AsyncCluster) -> None:
    late = NewRecord(value=b"of the year 5138", timestamp=99_999_999_999_999)
    done = await brought(assignment(fencepost_async), batch_of([*ROWS[:100], late]))
    assert done.refused is not None
    assert "loaded-0 does not take the rows from offset " in done.refused
    assert "INVALID_TIMESTAMP" in done.refused


def test_an_assignment_as_text() -> None:
    told = Assignment(
        bootstrap="127.0.0.1:1",
        topic="a",
        topic_id=None,
        bases=(1, 2),
        limits=BatchLimits(codec=Codec.ZSTD),
        patience_s=1.5,
    )
    assert Assignment.from_json(told.to_json()) == told
