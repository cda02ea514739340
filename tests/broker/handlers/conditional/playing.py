"""Rows are played: a cluster as they say, a request, the answer and the logs after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fencepost.broker.node.cluster import Conformance
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.storage.log.append_result import AppendResult
from tests.broker.handlers.conditional import frames
from tests.broker.handlers.conditional.rows import Batch, Played, Row, Step, batch
from tests.harness.driver import Driver
from tests.harness.driver_requests import create


def table(rows: Sequence[Row]) -> pytest.MarkDecorator:
    """A test for every row."""
    names = [row.name.replace(" ", "-") for row in rows]
    assert len(set(names)) == len(names), "two rows of one name"
    return pytest.mark.parametrize("row", rows, ids=names)


def play(row: Row, version: int, conformance: Conformance = Conformance.KIP) -> Played:
    """The outcome of the row at this version."""
    driver = Driver(1, row.configs, conformance)
    for name, configs in row.topics.items():
        create(driver, name, [(1,), (1,)], **dict(configs))
    for partition, steps in row.before.items():
        for step in steps:
            take(driver, partition, step)
    parts = [
        (partition, b"".join(each.encoded for each in batches)) for partition, batches in row.send
    ]
    asked = frames.send(driver, parts, version=version)
    return asked.answers, {partition: stored(driver, partition) for partition in row.after}


def take(driver: Driver, partition: str, step: Step) -> None:
    """Let something happen to a partition."""
    name, index = name_of(partition), index_of(partition)
    if isinstance(step, str):
        step = batch(step, 0)  # this way nothing is compared
    if isinstance(step, Batch):
        log = driver.leader(name, index)
        result = log.append(bytearray(step.encoded), now_ms=driver.clock.now_ms())
        assert isinstance(result, AppendResult), result
        driver.cluster.scheduler.run_due()
        return
    step(driver, name, index)


def stored(driver: Driver, partition: str, broker_id: int = 1) -> str:
    """The values that a broker's log has, from its start to its end."""
    records = list(records_of(driver, partition, broker_id))
    log = driver.replica(broker_id, name_of(partition), index_of(partition)).log
    seen = [record for record in records if record.offset >= log.log_start_offset]
    first, end = log.log_start_offset, log.log_end_offset
    assert [record.offset for record in seen] == list(range(first, end)), "offsets in a row"
    return "".join((record.value or b"").decode() for record in seen)


def records_of(driver: Driver, partition: str, broker_id: int = 1) -> Iterator[Any]:
    """All records of a broker's log."""
    log = driver.replica(broker_id, name_of(partition), index_of(partition)).log
    offset = log.local_log_start_offset
    while offset < log.log_end_offset:
        read = log.read(
            offset, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
        )
        for buffer in read.buffers:
            for at, header in iter_headers(buffer):
                yield from iter_records(buffer, at)
                offset = header.next_offset


def name_of(partition: str) -> str:
    return partition.rpartition("-")[0]


def index_of(partition: str) -> int:
    return int(partition.rpartition("-")[2])
