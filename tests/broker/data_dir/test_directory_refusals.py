"""Data directories that a start refuses."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from fencepost.broker.core.errors import DataDirUnusable
from fencepost.broker.data_dir import metadata_log
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.metadata_log import ControllerState
from tests.harness.driver import Driver
from tests.harness.durable_driver import DIR, DurableDriver
from tests.harness.faulty_file_system import FaultyFileSystem


def refusal(files: FaultyFileSystem, path: PurePath = DIR, brokers: int = 1) -> str:
    def start() -> None:
        Driver(brokers, data_dir=open_data_dir(files, path, brokers=brokers, sync=False))

    with pytest.raises(DataDirUnusable) as caught:
        start()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_no_data_directory() -> None:
    files = FaultyFileSystem()
    files.write_atomic(DIR, b"", sync=False)
    assert refusal(files) == "/data is not a directory"


def test_a_directory_has_one_process() -> None:
    files = FaultyFileSystem()
    first = open_data_dir(files, DIR, brokers=1, sync=False)
    assert refusal(files) == "/data is in use by another process that runs"
    first.close()
    open_data_dir(files, DIR, brokers=1, sync=False)


def test_a_newer_layout_is_refused() -> None:
    lasting = DurableDriver(1)
    lasting.stop()
    metadata_log.rewrite(
        lasting.files, DIR / "registry.log", ControllerState(cluster_id="c", layout=3), sync=False
    )
    assert "made by a newer fencepost" in refusal(lasting.files)
    assert "made by a newer fencepost" in refusal(lasting.files), "and the lock is given back"


def test_logs_without_a_registry_are_refused() -> None:
    lasting = DurableDriver(1)
    lasting.stop()
    lasting.files.remove(DIR / "registry.log")
    assert refusal(lasting.files) == (
        "/data has broker-1, and no registry.log that says what is in it"
    )


def test_another_clusters_log_directory_is_refused() -> None:
    lasting = DurableDriver(1)
    lasting.stop()
    path = DIR / "broker-1" / "meta.properties"
    text = lasting.files.read(path).decode()
    lasting.files.write_atomic(path, text.replace("node.id=1", "node.id=2").encode(), sync=False)
    assert refusal(lasting.files) == (
        "/data/broker-1/meta.properties says node.id=2, and it is to be 1"
    )
