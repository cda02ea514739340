"""Random elections, clean and unclean: every record is read, and every loss is reported.

An application keeps what it reads, and throws away what a truncation takes back. In the end it has
the log. Where several unclean elections came between two of its fetches, the offset that was
reported may be larger than the first that differs (KIP-320, Consumer Handling): so a record that it
kept at a truncation may be another than the log's, but none that it has read since.
"""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node import operator_actions
from fencepost.client.consumer.errors import LogTruncationError
from tests.client.consumer.driven import TP, start
from tests.harness.driver import Driver, content
from tests.harness.driver_requests import create, send_produce

SEEDS: Final = range(100, 105)
STEPS: Final = 60
ACTIONS: Final = (
    *("clean", "unclean", "unclean", "hold", "hold", "part", "part"),
    *("release", "write", "write", "write", "wait"),
)


class Application:
    """Records by their offsets, as they were handed out."""

    def __init__(self, driver: Driver, policy: str) -> None:
        self.driver = driver
        self.consumer = start(driver, auto_offset_reset=policy)
        self.read: dict[int, tuple[int | None, bytes | None]] = {}
        self.doubtful: set[int] = set()
        """What it kept at a truncation, below the offset that was reported."""

    def poll(self, for_ms: int) -> None:
        end = self.consumer.now + for_ms

        def over() -> bool:
            try:
                records = self.consumer.core.poll(self.consumer.now)
            except LogTruncationError as error:
                at = error.divergent_offsets[TP]
                self._truncate(at.offset)
                self.consumer.core.seek(TP, at)
                return False
            self._take_resets()
            for each in records:
                assert each.offset not in self.read, "a record came twice"
                self.read[each.offset] = each.leader_epoch, each.value
            return self.consumer.now >= end

        self.consumer.run(over)

    def _take_resets(self) -> None:
        """The truncations after which the consumer has moved by itself."""
        if self.consumer.core.config.reset_policy.resets:
            for each in self.consumer.core._assignment.truncations:
                assert each.divergent_offset is not None
                self._truncate(each.divergent_offset.offset)
        self.consumer.core._assignment.truncations.clear()

    def _truncate(self, offset: int) -> None:
        self.read = {at: record for at, record in self.read.items() if at < offset}
        self.doubtful = set(self.read)


def part(driver: Driver, leader: int) -> None:
    """From now on each replica has a log of its own."""
    for each in (1, 2, 3):
        operator_actions.hold(driver.cluster, "t", 0, each)
    operator_actions.elect(driver.cluster, "t", 0, leader, unclean=True)


def append(driver: Driver, random: Random) -> None:
    for _ in range(random.randrange(1, 4)):
        # Followers in the ISR may be held: so the leader alone acknowledges.
        send_produce(driver, "t", b"%d" % random.randrange(1 << 30), acks=1)


def disturb(driver: Driver, random: Random) -> None:
    broker = random.choice([1, 2, 3])
    try:
        match random.choice([*ACTIONS]):
            case "clean":
                operator_actions.elect(driver.cluster, "t", 0, broker)
            case "unclean":
                operator_actions.elect(driver.cluster, "t", 0, broker, unclean=True)
            case "hold":
                operator_actions.hold(driver.cluster, "t", 0, broker, leave_isr=True)
            case "part":
                part(driver, broker)
            case "release":
                operator_actions.release(driver.cluster, "t", 0, broker)
            case "write":
                append(driver, random)
            case "wait":
                driver.advance(random.randrange(50))
    except ControllerError:
        pass  # not possible now


@pytest.mark.parametrize("policy", ["none", "earliest", "latest"])
@pytest.mark.parametrize("fetch", [18, 11])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_read_and_every_loss_reported(seed: int, fetch: int, policy: str) -> None:
    random = Random(seed)
    driver = Driver(3, api_max={"fetch": fetch})
    create(driver, "t", ((1, 2, 3),))
    application = Application(driver, policy)
    for _ in range(STEPS):
        disturb(driver, random)
        if random.random() < 0.7:
            application.poll(random.choice([1, 20, 250]))
    for broker in (1, 2, 3):
        operator_actions.release(driver.cluster, "t", 0, broker)
    driver.advance(100)
    application.poll(3_000)
    log = {offset: (epoch, value) for offset, epoch, value in content(driver.leader("t"))}
    assert application.read.keys() == log.keys()
    wrong = {at for at in log if application.read[at] != log[at]}
    assert wrong <= application.doubtful, "a loss that was not reported"
