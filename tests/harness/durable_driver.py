"""A `Driver` with a data directory in memory: it ends, and another starts from the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from random import Random
from typing import Final

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.data_dir.directory import open_data_dir
from fencepost.broker.data_dir.log_dir import LogDir
from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.node.cluster import MakeObjectStore
from fencepost.protocol.codec.drafts import Draft
from tests.harness.driver import Driver
from tests.harness.driver_requests import fetch
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.typed_requests import values

DIR: Final = PurePath("/data")


class DurableDriver:
    """A file system, and the cluster that lives on it now."""

    def __init__(
        self, brokers: int = 3, *, sync: bool = False, log_dirs: int = 1, **configs: str
    ) -> None:
        self.files = FaultyFileSystem()
        self.log_dirs = log_dirs
        """How many each broker has."""
        self.brokers = brokers
        self.sync = sync
        self.dialect: Draft | None = None
        """Of the next that starts, and of its clients."""
        self.configs: Mapping[str, str] = {k.replace("_", "."): v for k, v in configs.items()}
        self.driver: Driver = self.begin()

    def begin(
        self,
        brokers: int | None = None,
        topics: Sequence[NewTopic] = (),
        *,
        broker_ids: Sequence[int] = (),
    ) -> Driver:
        """Start from the files.

        :param broker_ids: None is from 1 on.
        """
        broker_ids = broker_ids or range(1, (self.brokers if brokers is None else brokers) + 1)
        data_dir = open_data_dir(self.files, DIR, broker_ids=broker_ids, sync=self.sync)
        self.driver = Driver(
            configs=self.configs,
            dialect=self.dialect,
            broker_ids=broker_ids,
            data_dir=data_dir,
            log_dirs=self.log_dirs,
            topics=topics,
            make_objects=self.make_objects,
        )
        return self.driver

    make_objects: MakeObjectStore | None = None
    """Makes the remote tier."""

    def stop(self) -> None:
        """End in order."""
        self.driver.cluster.close()
        self.files.end_process()

    def kill(self) -> None:
        """End as ``kill -9`` does."""
        self.files.end_process()

    def lose_power(self, seed: int = 0) -> None:
        """End as the machine does; of what was not synced a part is there."""
        self.files.crash(Random(seed))

    @property
    def persistence(self) -> DataDirPersistence:
        persistence = self.driver.cluster.persistence
        assert isinstance(persistence, DataDirPersistence)
        return persistence

    def log_dir(self, broker_id: int) -> LogDir:
        return self.persistence.log_dirs[broker_id].dirs[0]

    def names(self, broker_id: int) -> set[str]:
        """The partitions' directories of a broker."""
        found = self.files.names(DIR / f"broker-{broker_id}")
        return {name for name in found if self.files.is_dir(DIR / f"broker-{broker_id}" / name)}

    def path(self, broker_id: int, topic: str, index: int = 0) -> PurePath:
        return DIR / f"broker-{broker_id}" / f"{topic}-{index}"


End = Callable[[DurableDriver], None]
ENDS: Final = pytest.mark.parametrize("end", [DurableDriver.stop, DurableDriver.kill])
"""Of the process."""


def content(driver: Driver, topic: str = "t", index: int = 0) -> list[bytes | None]:
    """The values of a partition's records."""
    start = driver.leader(topic, index).log.log_start_offset
    return values(fetch(driver, topic, start, index=index))
