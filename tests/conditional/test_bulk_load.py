"""The bulk load of the KIP: whatever happens to the loader, the log equals the file once.

``FENCEPOST_LOADS`` says how often it is killed.
"""

from __future__ import annotations

import asyncio
import os
import random
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from fencepost.client import Client, NewRecord, Partition, encode_records, produce
from fencepost.testing.cluster import AsyncCluster
from tests.conditional.loader import ended, run, start
from tests.conditional.weather import bad_weather
from tests.harness.log_reader import log_of

KILLS: Final = int(os.environ.get("FENCEPOST_LOADS", "20"))
SEED: Final = int(os.environ.get("FENCEPOST_LOADS_SEED", "27"))
CHUNK: Final = 10
LINES: Final = 40 * CHUNK * (KILLS + 1)
STARTING_S: Final = 0.6
LOADING_S: Final = 0.25
"""How long a loader lives at most: of those that are killed while they start, and the others."""
TOPIC: Final = "loaded"
AGAIN: Final = 75

pytestmark = pytest.mark.fencepost(
    brokers=3,
    topics=[
        {
            "name": TOPIC,
            "partitions": 1,
            "replication_factor": 3,
            "configs": {"check.expected.offsets": "true", "retention.ms": "-1"},
        }
    ],
)


@pytest.fixture
async def client(fencepost_async: AsyncCluster) -> AsyncIterator[Client]:
    async with Client(fencepost_async.bootstrap, client_id="another-client") as made:
        yield made


async def values(client: Client) -> list[bytes]:
    """Those of all records."""
    return [each.value or b"" for each in await log_of(client, TOPIC)]


