"""``fencepost audit`` of one large partition: what a task takes of memory, and what a core more is.

A served fencepost writes it: batches of 16 records of 1,024 random bytes, as an idempotent Java
producer sends them, in 200 segments. It is audited with one core and with two. Python workers
outlive the tasks that they run, so that their largest resident set is the peak of all of these.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Mapping
from typing import Final

from bench import inside, pipeline_audit, process, servers, wire
from bench import spark as sessions
from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

SEGMENTS: Final = 200
TURNS: Final = 3
_PRODUCER: Final = 7
_CHECKSUMMED_AT: Final = 21
_PRODUCER_AT: Final = 43
_SEQUENCE_AT: Final = 53
_MASTERS: Final = ("local[1]", "local[2]")


def measure(kind: servers.Kind, mebibytes: int) -> Mapping[str, float]:
    """MB/s of headers, the share of a second core, and the peak memory of a task.

    :param mebibytes: Of records, in all segments.
    :raises bench.tools.Missing: Without Spark.
    """
    assert isinstance(kind, servers.Fencepost), "it has no peers"
    kind = of_segments(kind, mebibytes)
    rates: dict[str, float] = {}
    peaks: list[float] = []
    with servers.launching() as launch:
        kind.prepare(launch)
        with servers.started(kind, launch) as server:
            process.wait_until_idle(server.pid)
            write(server, mebibytes)
        folder = launch.directory / "data"
        megabytes = sum(log.stat().st_size for log in folder.glob("*/*/*.log")) / 1e6
        for master in _MASTERS:
            with sessions.session(master) as spark:
                times = []
                for _ in range(TURNS + 1):  # the first one warms up
                    begin = time.perf_counter()
                    pipeline_audit.audit(spark, folder, "batches")
                    times.append(time.perf_counter() - begin)
                rates[master] = megabytes / statistics.median(times[1:])
                peaks += [process.memory(pid).peak for pid in process.descendants("pyspark.daemon")]
    one, two = (rates[master] for master in _MASTERS)
    return {
        "pipeline_large_partition": two,
        "pipeline_large_partition_share": two / one,
        "pipeline_large_partition_rss": max(peaks),
    }


def of_segments(kind: servers.Fencepost, mebibytes: int) -> servers.Fencepost:
    """One broker with files, whose segments are so large that so much is `SEGMENTS` of them."""
    segment = mebibytes * (1 << 20) // SEGMENTS
    configs = (*kind.configs, f"log.segment.bytes={segment}", "log.retention.ms=-1")
    return dataclasses.replace(kind, durable=True, brokers=1, configs=configs)


def write(server: servers.Server, mebibytes: int) -> None:
    """Produce so much to one partition, as an idempotent producer does."""
    server.create((pipeline_audit.TOPIC,), 1)
    append(server, mebibytes)


def append(server: servers.Server, mebibytes: int) -> None:
    """Produce so much more to the partition."""
    with server.connect_to_leader(pipeline_audit.TOPIC, 0) as connection:
        batches = Batches(_log_end(connection))
        for _ in range(mebibytes * (1 << 20) // len(batches.data)):
            connection.ask(_request(batches.next()))
        end = _log_end(connection)
    if end != batches.offset:
        raise wire.BadAnswer(f"the partition ends at {end}, and not at {batches.offset}")


def _log_end(connection: wire.Connection) -> int:
    return wire.decode_list_offsets(
        connection.ask(wire.list_offsets_request(pipeline_audit.TOPIC, 0))
    )


class Batches:
    """One batch after the other of an idempotent producer: only their sequence numbers differ.

    :ivar offset: Where the next one begins.
    """

    def __init__(self, offset: int = 0) -> None:
        self.data = bytearray(pipeline_audit.random_batch())
        self.data[_PRODUCER_AT : _PRODUCER_AT + 10] = _PRODUCER.to_bytes(8) + bytes(2)
        self.offset = offset

    def next(self) -> bytes:
        """The next one."""
        self.data[_SEQUENCE_AT : _SEQUENCE_AT + 4] = self.offset.to_bytes(4)
        checksum = crc32c(memoryview(self.data)[_CHECKSUMMED_AT:])
        self.data[_CHECKSUMMED_AT - 4 : _CHECKSUMMED_AT] = checksum.to_bytes(4)
        self.offset += pipeline_audit.BATCH_RECORDS
        return bytes(self.data)


def _request(batch: bytes) -> bytes:
    data = TopicProduceData(
        name=pipeline_audit.TOPIC,
        partition_data=(PartitionProduceData(index=0, records=batch),),
    )
    return inside.frame("produce", 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,)))
