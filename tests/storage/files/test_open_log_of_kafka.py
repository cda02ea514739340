"""What a real Kafka wrote is opened, read, and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, iter_headers, read_header
from fencepost.storage.files.file_system import RealFileSystem
from fencepost.storage.files.open_log import OpenedLog, open_log
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.formats.checkpoints import decode_epochs, decode_offsets, decode_snapshot
from fencepost.storage.formats.file_names import (
    LEADER_EPOCHS,
    LOG_STARTS,
    RECOVERY_POINTS,
    directory_name,
)
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from tests.harness.kafka_writes import STEP_MS, KafkaWrites, KafkaWrote
from tests.harness.logs import append_marker
from tests.harness.records import batch

KEYS: Final = [
    ("plain", 0),
    ("plain", 1),
    ("codecs", 0),
    ("compacted", 0),
    ("transactions", 0),
    ("shortened", 0),
    ("empty", 0),
]
CONFIG: Final = LogConfig(segment_ms=10 * STEP_MS, index_interval_bytes=300)
"""As Kafka's topics have it."""


@pytest.fixture(params=["killed", "stopped"])
def wrote(request: pytest.FixtureRequest, kafka_wrote: KafkaWrites) -> KafkaWrote:
    return kafka_wrote.killed if request.param == "killed" else kafka_wrote.stopped


@pytest.fixture(params=KEYS, ids=lambda key: directory_name(*key))
def key(request: pytest.FixtureRequest) -> tuple[str, int]:
    found: tuple[str, int] = request.param
    return found


@pytest.fixture
def folder(wrote: KafkaWrote, tmp_path: Path) -> Path:
    """A copy of all of it."""
    return wrote.copy(tmp_path / "logs")


def opened(folder: Path, key: tuple[str, int], wrote: KafkaWrote) -> OpenedLog:
    recovery_points = decode_offsets((folder / RECOVERY_POINTS).read_bytes())
    log_starts = decode_offsets((folder / LOG_STARTS).read_bytes())
    return open_log(
        RealFileSystem(),
        folder / directory_name(*key),
        directory_name(*key),
        CONFIG,
        now_ms=wrote.began_ms + 3600 * 1000,
        shared=ProcessLimits(),
        clean=wrote.folder.name == "stopped",
        recovery_point=recovery_points.get(key, 0),
        log_start_offset=log_starts.get(key, 0),
    )


def batches_of(log: Log) -> bytes:
    found = b""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(
            offset, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
        )
        if not read.buffers:
            break  # the rest was compacted away
        found += b"".join(read.buffers)
        offset = max(header.next_offset for _, header in iter_headers(found))
    return found


def records_of(batches: bytes) -> list[Record]:
    return [
        record
        for position, _ in iter_headers(batches)
        for record in iter_records(batches, position)
    ]


def test_it_reads_as_it_did(wrote: KafkaWrote, folder: Path, key: tuple[str, int]) -> None:
    want = wrote.partitions[key]
    log, recovery = opened(folder, key, wrote)
    assert log.log_start_offset == want.log_start_offset
    assert log.log_end_offset == want.log_end_offset
    assert batches_of(log) == want.batches
    assert not recovery.cut
    epochs = decode_epochs((wrote.folder / log.name / LEADER_EPOCHS).read_bytes())
    assert all(log.end_offset_for_epoch(epoch).epoch == epoch for epoch, _ in epochs[:-1])


def test_offsets_and_times_are_found(wrote: KafkaWrote, folder: Path, key: tuple[str, int]) -> None:
    log, _ = opened(folder, key, wrote)
    start = log.log_start_offset
    records = [each for each in records_of(wrote.partitions[key].batches) if each.offset >= start]
    for record in records:
        first = next(each for each in records if each.timestamp >= record.timestamp)
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (first.offset, first.timestamp)
        read = log.read(record.offset, max_bytes=1, upper_bound=2**62, min_one_batch=True)
        header = read_header(read.buffers[0])
        assert header.base_offset <= record.offset < header.next_offset


def test_its_producers_are_known(kafka_wrote: KafkaWrites, tmp_path: Path) -> None:
    """As the snapshot says, or the batches where there is none at the end."""
    killed, stopped = kafka_wrote.killed, kafka_wrote.stopped
    for key in KEYS:
        end = stopped.partitions[key].log_end_offset
        snapshot = stopped.folder / directory_name(*key) / f"{end:020d}.snapshot"
        known = decode_snapshot(snapshot.read_bytes()) if snapshot.exists() else ()
        log, _ = opened(stopped.copy(tmp_path / f"stopped-{key}"), key, stopped)
        assert log.producers() == tuple(sorted(known, key=lambda each: each.producer_id))
        if key[0] == "plain" or not known:
            continue
        log, _ = opened(killed.copy(tmp_path / f"killed-{key}"), key, killed)
        found = {each.producer_id: each.batches[-1] for each in log.producers()}
        assert found == {each.producer_id: each.batches[-1] for each in known}
        assert log.last_stable_offset(end) == (8 if key[0] == "transactions" else end)


