"""`fencepost.client.Consumer` in a scenario: a consumer of one partition that acts by itself.

Unlike the other clients it looks for leaders, retries, detects truncation and resets its position.
What it raises and where it is then are the answer, so that a scenario can set consumers of the
final KIP-320 and of its earlier draft side by side.
"""

import asyncio
from typing import Final

from msgspec import Struct

from fencepost.client.asyncio_consumer import Consumer
from fencepost.client.consumer.errors import ConsumerError
from fencepost.client.consumer.model import ConsumerRecord, OffsetAndMetadata
from fencepost.client.errors import KafkaClientError, TimedOut
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.actions.consumer_answers import (
    ConsumerAnswer,
    ConsumerOutcome,
    ConsumersAnswer,
    PollAnswer,
    consumer_answer,
    record_answer,
    side_by_side,
)
from fencepost.scenario.actions.consumer_bodies import (
    CommitPositionBody,
    ConsumerBody,
    ConsumersBody,
    OpenConsumerBody,
    PollBody,
    SeekBody,
)
from fencepost.scenario.actions.context import (
    Action,
    ActionContext,
    ActionState,
    InvalidAction,
    ScenarioClients,
    on_state,
)
from fencepost.scenario.actions.fetch import as_text

_RAISED: Final = (ConsumerError, KafkaClientError)


class _OpenConsumer(Struct):
    name: str
    partition: Partition
    consumer: Consumer
    start_offset: int | None = None
    last: ConsumerAnswer | None = None
    is_closed: bool = False


class Consumers(ActionState):
    """The consumers of a scenario, by their names."""

    def __init__(self, clients: ScenarioClients) -> None:
        super().__init__(clients)
        self._consumers: dict[str, _OpenConsumer] = {}

    async def open(self, _context: ActionContext, body: OpenConsumerBody) -> ConsumerAnswer:
        """Open a consumer and assign it the partition; it sends requests from now on."""
        found = self._consumers.get(body.consumer)
        if found is not None and not found.is_closed:
            raise InvalidAction(f"the consumer {body.consumer!r} is open already")
        partition = Partition(topic=body.topic, index=body.partition)
        consumer = Consumer(self._clients.bootstrap(body.broker), **body.parameters())
        consumer.assign([partition])
        if body.offset is not None:
            consumer.seek(partition, body.offset, leader_epoch=body.epoch)
        opened = _OpenConsumer(body.consumer, partition, consumer)
        self._consumers[body.consumer] = opened
        return await _answer(opened, None)

    async def poll(self, _context: ActionContext, body: PollBody) -> PollAnswer:
        """Poll until there are so many records, or an error, or the time is over."""
        opened = self._get(body.consumer)
        records: list[ConsumerRecord] = []
        raised: Exception | None = None
        loop = asyncio.get_running_loop()
        deadline = loop.time() + body.wait_ms / 1000
        try:
            while len(records) < body.count:
                left_s = deadline - loop.time()
                records += await opened.consumer.poll(timeout_s=max(left_s, 0))
                if left_s <= 0:
                    break
        except _RAISED as error:
            raised = error
        answer = await _answer(opened, raised)
        opened.start_offset = records[0].offset if records else answer.position
        return PollAnswer(
            **dict(answer),
            start_offset=opened.start_offset,
            values=tuple(as_text(each.value) for each in records),
            records=tuple(map(record_answer, records)),
        )

    async def seek(self, _context: ActionContext, body: SeekBody) -> ConsumerAnswer:
        """Go on from an offset."""
        opened = self._get(body.consumer)
        at = OffsetAndMetadata(
            offset=body.offset, leader_epoch=body.epoch, timestamp=body.timestamp
        )
        opened.consumer.seek(opened.partition, at)
        return await _answer(opened, None)

    async def commit(self, context: ActionContext, body: CommitPositionBody) -> ConsumerAnswer:
        """Commit the position."""
        opened = self._get(body.consumer)
        raised: Exception | None = None
        try:
            await opened.consumer.commit(timeout_s=context.timeout_s)
        except ValueError as error:
            raise InvalidAction(f"the consumer {body.consumer!r}: {error}") from None
        except _RAISED as error:
            raised = error
        return await _answer(opened, raised)

    async def close_one(self, context: ActionContext, body: ConsumerBody) -> ConsumerAnswer:
        """Close a consumer; it is answered where its last action left it."""
        opened = self._get(body.consumer)
        opened.is_closed = True
        await opened.consumer.close(timeout_s=context.timeout_s)
        assert opened.last is not None
        return opened.last.model_copy(update={"error": ErrorCode.NONE.name, "failed": None})

    async def compare(self, _context: ActionContext, body: ConsumersBody) -> ConsumersAnswer:
        """Set consumers side by side, by the last answer of each."""
        return ConsumersAnswer(
            error=ErrorCode.NONE.name,
            failed=None,
            broker=None,
            version=None,
            throttle_time_ms=0,
            elapsed_ms=0,
            outcomes=tuple(_outcome(self._find(name)) for name in body.consumers),
        )

    async def close(self) -> None:
        """Close all consumers."""
        for each in self._consumers.values():
            await each.consumer.close()

    def _get(self, name: str) -> _OpenConsumer:
        found = self._find(name)
        if found.is_closed:
            raise InvalidAction(f"the consumer {name!r} is closed")
        return found

    def _find(self, name: str) -> _OpenConsumer:
        found = self._consumers.get(name)
        if found is None:
            raise InvalidAction(f"no consumer {name!r} was opened")
        return found


async def _answer(opened: _OpenConsumer, raised: Exception | None) -> ConsumerAnswer:
    """What a consumer raised, or raises now, and where it is."""
    at: OffsetAndMetadata | None = None
    if raised is None:
        try:
            at = await opened.consumer.position(opened.partition, timeout_s=0)
        except TimedOut:
            pass  # it is being looked for
        except _RAISED as found:
            raised = found
    opened.last = consumer_answer(opened.partition, at, raised, opened.consumer.truncations)
    return opened.last


def _outcome(opened: _OpenConsumer) -> ConsumerOutcome:
    last = opened.last
    assert last is not None
    return ConsumerOutcome(
        consumer=opened.name,
        start_offset=opened.start_offset,
        position=last.position,
        error=last.error,
        failed=last.failed,
        divergent_offset=last.divergent_offset,
        truncations=last.truncations,
    )


ACTIONS: Final = (
    Action(
        "open_consumer",
        None,
        OpenConsumerBody,
        ConsumerAnswer,
        "Open a consumer of a partition that finds leaders and truncations by itself.",
        on_state(Consumers, Consumers.open),
    ),
    Action(
        "poll",
        None,
        PollBody,
        PollAnswer,
        "Poll a consumer for records.",
        on_state(Consumers, Consumers.poll),
    ),
    Action(
        "seek",
        None,
        SeekBody,
        ConsumerAnswer,
        "Have a consumer go on from an offset.",
        on_state(Consumers, Consumers.seek),
    ),
    Action(
        "commit_position",
        None,
        CommitPositionBody,
        ConsumerAnswer,
        "Commit a consumer's position for its group.",
        on_state(Consumers, Consumers.commit),
    ),
    Action(
        "close_consumer",
        None,
        ConsumerBody,
        ConsumerAnswer,
        "Close a consumer.",
        on_state(Consumers, Consumers.close_one),
    ),
    Action(
        "compare_consumers",
        None,
        ConsumersBody,
        ConsumersAnswer,
        "Set consumers side by side, as their last actions left them; the line is printed.",
        on_state(Consumers, Consumers.compare),
        side_by_side,
    ),
)
