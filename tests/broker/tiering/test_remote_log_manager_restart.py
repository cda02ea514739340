"""A tiered partition whose log is in files, beyond the end of its process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.tiering.remote_retention import ABANDONED_AFTER_MS
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.tier.object_store import ObjectStore
from tests.harness.driver_requests import create
from tests.harness.durable_driver import DurableDriver
from tests.harness.records import batch
from tests.harness.remote_tier import INTERVAL, Objects, every

End = Callable[[DurableDriver], None]
ENDS = pytest.mark.parametrize("end", [DurableDriver.stop, DurableDriver.kill])


class LastingTier(DurableDriver):
    """The tier lasts as well."""

    def __init__(self, brokers: int = 1) -> None:
        self.there: dict[str, bytes] = {}
        self.objects: Objects | None = None
        super().__init__(brokers, remote_log_storage_system_enable="true")
        create(
            self.driver,
            "t",
            (tuple(range(1, brokers + 1)),),
            remote_storage_enable="true",
            local_retention_bytes="1",
            internal_segment_bytes=str(2 * len(batch())),
        )

    def make_objects(self, scheduler: Scheduler) -> ObjectStore:
        self.objects = Objects(scheduler)
        self.objects.objects = self.there
        return self.objects

    def append(self, count: int) -> None:
        for _ in range(count):
            now_ms = self.driver.clock.now_ms()
            result = self.driver.leader("t").append(batch((now_ms, b"k", b"v")), now_ms=now_ms)
            assert isinstance(result, AppendResult)
            self.driver.cluster.scheduler.run_due()


@ENDS
def test_a_new_process_finds_what_is_tiered_and_goes_on_there(end: End) -> None:
    tier = LastingTier()
    tier.append(7)
    tier.driver.advance(INTERVAL)
    log = tier.driver.leader("t").log
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 6)
    end(tier)
    tier.begin()
    leader = tier.driver.leader("t")
    assert (leader.log.log_start_offset, leader.log.local_log_start_offset) == (0, 6)
    before = dict(tier.there)
    tier.driver.advance(3 * INTERVAL)
    assert tier.there == before
    view = tier.driver.broker(1).remote_log_manager.state(leader)
    assert view is not None
    assert (view.start_offset, view.last_tiered_offset) == (0, 5)
    tier.append(2)
    tier.driver.advance(INTERVAL)
    assert len(tier.there) == len(before) + len(every(0))


@ENDS
def test_a_copy_that_the_end_cut_short_is_made_again_and_what_was_left_of_it_goes(
    end: End,
) -> None:
    tier = LastingTier()
    tier.append(3)
    assert tier.objects is not None
    tier.objects.holds = lambda op, key: op == "put" and key.endswith(".snapshot")
    tier.driver.advance(INTERVAL)
    end(tier)
    tier.begin()
    tier.driver.advance(INTERVAL)
    view = tier.driver.broker(1).remote_log_manager.state(tier.driver.leader("t"))
    assert view is not None
    assert view.last_tiered_offset == 1
    assert len([key for key in tier.there if key.endswith(".json")]) == 2
    tier.driver.advance(ABANDONED_AFTER_MS)
    assert tier.objects.names() == every(0)


@ENDS
def test_a_new_process_does_not_read_what_it_deleted(end: End) -> None:
    tier = LastingTier()
    tier.append(7)
    tier.driver.advance(INTERVAL)
    tier.driver.leader("t").delete_records(3)
    tier.driver.advance(INTERVAL)
    end(tier)
    tier.begin()
    tier.driver.advance(INTERVAL)
    log = tier.driver.leader("t").log
    assert log.log_start_offset in (2, 3)  # what was not written comes from the tier
    assert log.local_log_start_offset == 6
