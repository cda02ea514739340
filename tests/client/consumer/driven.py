"""A consumer's core, driven step by step against the cluster of a `Driver`, on its clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Unpack

from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.client.consumer.config import ConsumerParameters, make_config
from fencepost.client.consumer.core import ConsumerCore
from fencepost.client.consumer.group_protocol import Assign, Revoke
from fencepost.client.consumer.model import ConsumerRecord, OffsetAndMetadata
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Request
from fencepost.client.errors import Disconnected
from fencepost.client.model import Partition
from fencepost.protocol.codec.drafts import Draft
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from fencepost.protocol.messages.fetch import FetchResponse
from tests.harness.driver import NEWEST, Asked, Driver
from tests.harness.driver_requests import create
from tests.harness.records import TIMESTAMP, batch
from tests.harness.typed_requests import produce_request

T = TypeVar("T")
TP: Final = Partition(topic="t", index=0)
QUICK: Final[ConsumerParameters] = {"client_id": "c1", "fetch_max_wait_ms": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request that the consumer sent."""

    broker: int
    api: str
    version: int
    message: Any


class DrivenConsumer:
    """A consumer of a driver's cluster.

    :param first: The broker by which it finds the others.
    :ivar sent: What it sent, the oldest first.
    :ivar unreachable: Brokers that answer none of its requests.
    :ivar loses: Requests of these APIs are lost on their way.
    :ivar alters: Functions that make other answers of the broker's, by API; each once.
    :ivar events: What happened to the assignment.
    """

    def __init__(
        self, driver: Driver, *, first: int = 1, **parameters: Unpack[ConsumerParameters]
    ) -> None:
        self.driver = driver
        settings: ConsumerParameters = {**QUICK, **parameters}
        others = [each for each in driver.cluster.brokers if each != first]
        self._bootstrap = {-at: broker for at, broker in enumerate([first, *others], start=1)}
        addresses = {node: ("bootstrap", broker) for node, broker in self._bootstrap.items()}
        self.core = ConsumerCore(make_config(**settings), addresses, driver.clock.wall_ms)
        self.sent: list[Sent] = []
        self.unreachable: set[int] = set()
        self.loses: set[str] = set()
        self.alters: list[tuple[str, Callable[[Any], object]]] = []
        self.events: list[Assign | Revoke] = []
        self.lets_go = True
        self._open: list[tuple[Request, Asked]] = []

    # -- time -----------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.driver.clock.now_ms()

    def step(self, *, fetches: bool = True) -> int | None:
        """Take one turn, and the answers that are there; when the next one is due."""
        turn = self.core.turn(self.now, fetches=fetches)
        for request in turn.requests:
            self._send(request)
        answered = [each for each in self._open if each[1].done]
        self._open = [each for each in self._open if not each[1].done]
        for request, asked in answered:
            self.core.answered(request, self._alter(request, asked.response), self.now)
        if turn.requests or answered:
            return self.now
        return turn.wake_at

    def _alter(self, request: Request, response: object) -> object:
        for each in self.alters:
            if each[0] == request.api.name:
                self.alters.remove(each)
                return each[1](response)
        return response

    def _send(self, request: Request) -> None:
        broker = self._bootstrap.get(request.node, request.node)
        name = request.api.name
        self.sent.append(
            Sent(broker=broker, api=name, version=request.version, message=request.message)
        )
        running = self.driver.broker(broker).running
        if broker in self.unreachable or name in self.loses or not running:
            self.core.failed(request, Disconnected("the test lost it"), self.now)
            return
        asked = self.driver.send(broker, name, request.version, request.message)
        if asked.hung_up:
            self.core.failed(request, Disconnected("the broker hung up"), self.now)
        else:
            self._open.append((request, asked))

    def run(
        self, until: Callable[[], object], *, limit_ms: int = 60_000, fetches: bool = True
    ) -> None:
        """Take turns and let time pass until something holds."""
        end = self.now + limit_ms
        while not until():
            assert self.now < end, "it did not come to hold"
            wake_at = self.step(fetches=fetches)
            if wake_at != self.now:
                self.driver.advance(1 if wake_at is None else max(1, min(wake_at - self.now, 5)))

    def settle(self, for_ms: int = 0) -> None:
        """Take turns until nothing more is due now, and then for a while."""
        end = self.now + for_ms
        while self.step() == self.now or self.now < end:
            if self.core.turn(self.now, fetches=False).wake_at != self.now:
                self.driver.advance(1)

    # -- what an application does ---------------------------------------------------------------

    def poll(self, *, limit_ms: int = 60_000) -> list[ConsumerRecord]:
        """The next records; raises as `Consumer.poll` does."""
        found: list[ConsumerRecord] = []

        def some() -> bool:
            self._take_events()
            found.extend(self.core.poll(self.now))
            return bool(found)

        self.run(some, limit_ms=limit_ms)
        return found

    def read(self, count: int) -> list[ConsumerRecord]:
        found: list[ConsumerRecord] = []
        while len(found) < count:
            found += self.poll()
        assert len(found) == count
        return found

    def nothing(self, for_ms: int = 1_000) -> None:
        """No record and no error comes within a while."""
        end = self.now + for_ms

        def is_over() -> bool:
            self._take_events()
            assert list(self.core.poll(self.now)) == []
            return self.now >= end

        self.run(is_over)

    def position(self, partition: Partition = TP) -> OffsetAndMetadata:
        """Once it is known; raises as `Consumer.position` does."""

        def known() -> bool:
            self.core.raise_errors(self.now)
            return self.core.position(partition) is not None

        self.run(known, fetches=False)
        found = self.core.position(partition)
        assert found is not None
        return found

    def result(self, operation: Operation[T]) -> T:
        self.run(lambda: operation.done, fetches=False)
        return operation.result()

    def _take_events(self) -> None:
        while self.lets_go and (event := self.core.next_event()) is not None:
            self.events.append(event)
            if isinstance(event, Revoke):
                event.let_go()

    # -- what it sent ---------------------------------------------------------------------------

    def requests(self, api: str) -> list[Sent]:
        return [each for each in self.sent if each.api == api]

    def partitions(self, api: str) -> list[Any]:
        """The partitions that its requests of an API asked about."""
        return [
            part
            for each in self.requests(api)
            for topic in each.message.topics
            for part in topic.partitions
        ]


