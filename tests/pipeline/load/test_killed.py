"""A load whose tasks and jobs are killed, with others in its way: each row once, or a refusal.

``FENCEPOST_LOAD_ROWS`` says how many rows.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka.partitioner.default import murmur2

from fencepost.client import (
    Client,
    NewRecord,
    Partition,
    encode_records,
    produce,
)
from fencepost.client.model import OffsetSpec
from fencepost.client.partitions import list_offsets
from fencepost.protocol.errors import ErrorCode
from fencepost.testing.cluster import AsyncCluster
from tests.harness.log_reader import iter_log
from tests.harness.spark import need_spark
from tests.pipeline.load.jobs import Job, job

ROWS: Final = int(os.environ.get("FENCEPOST_LOAD_ROWS", "20000"))
SEED: Final = int(os.environ.get("FENCEPOST_LOAD_SEED", "8"))
WORKERS_KILLED: Final = 3
"""Of each job. A task may fail three times before its job does."""
JOBS_KILLED: Final = (0.2, 0.6)
"""When this share of the rows is there."""
FILES: Final = 5
PARTITIONS: Final = 4
TOPIC: Final = "loaded"
AGAIN: Final = 75
CHUNKS: Final = 20
"""Of a partition, about."""
UNSPECIFIED: Final = -1
PATIENCE_S: Final = 300 + ROWS / 2_000

pytestmark = [
    pytest.mark.fencepost(
        brokers=3,
        topics=[
            {
                "name": TOPIC,
                "partitions": PARTITIONS,
                "replication_factor": 2,
                "configs": {"check.expected.offsets": "true", "retention.ms": "-1"},
            }
        ],
    ),
    pytest.mark.timeout(900 + ROWS // 500),
]


@pytest.fixture
async def client(fencepost_async: AsyncCluster) -> AsyncIterator[Client]:
    need_spark()
    async with Client(fencepost_async.bootstrap, client_id="another-client") as made:
        yield made


def write(folder: Path) -> None:
    """The rows, in files."""
    each = -(-ROWS // FILES)
    for file in range(FILES):
        numbers = range(file * each, min((file + 1) * each, ROWS))
        table = pa.table(
            {"key": [f"k{n}" for n in numbers], "value": [f"row {n}".encode() for n in numbers]}
        )
        pq.write_table(table, folder / f"part-{file}.parquet", row_group_size=10_000)


def expected() -> list[list[int]]:
    """The numbers of the rows of each partition, in their order."""
    placed: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for number in range(ROWS):
        placed[(murmur2(b"k%d" % number) & 0x7FFFFFFF) % PARTITIONS].append(number)
    return placed


def command(cluster: AsyncCluster, folder: Path) -> tuple[str, ...]:
    record_bytes = 36 + 2 * len(str(ROWS)) + 5
    chunk = max(ROWS * record_bytes // PARTITIONS // CHUNKS, 1_000)
    return (
        *(str(folder), "--bootstrap", cluster.bootstrap, "--topic", TOPIC, "--key", "key"),
        *("--chunk-bytes", str(chunk), "--batch-bytes", str(min(chunk // 3, 1 << 18))),
        *("--master", "local[2,4]", "--quiet"),
    )


async def ends(client: Client) -> list[int]:
    """Where each partition ends."""
    found = []
    for index in range(PARTITIONS):
        leader = await client.leader(TOPIC, index)
        answer = await list_offsets(leader, Partition(topic=TOPIC, index=index), OffsetSpec.LATEST)
        assert answer.error == 0
        found.append(answer.offset)
    return found


async def require_rows(client: Client, index: int, numbers: list[int]) -> None:
    """That a partition has just these rows."""
    left: Iterator[int] = iter(numbers)
    async for record in iter_log(client, TOPIC, index):
        number = next(left, None)
        assert number is not None, f"{record} is too many"
        assert (record.key, record.value) == (b"k%d" % number, b"row %d" % number)
    assert next(left, None) is None, "rows are missing"


@asynccontextmanager
async def rivals(client: Client) -> AsyncIterator[None]:
    """Others who would append where they believe that the log ends; it does not any more."""
    refused = 0

    async def go_on() -> None:
        nonlocal refused
        drawn = random.Random(SEED)
        while True:
            index = drawn.randrange(PARTITIONS)
            end = (await ends(client))[index]
            if end:
                batch = encode_records(
                    [NewRecord(value=b"a rival's", timestamp=1)], base_offset=drawn.randrange(end)
                )
                leader = await client.leader(TOPIC, index)
                answer = await produce(leader, Partition(topic=TOPIC, index=index), batch)
                assert answer is not None
                assert answer.error == ErrorCode.EXPECTED_OFFSET_MISMATCH, answer
                refused += 1
            await asyncio.sleep(0.05)

    rival = asyncio.create_task(go_on())
    try:
        yield
        assert not rival.done(), rival.exception()
        assert refused
    finally:
        rival.cancel()
        with suppress(asyncio.CancelledError):
            await rival


async def slow(cluster: AsyncCluster) -> None:
    """Requests come late, so that there is always a request under way when a process dies."""
    await cluster.add_fault(
        "Produce", topic=TOPIC, client_id="fencepost-load", count=None, action={"delay": 120}
    )


class Killer:
    """Kills workers while there is something under way, and jobs at their shares."""

    def __init__(self, client: Client) -> None:
        self.workers = 0
        self.jobs = 0
        self._client = client
        self._drawn = random.Random(SEED)

    async def watch(self, running: Job) -> None:
        """Until the job has ended, or was killed."""
        killed = 0
        while not running.has_ended:
            there = sum(await ends(self._client))
            if self.jobs < len(JOBS_KILLED) and there >= JOBS_KILLED[self.jobs] * ROWS:
                running.kill()
                self.jobs += 1
                return
            # Those before the first row are the ones that Spark plans with.
            under_way = 0 < there < ROWS and killed < WORKERS_KILLED
            if under_way and (workers := await asyncio.to_thread(running.workers)):
                with suppress(ProcessLookupError):
                    os.kill(self._drawn.choice(sorted(workers)), signal.SIGKILL)
                killed += 1
                self.workers += 1
                await asyncio.sleep(self._drawn.uniform(0, 1.5))
            await asyncio.sleep(0.05)


async def test_each_row_is_there_once(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    write(tmp_path)
    await slow(fencepost_async)
    killer = Killer(client)
    codes: list[int] = []
    async with rivals(client):
        while 0 not in codes:
            assert len(codes) < 10, codes
            with job(*command(fencepost_async, tmp_path)) as running:
                async with asyncio.timeout(PATIENCE_S):
                    await killer.watch(running)
                code, out, err = await asyncio.to_thread(running.ended, PATIENCE_S)
            assert code in (0, AGAIN, -signal.SIGKILL), out + err
            codes.append(code)
    assert codes.count(-signal.SIGKILL) == len(JOBS_KILLED)
    assert killer.workers
    assert f"all {ROWS} are there: {TOPIC}-0 0-" in out
    for index, numbers in enumerate(expected()):
        await require_rows(client, index, numbers)


async def test_foreign_records_stop_it_and_are_named(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    write(tmp_path)
    await slow(fencepost_async)
    with job(*command(fencepost_async, tmp_path)) as running:
        async with asyncio.timeout(PATIENCE_S):
            while not (there := (await ends(client))[1]):
                assert not running.has_ended
                await asyncio.sleep(0.02)
        # As many as a chunk has: the log then ends where it would with the next chunk in it.
        foreign = [NewRecord(value=b"foreign", timestamp=1)] * there
        leader = await client.leader(TOPIC, 1)
        batch = encode_records(foreign, base_offset=UNSPECIFIED)
        answer = await produce(leader, Partition(topic=TOPIC, index=1), batch)
        assert answer is not None
        assert answer.error == 0
        at = answer.base_offset
        code, out, err = await asyncio.to_thread(running.ended, PATIENCE_S)
    assert code == 1, out + err
    why = f"fencepost load: {TOPIC}-1 has something else at offset {at} than the source"
    assert why in err.splitlines()
    placed = expected()
    found = [record async for record in iter_log(client, TOPIC, 1)]
    assert [each.value for each in found] == [
        *(b"row %d" % number for number in placed[1][:at]),
        *(b"foreign" for _ in foreign),
    ]
    for index in (0, 2, 3):
        end = (await ends(client))[index]
        await require_rows(client, index, placed[index][:end])
