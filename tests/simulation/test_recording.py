"""Recorded runs: they leave behind what a served cluster would, the same each time."""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest

from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.cli import main
from fencepost.protocol.records import iter_headers
from fencepost.simulation.actions import APPLICATION_ACTIONS, TRANSACTION_ACTIONS
from fencepost.simulation.environment import IN_MEMORY
from fencepost.simulation.runner import WEIGHTS, run_long
from fencepost.simulation.schedule import TOPIC, ActionKind
from fencepost.storage.files.file_system import RealFileSystem
from fencepost.storage.log.interface import Log
from fencepost.storage.tier.object_store import ObjectKind
from fencepost.storage.tier.segment_metadata import RemoteSegment
from tests.harness.recorded_cluster import Recorded, recorded
from tests.harness.run import run

MINUTES: Final = 1.0
SEED: Final = 4
"""One whose topic checks expected offsets."""
_LATER_MS: Final = 1_800_000_000_000


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("recorded") / "run", SEED, MINUTES)


def lines(trace: Path) -> Iterator[dict[str, object]]:
    for path in sorted(trace.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def headers(log: Log) -> list[tuple[int, int, int]]:
    found = []
    at = log.local_log_start_offset
    while at < log.log_end_offset:
        read = log.read(at, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True)
        for buffer in read.buffers:
            for _, header in iter_headers(buffer):
                found.append((header.base_offset, header.partition_leader_epoch, header.crc))
                at = header.next_offset
    return found


def test_every_invariant_holds_on_files(left: Recorded) -> None:
    assert left.outcome.failure is None


def test_a_crash_may_forget_a_log_start(tmp_path: Path) -> None:
    """What was deleted is in the file again, and lies before where the leader's log begins."""
    assert recorded(tmp_path / "run", 1, 2.1).outcome.failure is None


@pytest.mark.parametrize("hashes", ["1", "2", "4711"])
def test_a_seed_leaves_the_same_bytes_however_python_hashes(
    left: Recorded, tmp_path: Path, hashes: str
) -> None:
    command = [sys.executable, "-m", "fencepost", "simulate", "--record", str(tmp_path / "again")]
    command += ["--seed", str(SEED), "--minutes", str(MINUTES)]
    run(command, code=0, env={**os.environ, "PYTHONHASHSEED": hashes})
    again, first = contents(tmp_path / "again"), contents(left.data.parent)
    assert [name for name in {*again, *first} if again.get(name) != first.get(name)] == []
    assert {path.split("/")[0] for path in again} == {"data", "schedule.txt", "tier", "trace"}


def test_seeds_leave_different_bytes(left: Recorded, tmp_path: Path) -> None:
    other = recorded(tmp_path / "other", SEED + 1, MINUTES / 10)
    assert contents(other.trace) != contents(left.trace)


def test_a_cluster_goes_on_from_the_data(left: Recorded, tmp_path: Path) -> None:
    setup = left.outcome.schedule.setup
    # A copy: opening a data directory changes it, and other tests read this one.
    data = shutil.copytree(left.data, tmp_path / "data")
    data_dir = open_data_dir(RealFileSystem(), data, broker_ids=setup.broker_ids, sync=False)
    addresses = tuple(
        Address(host="127.0.0.1", port=9092 + n, advertised_host=f"broker-{n}")
        for n in setup.broker_ids
    )
    configs = {"remote.log.storage.system.enable": "true"}
    cluster = Cluster(
        ClusterOptions(addresses=addresses, broker_ids=tuple(setup.broker_ids), configs=configs),
        ManualClock(_LATER_MS),
        make_persistence=partial(DataDirPersistence, data_dir),
    )
    assert isinstance(cluster.persistence, DataDirPersistence)
    assert cluster.persistence.recovery_report is not None
    assert cluster.persistence.recovery_report.clean
    partitions = cluster.controller.image.topics[TOPIC].partitions
    assert len(partitions) == setup.partitions
    for index, partition in enumerate(partitions):
        logs = [headers(cluster.brokers[b].replicas[TOPIC, index].log) for b in partition.replicas]
        longest = max(logs, key=len)
        assert longest
        assert all(log == longest[len(longest) - len(log) :] for log in logs)
    data_dir.close()


def test_the_tier_is_laid_out_as_a_folder_of_serve(left: Recorded) -> None:
    tier = left.data.parent / "tier"
    metadata = [path for path in tier.rglob("*") if path.name.endswith(ObjectKind.METADATA)]
    assert metadata
    for path in metadata:
        segment = RemoteSegment.from_json(path.read_bytes())
        log = path.with_name(path.name.removesuffix(ObjectKind.METADATA) + ObjectKind.LOG)
        if segment.is_served:
            assert log.stat().st_size == segment.size_bytes


def test_the_trace_tells_of_everybody_and_everything(left: Recorded) -> None:
    exchanges, events = Counter[object](), Counter[object]()
    numbers: list[int] = []
    for line in lines(left.trace):
        event = line.get("event")
        if isinstance(event, dict):
            events[event["kind"]] += 1
        else:
            exchanges[line["api"]] += 1
            assert isinstance(line["number"], int)
            numbers.append(line["number"])
    assert {"trace_started", "topic_known", "trace_ended", "leader_changed"} <= set(events)
    apis = {"Produce", "Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "Metadata"}
    assert apis <= set(exchanges)
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_the_end_is_told_behind_every_request(left: Recorded) -> None:
    told = list(lines(left.trace))
    requests = [cast(int, line["number"]) for line in told if "event" not in line]
    event = cast(dict[str, object], told[-1]["event"])
    assert event["kind"] == "trace_ended"
    assert told[-1]["newest"] == max(requests)


def test_a_line_tells_what_a_producer_expected(left: Recorded) -> None:
    stated = [
        batch["expected_offset"]
        for line in lines(left.trace)
        if line.get("api") == "Produce"
        for batch in _batches(line)
    ]
    assert left.outcome.schedule.setup.checks_offsets
    assert stated
    assert all(isinstance(offset, int) for offset in stated)


def _batches(line: dict[str, object]) -> list[dict[str, object]]:
    request = line["request"]
    assert isinstance(request, dict)
    found = request["topic_data"][0]["partition_data"][0]["records"]["batches"]
    assert isinstance(found, list)
    return found


def test_answers_take_simulated_time(left: Recorded) -> None:
    for line in lines(left.trace):
        answered, asked, took = (line.get(k) for k in ("answered_ms", "time_ms", "elapsed_us"))
        if isinstance(answered, int) and isinstance(asked, int):
            assert took == (answered - asked) * 1000


def test_left_as_it_is_nothing_is_mended_and_nothing_ends(tmp_path: Path) -> None:
    left = recorded(tmp_path / "run", SEED, MINUTES, heals=False)
    assert left.outcome.failure is None
    assert not any("trace_ended" in str(line) for line in lines(left.trace))
    folders = sorted(left.data.glob("broker-*"))
    assert not all((folder / ".kafka_cleanshutdown").exists() for folder in folders)


@pytest.mark.parametrize("seed", range(3))
def test_every_invariant_holds_in_memory_too(seed: int) -> None:
    outcome, _ = run_long(seed, MINUTES, IN_MEMORY)
    assert outcome.failure is None
    assert {action.kind for action in outcome.schedule.actions} > {
        ActionKind.COMMIT,
        ActionKind.KILL,
    }


def test_nothing_is_left_out_that_may_happen() -> None:
    of_options = APPLICATION_ACTIONS | TRANSACTION_ACTIONS
    assert {*WEIGHTS, ActionKind.DELIVER, ActionKind.STORE} == set(ActionKind) - of_options
    assert all(WEIGHTS.values())


def test_where_something_is_nothing_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").write_text("before")
    assert main(["simulate", "--record", str(tmp_path), "--minutes", "1"]) == 2
    assert capsys.readouterr().err == f"fencepost: {tmp_path} is not empty\n"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_directory_that_cannot_be_made_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["simulate", "--record", str(tmp_path / "file" / "run"), "--minutes", "1"]) == 2
    assert capsys.readouterr().err.startswith("fencepost: ")


def test_the_command_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "--record", str(tmp_path / "run"), "--seed", "1", "--minutes", "0.1"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("1 seed, ")
