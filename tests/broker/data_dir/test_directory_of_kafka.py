"""The log directory of a real Kafka is served, and gone on with."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from fencepost.broker.core.errors import DataDirUnusable
from tests.harness.driver_requests import create, list_offset, produce
from tests.harness.durable_driver import DIR, ENDS, DurableDriver, End, content
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request as request


def as_kafkas(lasting: DurableDriver, node_id: int = 1) -> FaultyFileSystem:
    """The log directory of a broker alone, as a real one would have left it."""
    files = FaultyFileSystem()
    home = DIR / f"broker-{node_id}"

    def copy(source: PurePath, target: PurePath) -> None:
        if lasting.files.is_dir(source):
            files.make_dirs(target)
            for name in lasting.files.names(source):
                copy(source / name, target / name)
        else:
            files.write_atomic(target, lasting.files.read(source), sync=False)

    copy(home, DIR)
    files.make_dirs(DIR / "__cluster_metadata-0")
    return files


@ENDS
def test_a_real_kafkas_directory_is_served_and_gone_on_with(end: End) -> None:
    lasting = DurableDriver(1)
    topic_id = create(lasting.driver, "t", [(1,), (1,)])
    produce(lasting.driver, "t", b"a", b"b", index=1)
    sent = request(("t", 1, batch(b"c", producer=(4, 0, 0))))
    lasting.driver.ask(1, "produce", 12, sent)
    epoch = lasting.driver.partition("t").leader_epoch
    cluster_id = lasting.driver.cluster.controller.image.cluster_id
    end(lasting)
    lasting.files = as_kafkas(lasting)
    for process in range(2):
        driver = lasting.begin()
        found = lasting.persistence.recovery_report
        assert found is not None
        assert (found.adopted, found.missing) == (process == 0, ())
        image = driver.cluster.controller.image
        assert image.cluster_id == cluster_id
        assert image.topics.keys() == {"t"}
        assert image.topics["t"].topic_id == topic_id
        assert driver.partition("t", 1).leader_epoch > epoch
        epoch = driver.partition("t", 1).leader_epoch
        assert content(driver, index=1) == [b"a", b"b", b"c"] + [b"d"] * process
        given = driver.broker(1).producer_ids.generate_producer_id()
        assert given is not None
        assert given > 4, "ids up to that are in use"
        assert lasting.files.exists(DIR / "__cluster_metadata-0")
        produce(driver, "t", b"d", index=1)
        assert list_offset(driver, "t", -1, index=1).offset == 4 + process
        end(lasting)


def test_what_a_real_kafka_does_not_have_here_begins_empty_and_is_told() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "t", [(1,), (1,)])
    lasting.stop()
    lasting.files = as_kafkas(lasting)
    lasting.files.remove_tree(DIR / "t-0")
    driver = lasting.begin()
    assert lasting.persistence.recovery_report is not None
    assert lasting.persistence.recovery_report.missing == ("t-0",)
    assert len(driver.cluster.controller.image.topics["t"].partitions) == 2


def test_commits_stay_also_where_kafkas_metadata_is_elsewhere() -> None:
    lasting = DurableDriver(1)
    create(lasting.driver, "__consumer_offsets", [(1,)])
    create(lasting.driver, "t", [(1,)])
    lasting.stop()
    lasting.files = as_kafkas(lasting)
    image = lasting.begin().cluster.controller.image
    assert image.configs_of("__consumer_offsets") == {"cleanup.policy": "compact"}
    assert image.configs_of("t") == {}


def test_a_real_kafkas_directory_is_that_brokers() -> None:
    lasting = DurableDriver(3)
    create(lasting.driver, "t", [(2, 1, 3)])
    produce(lasting.driver, "t", b"a")
    lasting.stop()
    lasting.files = as_kafkas(lasting, 2)
    with pytest.raises(
        DataDirUnusable, match=r"brokers are to be 1: start with --brokers 2 or more"
    ):
        lasting.begin(1)
    driver = lasting.begin(2)
    assert driver.partition("t").replicas == (2,)
    assert content(driver) == [b"a"]
    assert lasting.files.exists(DIR / "broker-1" / "meta.properties")
    assert not lasting.files.exists(DIR / "broker-2")


def test_the_directory_of_a_broker_0_is_that_brokers() -> None:
    lasting = DurableDriver(1)
    lasting.stop()
    lasting.files = FaultyFileSystem()
    driver = lasting.begin(broker_ids=[0])
    create(driver, "t", [(0,)])
    produce(driver, "t", b"a")
    lasting.stop()
    lasting.files = as_kafkas(lasting, 0)
    with pytest.raises(DataDirUnusable, match=r"brokers are to be 1: start with --broker-ids 0"):
        lasting.begin(1)
    driver = lasting.begin(broker_ids=[0, 1])
    assert driver.partition("t").replicas == (0,)
    assert content(driver) == [b"a"]
    assert lasting.files.exists(DIR / "broker-1" / "meta.properties")
