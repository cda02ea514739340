"""A follower that has nothing, where a part of the log is in the remote tier alone."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from fencepost.broker.handlers.context import Context
from fencepost.broker.network.links import OnResponse
from fencepost.broker.node.operator_actions import elect, hold, release, roll, step
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from tests.broker.tiering.tier import Tier
from tests.harness.replicas import content

FEATURE: Final = "follower.fetch.last.tiered.offset.enable"
MOVED: Final = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
OUT_OF_RANGE: Final = ErrorCode.OFFSET_OUT_OF_RANGE
NONE: Final = ErrorCode.NONE
BACKOFF: Final = 1000
"""Kafka's default of replica.fetch.backoff.ms."""
Asked: TypeAlias = tuple[str, str | None, int | None]
"""API, what ListOffsets was for, and the error that was answered."""

BEGIN: Final = ("Fetch", None, MOVED)
START: Final = ("ListOffsets", "earliest", NONE)
LOCAL: Final = ("ListOffsets", "earliest_local", NONE)
PENDING: Final = ("ListOffsets", "earliest_pending_upload", NONE)
END: Final = ("ListOffsets", "latest", NONE)
TRACE: Final = ("OffsetForLeaderEpoch", None, NONE)
BUILD: Final = ("Tier", None, NONE)
GO_ON: Final = ("Fetch", None, NONE)


class Start(Tier):
    """Broker 1 leads ``t``; broker 2 is to follow, is held, and has nothing.

    Segments are closed by hand.
    """

    def __init__(self, *, enabled: bool = True, brokers: int = 2, **configs: str) -> None:
        super().__init__(brokers, tiered=False)
        if enabled:
            self.enable()
        self.create("t", internal_segment_bytes="1000000", **configs)
        for broker_id in range(2, brokers + 1):
            hold(self.cluster, "t", 0, broker_id, leave_isr=True)
        self.sent: list[tuple[Api, int, Any]] = []
        """What brokers asked each other: API, version and request."""
        self.cluster.network.observe = self._observe

    def _observe(self, api: Api, ctx: Context, message: object) -> OnResponse:
        self.sent.append((api, ctx.version, message))
        return lambda _answer: None

    def enable(self) -> None:
        self.cluster.controller.set_broker_configs(None, {FEATURE: "true"})

    def segment(self, count: int) -> None:
        """So many records in a segment of their own."""
        self.append(count)
        roll(self.cluster, "t", 0)

    def tier_away(self, count: int, *, local: int = 0) -> None:
        """Segments of ten records, so many in the tier alone, and so many here as well."""
        for _ in range(count):
            self.segment(10)
        assert self.run() is None
        self.manager.delete_local(self.leader("t"))
        for _ in range(local):
            self.segment(10)
        if local:
            assert self.run() is None

    @property
    def new(self) -> Replica:
        return self.replica(2, "t")

    def step(self, count: int) -> list[Asked]:
        steps = step(self.cluster, "t", 0, 2, count)
        return [(each.api, each.asked, each.error) for each in steps]

    @property
    def state(self) -> FollowerState:
        follower = self.broker(2).replica_manager.follower("t", 0)
        assert follower is not None
        return follower.state

    def release(self, *broker_ids: int) -> None:
        release(self.cluster, "t", 0, 2)

    def delete_records(self, offset: int) -> None:
        self.leader("t").delete_records(offset)
        self.cluster.scheduler.run_due()

    def assert_caught_up(self, *, start: int, local: int) -> None:
        """The new follower has all that the leader has from an offset on, and knows the rest."""
        leader, new = self.leader("t").log, self.new.log
        assert (new.log_start_offset, new.local_log_start_offset) == (start, local)
        assert new.log_end_offset == leader.log_end_offset
        assert self.new.high_watermark == self.leader("t").high_watermark
        assert local_content(self.new) == [
            r for r in local_content(self.leader("t")) if r[0] >= local
        ]
        assert new.epoch_entries() == leader.epoch_entries()
        assert new.producers() == leader.producers()


def local_content(replica: Replica) -> list[tuple[int, int, bytes | None]]:
    return content(replica, replica.log.local_log_start_offset)


def example() -> Start:
    """Step 1 of "Follower Fetch Scenarios": the leader has 3 to 7, the tier 0 to 5."""
    driver = Start()
    driver.segment(3)
    assert driver.run() is None
    assert driver.manager.delete_local(driver.leader("t")) == 1
    elect(driver.cluster, "t", 0, 1)
    driver.append(2)
    elect(driver.cluster, "t", 0, 1)
    driver.append(1)
    roll(driver.cluster, "t", 0)
    driver.append(1)
    elect(driver.cluster, "t", 0, 1)
    driver.append(1)
    assert driver.run() is None
    return driver
