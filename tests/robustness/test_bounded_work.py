"""The costliest requests of each API and version cost work in proportion to their bytes.

Work is counted (`tests.robustness.work`), for a request and for another of the same shape that is
four times as large. It may be `STEPS_A_BYTE` for each byte that comes in or is answered and
`STEPS_A_TOPIC` for each topic that is created, and a byte may not cost much more in the larger one.
``FENCEPOST_WORK_SIZE`` makes both larger: then slighter bends show. For an API's versions between
the first and the last both are half as large.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.outcomes import HangUp
from fencepost.broker.core.waits import Wait
from fencepost.broker.produce.append import PendingAppend
from fencepost.protocol import codec
from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import read_header, skip_tags
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request, produced
from tests.robustness.costliest import PARTITIONS, TOPICS, Shape, shapes
from tests.robustness.work import counted_texts, counting

SIZE: Final = int(os.environ.get("FENCEPOST_WORK_SIZE") or 300)
STEPS_A_BYTE: Final = 14
"""The most expensive element is two bytes, a tagged field, and six lines of a reader."""
STEPS_A_TOPIC: Final = 380
"""To create one with its partition, replica, log and events."""
MOST_BEND: Final = 2.0
"""How much more a byte may cost in a request that is four times as large. It would be four times as
much where work rises with the square; the least of it is what fewer elements cost in all."""
SLACK: Final = 1000
"""Steps that may come and go with the state of the cluster."""


@dataclass(slots=True)
class Subject:
    """A cluster, and its topics' ids."""

    driver: Driver
    ids: Mapping[str, UUID]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request."""

    steps: int
    received: int
    answered: int = 0
    created: int = 0
    """Topics."""

    @property
    def bytes(self) -> int:
        """Of the request and its answer."""
        return self.received + self.answered

    def bend(self, larger: Cost) -> float:
        """How much more a byte costs in a larger request of the same shape.

        Where each name is answered once, however often it is asked for, an answer has its bytes
        from the first request on: then those of the request alone are compared.
        """
        rises = larger.answered > self.answered
        own, other = (self.bytes, larger.bytes) if rises else (self.received, larger.received)
        return (larger.steps - SLACK) / other / (self.steps / own)


def subject() -> Subject:
    """A cluster with `TOPICS` topics, and without those that clients name."""
    driver = Driver(1, {"auto.create.topics.enable": "false"})
    names = [f"known.{index:02}" for index in range(TOPICS)]
    driver.cluster.controller.create_each_topic(
        NewTopic(name=name, partitions=PARTITIONS, configs={}) for name in names
    )
    driver.cluster.scheduler.run_due()
    topics = driver.cluster.controller.image.topics
    return Subject(driver, {name: topics[name].topic_id for name in names})


def cost(here: Subject, shape: Shape, size: int) -> Cost:
    """What a request of this size costs, from its bytes to those of its answer."""
    api, version = shape.api, shape.version
    frame = bytearray(shape.frame(size, here.ids)[4:])
    with counting() as reading:
        try:
            header = read_header(frame)
            request = codec.decode_request(api, version, frame, skip_tags(frame, header, api))
        except codec.MalformedMessage:
            request = None
    if request is None:
        return Cost(reading.total, len(frame))
    answers: list[Any] = []
    broker, driver = here.driver.broker(1), here.driver
    peer = Peer(connection_id="c", host="192.0.2.1", listener_host="203.0.113.7")
    ctx = Context(broker, version, "c", peer, driver.clock.now_ms(), driver.clock.wall_ms())
    request = counted_texts(request)
    before = len(driver.cluster.controller.image.topics)
    with counting() as handling:
        answer = broker.handle(api, ctx, request)
        if isinstance(answer, Wait):
            answer.then(answers.append)
        else:
            answers.append(answer)
        driver.cluster.scheduler.run_due()
    if not answers:
        driver.advance(60_000)
    response = answers[0]
    if response is None or isinstance(response, HangUp):
        return Cost(reading.total + handling.total, len(frame))
    with counting() as writing:
        try:
            answered = sum(map(len, codec.encode_response(api, version, 1, response)))
        except Exception:  # noqa: BLE001  # too long a text for its field: the connection closes
            answered = 0
        error_code_finder(api, version)(response)
    return Cost(
        reading.total + handling.total + writing.total,
        len(frame),
        answered,
        len(driver.cluster.controller.image.topics) - before,
    )


CASES: Final = [(api, version) for api in APIS for version in versions(api.name)]


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("api", "version"), CASES, ids=[f"{api.title}-{version}" for api, version in CASES]
)
def test_work_rises_with_the_bytes_and_no_faster(api: Api, version: int) -> None:
    here = subject()
    thorough = version in (api.min_version, api.max_version)
    size = SIZE if thorough else SIZE // 2
    for shape in shapes(api, version, thorough=thorough):
        if api.name == "delete_topics":
            here = subject()
        cost(here, shape, 100)  # what is made once: readers, writers, tables, groups
        first, last = cost(here, shape, size), cost(here, shape, 4 * size)
        most = SLACK + STEPS_A_BYTE * last.bytes + STEPS_A_TOPIC * last.created
        assert last.steps <= most, f"{shape.name}: {first}, {last}"
        assert first.bend(last) <= MOST_BEND, f"{shape.name}: {first}, {last}"


def test_the_batches_of_a_request_are_staged_in_one_pass() -> None:
    """Where expected offsets are checked (KIP-27), a partition of a request may have many."""
    costs = []
    for count in (50, 200):
        driver = Driver(1)
        create(driver, "t", check_expected_offsets="true")
        batches = (batch(b"v", base_offset=index, producer=(7, 0, index)) for index in range(count))
        request = produce_request(("t", 0, b"".join(batches)), acks=1)
        with counting() as work:
            answer = driver.ask(1, "produce", 9, request)
        assert produced(answer).error_code == ErrorCode.NONE
        assert driver.leader("t").log.log_end_offset == count
        costs.append(work.total)
    assert costs[1] <= 4 * costs[0]


def test_an_append_that_waits_is_asked_for_its_partitions_once_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    settle = PendingAppend.settle

    def counted(pending: PendingAppend) -> bool:
        nonlocal asked
        asked += 1
        return settle(pending)

    partitions = 60
    driver = Driver(2)
    create(driver, "t", [(1, 2)] * partitions)
    driver.hold(2)
    request = produce_request(*(("t", index, bytes(batch(b"v"))) for index in range(partitions)))
    sent = driver.send(1, "produce", 9, request)
    assert [sent.done] == [False]
    monkeypatch.setattr(PendingAppend, "settle", counted)
    driver.release(2)
    assert sent.done
    assert asked <= 4 * partitions


def test_a_new_name_is_compared_with_those_like_it_alone() -> None:
    costs = []
    for existing in (20, 400):
        driver = Driver(1)
        controller = driver.cluster.controller
        controller.create_each_topic(
            NewTopic(name=f"old_{index}", configs={}) for index in range(existing)
        )
        names = [f"new_{index}" for index in range(100)]
        with counting() as work:
            for name in names:
                controller.topic_planner.check_new_name(name)
        costs.append(work.total)
    assert costs[1] - costs[0] <= 5 * 400
