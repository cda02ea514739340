"""What a log writes is read by Kafka's own DumpLogSegments, and gone on with by a real broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.records import iter_headers
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import RealFileSystem
from fencepost.storage.files.open_log import open_log
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.formats.file_names import (
    KEY_OFFSETS,
    LOCK,
    FileKind,
    parse_segment_file_name,
)
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from tests.harness.kafka_tools import kafka_tool
from tests.harness.kafka_writes import KafkaWrites, stored
from tests.harness.logs import T, append, append_marker
from tests.harness.records import batch
from tests.harness.run import Finished
from tests.harness.wait import wait_until

NOW: Final = T + 60_000
CONFIG: Final = LogConfig(segment_bytes=4000, index_interval_bytes=300)
COMPACTED: Final = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
COUNT: Final = 300
"""Records in the log."""


def opened(directory: Path, config: LogConfig = CONFIG, *, clean: bool = False) -> FileLog:
    return open_log(
        RealFileSystem(),
        directory,
        directory.name,
        config,
        now_ms=NOW,
        shared=ProcessLimits(),
        clean=clean,
    ).log


def fill(log: FileLog, *, first: int = 0, count: int = COUNT, epoch: int = 0) -> None:
    """Three records a batch, of every codec and of two idempotent producers in turns.

    Every tenth batch is older than the one before it.
    """
    for start in range(first, first + count, 3):
        number = start // 3
        late = -5000 if number % 10 == 9 else 0
        rows = [
            (T + 1000 * n + late, b"key %d" % (n % 20), b"value %d" % n)
            for n in range(start, start + 3)
        ]
        data = batch(
            *rows,
            codec=list(Codec)[number % 5],
            producer=(7000 + number % 2, 0, 3 * (number // 2)),
        )
        result = log.append_as_leader(data, leader_epoch=epoch + (start - first) // 120, now_ms=NOW)
        assert isinstance(result, AppendResult), result


def dump(directory: Path, kinds: Iterable[FileKind], *options: str) -> Finished:
    """What the tool says of all files of these kinds."""
    found = [(path, parse_segment_file_name(path.name)) for path in sorted(directory.iterdir())]
    chosen = [str(path) for path, file in found if file is not None and file.kind in kinds]
    assert chosen
    arguments = [*options, "--files", ",".join(chosen)]
    return kafka_tool("org.apache.kafka.tools.DumpLogSegments", *arguments)


def test_transactions_are_read(tmp_path: Path) -> None:
    """Markers, the transaction index, and the open transaction in the producer snapshot."""
    directory = tmp_path / "topic-0"
    log = opened(directory)
    for producer in (4, 5, 6):
        append(log, batch(b"v", producer=(producer, 2, 0), transactional=True))
    append_marker(log, 4, 3, committed=False, coordinator_epoch=8)
    append_marker(log, 5, 3, committed=True, coordinator_epoch=8)
    log.close()
    kinds = (FileKind.LOG, FileKind.TRANSACTION_INDEX, FileKind.PRODUCER_SNAPSHOT)
    told = dump(directory, kinds, "--print-data-log")
    assert not complaints(told)
    assert "endTxnMarker: ABORT coordinatorEpoch: 8" in told.out
    assert "endTxnMarker: COMMIT coordinatorEpoch: 8" in told.out
    assert "producerId: 4 firstOffset: 0 lastOffset: 3 lastStableOffset: 1" in told.out
    assert re.search(r"producerId: 6 .*coordinatorEpoch: -1 currentTxnFirstOffset: .*2", told.out)


INDEXES: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


def complaints(told: Finished) -> list[str]:
    """What the tool found wrong: all of it goes to standard error.

    But for this: with --deep-iteration it takes it for a gap that a file begins behind offset 0.
    """
    lines = [line for line in told.err.splitlines() if line]
    starts = {index for index, line in enumerate(lines) if re.match(r"  -1 is followed by", line)}
    expected = starts | {index - 1 for index in starts}
    return [line for index, line in enumerate(lines) if index not in expected]


def closed(directory: Path) -> None:
    log = opened(directory)
    fill(log)
    log.close()


def left_open(directory: Path) -> None:
    """As when the process is killed."""
    log = opened(directory)
    fill(log)
    log.abandon()


def opened_again(directory: Path) -> None:
    log = opened(directory)
    fill(log, count=99)
    log.close()
    log = opened(directory, clean=True)
    fill(log, first=99, count=COUNT - 99, epoch=5)
    log.close()


def recovered(directory: Path) -> None:
    """The indexes are those that recovery makes, the end of the log is torn."""
    left_open(directory)
    for path in [*directory.glob("*.index"), *directory.glob("*.timeindex")]:
        path.unlink()
    last = max(directory.glob("*.log"))
    last.write_bytes(last.read_bytes() + last.read_bytes()[:70])
    opened(directory).close()


WAYS: Final[dict[str, Callable[[Path], None]]] = {
    "closed": closed,
    "left open": left_open,
    "opened again": opened_again,
    "recovered": recovered,
}


@pytest.fixture(scope="module", params=WAYS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of ours with all the records, that came about in some way."""
    directory = tmp_path_factory.mktemp("log") / "topic-0"
    WAYS[request.param](directory)
    assert len(list(directory.glob("*.log"))) > 3
    return directory


