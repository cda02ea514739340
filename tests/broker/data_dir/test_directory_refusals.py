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
        ids = range(1, brokers + 1)
        Driver(brokers, data_dir=open_data_dir(files, path, broker_ids=ids, sync=False))

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
    first = open_data_dir(files, DIR, broker_ids=[1], sync=False)
    assert refusal(files) == "/data is in use by another process that runs"
    first.close()
    open_data_dir(files, DIR, broker_ids=[1], sync=False)


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


@pytest.mark.parametrize(
    ("ids", "others", "refusal"),
    [
        (
            [0, 1, 2],
            [1, 2, 3],
            "brokers 0 to 2, and the brokers are to be 1 to 3: start with --bro",
        ),
        ([0, 1, 2], [0, 1], "and the brokers are to be 0, 1: start with --broker-ids 0,1,2"),
        (
            [1, 2, 3],
            [0, 1, 2],
            "brokers 1 to 3, and the brokers are to be 0 to 2: start with --bro",
        ),
        (
            [7, 5000],
            [7],
            "brokers 7, 5000, and the brokers are to be 7: start with --broker-ids 7,5000",
        ),
        ([0], [1], "the logs of broker 0, and the brokers are to be 1: start with --broker-ids 0"),
    ],
)
def test_brokers_with_other_ids_do_not_start_on_the_logs(
    ids: list[int], others: list[int], refusal: str
) -> None:
    lasting = DurableDriver(1)
    lasting.stop()
    lasting.files = FaultyFileSystem()
    lasting.begin(broker_ids=ids)
    lasting.stop()
    with pytest.raises(DataDirUnusable) as caught:
        lasting.begin(broker_ids=others)
    assert refusal in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(lasting.begin(broker_ids=[*ids, 9000]).cluster.brokers) == [*ids, 9000]