TRANSACTIONS: Final = ("transactions", 0)


def check_transactions(log: Log) -> None:
    """Offsets 0 to 3 are committed, 4 to 7 aborted, and 8 on is open."""
    (found,) = log.aborted_transactions(0, log.log_end_offset)
    assert (found.first_offset, found.last_offset, found.last_stable_offset) == (4, 7, 8)
    (producer,) = log.producers()
    assert producer.producer_id == found.producer_id
    assert log.last_stable_offset(log.log_end_offset) == producer.txn_first_offset == 8


def test_its_aborted_transactions_are_known(wrote: KafkaWrote, folder: Path) -> None:
    log, _ = opened(folder, TRANSACTIONS, wrote)
    check_transactions(log)


def test_after_a_kill_its_transaction_index_is_made_again_as_it_was(
    kafka_wrote: KafkaWrites, tmp_path: Path
) -> None:
    folder = kafka_wrote.killed.copy(tmp_path / "logs")
    (index,) = (folder / directory_name(*TRANSACTIONS)).glob("*.txnindex")
    data = index.read_bytes()
    index.unlink()
    log, _ = opened(folder, TRANSACTIONS, kafka_wrote.killed)
    check_transactions(log)
    assert index.read_bytes() == data


def test_its_open_transaction_is_gone_on_with(wrote: KafkaWrote, folder: Path) -> None:
    log, _ = opened(folder, TRANSACTIONS, wrote)
    (producer,) = log.producers()
    ended = append_marker(
        log,
        producer.producer_id,
        producer.producer_epoch + 1,
        committed=False,
        coordinator_epoch=producer.coordinator_epoch,
        transaction_version=2,
    )
    assert isinstance(ended, AppendResult)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset
    assert [each.first_offset for each in log.aborted_transactions(0, 100)] == [4, 8]


def test_it_is_gone_on_with(wrote: KafkaWrote, folder: Path, key: tuple[str, int]) -> None:
    log, _ = opened(folder, key, wrote)
    now_ms = wrote.began_ms + 3600 * 1000
    appended = b""
    for number in range(30):
        rows = [(now_ms + 1000 * (3 * number + each), b"key", b"value") for each in range(3)]
        data = batch(*rows)
        result = log.append_as_leader(data, leader_epoch=9, now_ms=now_ms)
        assert isinstance(result, AppendResult)
        appended += bytes(data)
    want = wrote.partitions[key].batches + appended
    assert batches_of(log) == want
    log.close()
    log = open_log(
        RealFileSystem(),
        log.directory,
        log.name,
        CONFIG,
        now_ms=now_ms,
        shared=ProcessLimits(),
        clean=True,
        log_start_offset=wrote.partitions[key].log_start_offset,
    ).log
    assert batches_of(log) == want
    assert log.latest_epoch == 9


def test_what_it_is_sent_is_written_as_kafka_wrote_it(
    kafka_wrote: KafkaWrites, tmp_path: Path
) -> None:
    """Logs, indexes and snapshots of closed segments, byte for byte."""
    killed = kafka_wrote.killed
    want = killed.folder / "plain-0"
    now_ms = killed.began_ms + 3600 * 1000
    log = open_log(
        RealFileSystem(),
        tmp_path / "plain-0",
        "plain-0",
        CONFIG,
        now_ms=now_ms,
        shared=ProcessLimits(),
        clean=True,
    ).log
    batches = killed.partitions["plain", 0].batches
    for position, header in iter_headers(batches):
        log.append_as_follower([batches[position : position + header.size]], now_ms=now_ms)
    log.close()
    names = sorted(path.name for path in want.iterdir() if path.name[0] == "0")
    assert len(names) == 4 * 4 - 1
    for name in names:
        data = (want / name).read_bytes()
        got = (tmp_path / "plain-0" / name).read_bytes()
        if name.startswith("00000000000000000036.") and name.endswith("index"):
            data = data.rstrip(b"\0")  # Kafka was killed; and it notes the last time when it closes
            assert got.startswith(data), name
        else:
            assert got == data, name