@pytest.fixture(scope="module")
def told(written: Path) -> Finished:
    """All that the tool says of it."""
    return dump(written, FileKind, "--deep-iteration")


def test_nothing_is_wrong_with_it(told: Finished) -> None:
    assert not complaints(told)


def test_its_records_are_read(told: Finished) -> None:
    assert offsets(told) == list(range(COUNT))
    batches = [line for line in told.lines if line.startswith("baseOffset: ")]
    assert len(batches) == COUNT // 3
    assert all(line.endswith(" isvalid: true") for line in batches)
    assert set(re.findall(r"compresscodec: (\w+)", told.out)) == {
        each.name.lower() for each in Codec
    }


def offsets(told: Finished) -> list[int]:
    return [int(found) for found in re.findall(r"^\| offset: (\d+)", told.out, re.MULTILINE)]


def test_its_indexes_are_read(told: Finished) -> None:
    assert len(re.findall(r"^offset: \d+ position: \d+$", told.out, re.MULTILINE)) > 20
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", told.out, re.MULTILINE)) > 20


def test_its_producer_snapshots_are_read(written: Path, told: Finished) -> None:
    found = sorted(path.stem for path in written.glob("*.snapshot"))
    producers = re.findall(
        r"^producerId: (\d+) .* lastOffset: (\d+) offsetDelta: 2", told.out, re.MULTILINE
    )
    assert len(found) >= 3
    assert len(producers) == 2 * len(found)
    ends = [
        max(int(offset) for _, offset in producers[at : at + 2]) + 1
        for at in range(0, len(producers), 2)
    ]
    assert ends == [int(stem) for stem in found]


@pytest.mark.parametrize("option", ["--verify-index-only", "--index-sanity-check"])
def test_its_indexes_are_right(written: Path, option: str) -> None:
    checked = dump(written, INDEXES, option)
    assert not complaints(checked)
    found = [*written.glob("*.index"), *written.glob("*.timeindex")]
    passed = checked.out.count("passed sanity check")
    assert passed == (len(found) if option == "--index-sanity-check" else 0)


def test_a_compacted_log_is_read(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    log = opened(directory, COMPACTED)
    fill(log)
    log.roll(NOW)
    assert log.compact(NOW, COUNT) == COUNT - 20
    log.close()
    told = dump(directory, FileKind, "--deep-iteration")
    assert not complaints(told)
    assert offsets(told) == list(range(COUNT - 20, COUNT))
    assert "isvalid: false" not in told.out


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_what_is_wrong_would_be_seen(tmp_path: Path, kind: str) -> None:
    """An index that says another offset than the log is complained of."""
    directory = tmp_path / "topic-0"
    closed(directory)
    path = directory / f"00000000000000000000.{kind}"
    data = bytearray(path.read_bytes())
    data[7 if kind == "timeindex" else 3] -= 1
    path.write_bytes(data)
    assert complaints(dump(directory, INDEXES, "--verify-index-only"))


def test_a_broker_goes_on_with_it(kafka_wrote: KafkaWrites) -> None:
    """From Kafka to a log of ours, and back."""
    kafka, before = kafka_wrote.kafka, kafka_wrote.stopped.partitions["plain", 0]
    end = before.log_end_offset
    directory = kafka.folders[1] / "logs" / "plain-0"
    log = opened(directory, clean=True)
    assert log.log_end_offset == end
    assert log.latest_epoch is not None
    fill(log, first=end, epoch=log.latest_epoch)
    ours = batches_of(log)
    assert ours.startswith(before.batches)
    assert len(log.key_offsets()) >= 20
    log.close()
    assert (directory / KEY_OFFSETS).exists()
    kafka.start(1)
    kafka.wait()
    wait_until("it is led", lambda: kafka.cluster.end_offset("plain") == end + COUNT)
    assert stored(kafka.cluster, "plain", 0, 0, end + COUNT) == ours
    with pytest.raises(BlockingIOError):
        RealFileSystem().lock(kafka.folders[1] / "logs" / LOCK)
    # The log was taken for one that was shut down cleanly, and nothing of it mended: nor does it
    # mind the file that is not Kafka's.
    log_text = next(iter(kafka.processes.values())).log_since(0)
    assert "plain-0" not in log_text, log_text
    assert (directory / KEY_OFFSETS).exists()


def batches_of(log: FileLog) -> bytes:
    found = b""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(
            offset, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
        )
        found += b"".join(read.buffers)
        offset = max(header.next_offset for _, header in iter_headers(found))
    return found