def write_lines(path: Path, count: int) -> list[bytes]:
    """A file of different lines, of which one in ten is empty."""
    drawn = random.Random(SEED)
    lines = [
        b"" if number % 10 == 9 else b"line %d %s" % (number, drawn.randbytes(8).hex().encode())
        for number in range(count)
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return lines


async def append(client: Client, at: int, *values: bytes) -> None:
    """Another writer appends."""
    partition = Partition(topic=TOPIC, index=0)
    records = [NewRecord(value=value, timestamp=1_700_000_000_000) for value in values]
    client.forget()
    connection = await client.leader(TOPIC, 0)
    done = await produce(connection, partition, encode_records(records, base_offset=at))
    assert done is not None
    assert done.error == 0, done


@pytest.mark.timeout(120 + 6 * KILLS)
async def test_the_log_equals_the_file_however_often_the_loader_is_killed(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    drawn = random.Random(SEED)
    file = tmp_path / "lines"
    lines = write_lines(file, LINES)
    lengths: list[int] = []

    async def begin() -> Process:
        options = ("--chunk", str(CHUNK), "--patience", "20")
        return await start(fencepost_async.bootstrap, TOPIC, file, *options)

    async with bad_weather(fencepost_async, TOPIC, SEED, probability=0.03):
        # Some requests come when their loader is gone and the next one has looked; and all come a
        # little late, so that there is always something under way.
        for probability, delay_ms in ((0.01, 800), (0.01, 1600), (0.01, 2400), (1, 5)):
            await fencepost_async.add_fault(
                "Produce",
                topic=TOPIC,
                source="clients",
                count=None,
                probability=probability,
                action={"delay": delay_ms},
            )
        while len(lengths) < KILLS:
            process = await begin()
            if drawn.random() < 0.2:
                await asyncio.sleep(drawn.uniform(0, STARTING_S))
            else:
                assert process.stdout is not None
                await process.stdout.readline()
                await asyncio.sleep(drawn.uniform(0, LOADING_S))
            if process.returncode is None:
                process.kill()
                await process.communicate()
                lengths.append(await end_of_log(fencepost_async))
                continue
            # Only where brokers kept it waiting too long it may give up.
            how = await ended(process)
            assert how.code == AGAIN, how
    how = await ended(await begin())
    assert how.code == 0, how
    assert await values(client) == lines
    assert len(set(lengths)) > KILLS // 3, f"it hardly came on: {lengths}"
    again = await ended(await begin())
    assert again.out.startswith(f"{LINES} lines are there\n0 lines were appended;"), again


async def end_of_log(cluster: AsyncCluster, topic: str = TOPIC) -> int:
    state = await cluster.partition(topic, 0)
    return max(replica.log_end_offset for replica in state.replicas)


@pytest.mark.parametrize("chunks", [1, 2])
async def test_records_of_others_in_place_of_whole_chunks_stop_it(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path, chunks: int
) -> None:
    """A loader that takes the log's end for its own progress would lose these lines."""
    file = tmp_path / "lines"
    lines = write_lines(file, 5 * CHUNK)
    file.write_bytes(b"".join(line + b"\n" for line in lines[:CHUNK]))
    first = await run(fencepost_async.bootstrap, TOPIC, file, "--chunk", str(CHUNK))
    assert first.code == 0, first
    foreign = [b"not a line %d" % number for number in range(chunks * CHUNK)]
    await append(client, CHUNK, *foreign)
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    how = await run(fencepost_async.bootstrap, TOPIC, file, "--chunk", str(CHUNK))
    assert how.code == 1
    assert how.err == (
        f"bulk_load: {TOPIC}-0 has something else at offset {CHUNK} than line {CHUNK + 1} of "
        f"{file}: nothing was appended there\n"
    )
    assert await values(client) == [*lines[:CHUNK], *foreign]


@pytest.mark.parametrize("chunks", [1, 2])
async def test_records_of_others_that_come_meanwhile_stop_it(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path, chunks: int
) -> None:
    file = tmp_path / "lines"
    lines = write_lines(file, 5 * CHUNK)
    second = await fencepost_async.add_fault(
        "Produce", topic=TOPIC, client_id="bulk-load", after=1, action={"delay": 4000}
    )
    process = await start(fencepost_async.bootstrap, TOPIC, file, "--chunk", str(CHUNK))
    await fencepost_async.wait_for_fault(second.id)
    foreign = [b"not a line %d" % number for number in range(chunks * CHUNK)]
    await append(client, CHUNK, *foreign)
    how = await ended(process)
    assert how.code == 1
    assert f"something else at offset {CHUNK} than line {CHUNK + 1}" in how.err
    assert await values(client) == [*lines[:CHUNK], *foreign]


async def test_a_request_of_a_killed_loader_that_comes_late_is_known_for_its_own(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    lines = write_lines(file, 3 * CHUNK)
    late = await fencepost_async.add_fault("Produce", topic=TOPIC, action={"delay": 6000})
    process = await start(fencepost_async.bootstrap, TOPIC, file, "--chunk", str(CHUNK))
    await fencepost_async.wait_for_fault(late.id)
    process.kill()
    await process.communicate()
    # It looks at the log while that is empty still, and its first request is later than the other.
    later = await fencepost_async.add_fault("Produce", topic=TOPIC, action={"delay": 6000})
    how = await run(fencepost_async.bootstrap, TOPIC, file, "--chunk", str(CHUNK))
    assert how.code == 0, how
    assert how.out.startswith("0 lines are there\n"), "it looked before the other came"
    assert (await fencepost_async.fault(later.id)).hits == 1
    assert await values(client) == lines


async def test_a_base_and_what_stands_before_and_behind(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    lines = write_lines(file, 25)
    await append(client, 0, b"before", b"it")
    options = ("--base", "2", "--chunk", str(CHUNK))
    how = await run(fencepost_async.bootstrap, TOPIC, file, *options)
    where = f"all 25 are at {TOPIC}-0, offsets 2 to 26"
    assert how.out == f"0 lines are there\n25 lines were appended; {where}\n"
    await append(client, 27, b"behind", b"it")
    how = await run(fencepost_async.bootstrap, TOPIC, file, *options)
    assert how.out == f"25 lines are there\n0 lines were appended; {where}\n"
    assert await values(client) == [b"before", b"it", *lines, b"behind", b"it"]


async def test_a_base_behind_the_end_of_the_log(
    fencepost_async: AsyncCluster, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    write_lines(file, 5)
    how = await run(fencepost_async.bootstrap, TOPIC, file, "--base", "7")
    assert (how.code, how.err) == (
        1,
        f"bulk_load: {TOPIC}-0 ends at offset 0, before the base 7\n",
    )


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"check.expected.offsets": "true", "check.expected.offsets.source": "header"},
        {"check.expected.offsets": "true", "check.expected.offsets.scope": "key"},
    ],
    ids=["off", "header", "key"],
)
async def test_a_topic_that_does_not_check(
    fencepost_async: AsyncCluster, tmp_path: Path, configs: dict[str, str]
) -> None:
    file = tmp_path / "lines"
    write_lines(file, 5)
    await fencepost_async.create_topic("other", configs=configs)
    how = await run(fencepost_async.bootstrap, "other", file)
    assert how.code == 1
    assert "the topic of other-0 must have check.expected.offsets=true" in how.err
    assert await end_of_log(fencepost_async, "other") == 0


async def test_a_file_that_is_not_there(fencepost_async: AsyncCluster, tmp_path: Path) -> None:
    how = await run(fencepost_async.bootstrap, TOPIC, tmp_path / "nothing")
    assert how.code == 2
    assert how.err.count("\n") == 1
