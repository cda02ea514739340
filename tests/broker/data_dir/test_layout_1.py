"""Data directories of the first layout, as commit 359fcd9 left them, are opened and upgraded."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final

import pytest

from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.metadata_log import LAYOUT, decode_line
from tests.harness.crash_model import PowerOff
from tests.harness.driver import Driver
from tests.harness.driver import content as records
from tests.harness.driver_requests import produce
from tests.harness.durable_driver import DIR
from tests.harness.faulty_file_system import FaultyFileSystem

DIRECTORIES: Final = Path(__file__).with_name("layout_1") / "directories.json"
"""For each end of the process the bytes of all files in base64, by their paths."""


def directory(end: str) -> FaultyFileSystem:
    files = FaultyFileSystem()
    for name, text in json.loads(DIRECTORIES.read_text())[end].items():
        path = DIR / PurePath(name)
        files.make_dirs(path.parent)
        files.write_atomic(path, base64.b64decode(text), sync=True)
    return files


def start(files: FaultyFileSystem) -> Driver:
    files.end_process()
    return begin(files)


def begin(files: FaultyFileSystem) -> Driver:
    return Driver(3, data_dir=open_data_dir(files, DIR, broker_ids=range(1, 4), sync=False))


def content(driver: Driver, topic: str) -> list[bytes | None]:
    """The values of the records from the log start on."""
    leader = driver.leader(topic)
    return [value for at, _, value in records(leader) if at >= leader.log.log_start_offset]


def layout(files: FaultyFileSystem) -> int:
    (first, *_) = decode_line(files.read(DIR / "registry.log").splitlines(keepends=True)[0]) or []
    assert isinstance(first[1], int)
    return first[1]


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_directory_of_the_first_layout_is_opened_and_upgraded(end: str) -> None:
    files = directory(end)
    assert layout(files) == 1
    driver = start(files)
    assert driver.cluster.events.at_start == []
    assert content(driver, "t") == [b"b", b"c", b"d"]
    assert content(driver, "u") == [b"e", b"f"]
    assert driver.leader("t").log.log_start_offset == 1
    assert (driver.partition("t").leader, driver.partition("t").isr) == (2, (1, 2, 3))
    image = driver.cluster.controller.image
    assert image.configs_of("t") == {"retention.ms": "-1"}
    kept = {"log.retention.ms": "-1", "min.insync.replicas": "1"}
    assert image.broker_configs == {None: kept}
    assert produce(driver, "t", b"g").base_offset == 4
    assert layout(files) == LAYOUT
    driver.cluster.close()
    driver = start(files)
    assert driver.cluster.events.at_start == []
    assert content(driver, "t") == [b"b", b"c", b"d", b"g"]


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_the_inventory_of_an_upgrade_that_did_not_end_is_not_believed(end: str) -> None:
    """The registry is of layout 1 still, so that an older fencepost may have gone on with it."""
    upgraded, files = directory(end), directory(end)
    driver = start(upgraded)
    produce(driver, "u", b"g")
    driver.advance(6_000)
    path = DIR / "broker-2.inventory"
    files.write_atomic(path, upgraded.read(path), sync=True)
    driver = start(files)
    assert driver.cluster.events.at_start == []
    assert content(driver, "u") == [b"e", b"f"]


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_an_upgrade_may_end_at_any_moment(end: str) -> None:
    operations = 0
    is_upgraded = False
    while not is_upgraded:
        files = directory(end)
        files.power_off_after(operations)
        with suppress(PowerOff):
            begin(files)
            is_upgraded = True
        driver = start(files)
        assert driver.cluster.events.at_start == [], operations
        assert content(driver, "t") == [b"b", b"c", b"d"], operations
        assert content(driver, "u") == [b"e", b"f"], operations
        operations += 1
    assert operations > 20


def test_from_the_upgrade_on_a_lost_segment_is_noticed() -> None:
    files = directory("stopped")
    driver = start(files)
    driver.cluster.close()
    files.remove(DIR / "broker-2" / "u-0" / f"{0:020d}.log")
    driver = start(files)
    assert driver.partition("u").leader == -1
    (missing, failed) = driver.cluster.events.at_start
    assert (missing.kind, missing.topic, missing.broker) == ("records_missing", "u", 2)
    assert missing.details["offsets"] == [[0, 1]]
    assert failed.kind == "replica_failed"
    assert "offsets 0 to 1 are missing" in str(failed.details["error"])