# -- stories ------------------------------------------------------------------------------------


def cluster(*, dialect: Draft | None = None, api_max: Mapping[str, int] | None = None) -> Driver:
    """Three brokers, and topic ``t`` whose one partition broker 1 leads."""
    configs = {"group.initial.rebalance.delay.ms": "0"}
    driver = Driver(3, configs, dialect=dialect, api_max=api_max)
    create(driver, "t", ((1, 2, 3),))
    return driver


def start(
    driver: Driver, offset: int | None = 0, **parameters: Unpack[ConsumerParameters]
) -> DrivenConsumer:
    """A consumer of ``t-0`` from an offset on; None: it begins as a new one does."""
    consumer = DrivenConsumer(driver, **parameters)
    consumer.core.assign([TP])
    if offset is not None:
        consumer.core.seek(TP, OffsetAndMetadata(offset=offset))
    return consumer


def delete_before(driver: Driver, offset: int) -> None:
    """The log begins here."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    request = DeleteRecordsRequest(timeout_ms=1000, topics=(topic,))
    driver.ask(driver.leader("t").broker_id, "delete_records", NEWEST, request)
    driver.advance(1)


def refused(code: int) -> Callable[[FetchResponse], FetchResponse]:
    """Alters a Fetch's answer: an error of its partitions, without records."""

    def alter(response: FetchResponse) -> FetchResponse:
        return replace(
            response,
            responses=tuple(
                replace(
                    topic,
                    partitions=tuple(
                        replace(part, error_code=code, records=None) for part in topic.partitions
                    ),
                )
                for topic in response.responses
            ),
        )

    return alter


def values(records: Sequence[ConsumerRecord]) -> list[bytes | None]:
    return [each.value for each in records]


def write(driver: Driver, prefix: str, count: int, *, timestamp: int | None = None) -> None:
    """Records of one batch each, on every replica that is in sync.

    :param timestamp: Of the first one; the others are a second apart. None: all are alike.
    """
    for number in range(count):
        at = TIMESTAMP if timestamp is None else timestamp + 1_000 * number
        made = batch(b"%s%d" % (prefix.encode(), number), timestamp=at)
        request = produce_request(("t", 0, made))
        driver.ask(driver.leader("t").broker_id, "produce", 12, request)
    driver.advance(1)


def fall_behind(driver: Driver, broker: int) -> None:
    """A broker's replica stays where it is, out of the ISR."""
    operator_actions.hold(driver.cluster, "t", 0, broker, leave_isr=True)


def elect_uncleanly(driver: Driver, broker: int) -> None:
    """A broker that has fallen behind leads; the others truncate their logs to its own."""
    operator_actions.elect(driver.cluster, "t", 0, broker, unclean=True)
    operator_actions.release(driver.cluster, "t", 0, broker)
    driver.advance(1)
