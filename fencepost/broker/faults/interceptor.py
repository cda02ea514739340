"""The interception of a request: what a fault may do around the broker's handlers.

A request is hit once at most. Its outcome may be a `BlockingResponse`, which blocks all later
requests of its connection: as at a real broker nothing overtakes it.
"""

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.core.context import TopicPartition
from fencepost.broker.core.outcomes import (
    HANG_UP,
    BlockingResponse,
    HangUp,
    PacedResponse,
    ThrottledResponse,
)
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.core.waits import Wait
from fencepost.broker.metadata.image import LeaderEpochHistory
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from fencepost.broker.faults.selectors import Selectors
    from fencepost.broker.handlers.context import Context


Message: TypeAlias = Struct
"""A request or response of any API, or a struct in one."""


class Handle(Protocol):
    """A broker's handlers, as they are without faults."""

    def __call__(self, api: Api, ctx: "Context", request: object, /) -> object:
        """Handle a request of an API."""
        ...


class PendingOutcomes:
    """What faults delay: requests in a broker's queue, and responses that block a connection."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.blocking_responses: dict[BlockingResponse, int] = {}
        """Responses that block a connection, and the broker that owes each."""
        self._scheduler = scheduler
        self._queue: dict[int, tuple[Timer, int]] = {}
        """By number, when delayed requests are carried out, and by which broker."""
        self._numbers = count()

    def block_response(self, broker_id: int) -> BlockingResponse:
        """A response that a broker owes, and that blocks a connection."""
        return BlockingResponse(self.blocking_responses, broker_id)

    def run_after(self, broker_id: int, after_ms: int, run: Callable[[], None]) -> None:
        """Run something for a broker later, unless it goes down or the cluster is reset."""
        number = next(self._numbers)

        def due() -> None:  # not with its timer, which has it: they would keep each other in memory
            del self._queue[number]
            run()

        timer = self._scheduler.at(self._scheduler.now_ms() + after_ms, due)
        self._queue[number] = timer, broker_id

    def cancel(self, broker_id: int | None = None) -> None:
        """Cancel what is pending: delayed requests are not carried out, connections close.

        :param broker_id: Only what this broker owes; None is every broker.
        """
        for number, (timer, owner) in list(self._queue.items()):
            if broker_id in (None, owner):
                timer.end()
                del self._queue[number]
        blocking = self.blocking_responses.items()
        for response in [each for each, owner in blocking if broker_id in (None, owner)]:
            response.complete(HANG_UP)


class Interception(Struct, frozen=True):
    """A request that a fault hits, before the handlers."""

    selectors: "Selectors"
    api: Api
    ctx: "Context"
    request: object
    handle: Handle
    pending: PendingOutcomes
    leader_epoch_history: LeaderEpochHistory
    try_hit: Callable[[], bool]
    """Decides whether the request is hit, where only the response tells; counts the hit."""
    partitions: frozenset[TopicPartition] | None = None
    """Those with a record that is selected; None where the fault selects no records."""

    @property
    def selects_partitions(self) -> bool:
        """Whether the request may have partitions that are not hit."""
        return self.selectors.topic is not None or self.partitions is not None

    def selects(self, topic: str | None, index: int) -> bool:
        """Whether a partition of the request, or of its response, is hit."""
        selectors = self.selectors
        if self.partitions is not None and (topic, index) not in self.partitions:
            return False
        return selectors.topic in (None, topic) and selectors.partition in (None, index)

    def carry_out(self, request: object = None, ctx: "Context | None" = None) -> object:
        """Handle the request, or another one in its place."""
        return self.handle(self.api, ctx or self.ctx, self.request if request is None else request)

    def carry_out_later(
        self, ms: int, convert: Callable[[object], object] | None = None
    ) -> BlockingResponse:
        """Handle the request after a delay, even if the client no longer waits.

        :param convert: Changes the response; None leaves it as it is.
        """
        broker, blocking = self.ctx.broker, self._block_response()

        def run() -> None:
            scheduler = broker.scheduler
            late = self.ctx._replace(now_ms=scheduler.now_ms(), wall_ms=scheduler.wall_ms())
            try:
                answer = self.carry_out(ctx=late)
            except Exception:
                blocking.complete(HANG_UP)
                raise
            blocking.complete_from(answer, convert or _unchanged)

        self.pending.run_after(broker.broker_id, ms, run)
        return blocking

    def carry_out_unanswered(self) -> BlockingResponse:
        """Handle the request and never respond; the connection ends with its client or broker."""
        answer, blocking = self.carry_out(), self._block_response()
        if isinstance(answer, Wait):
            blocking.inner = answer
        return blocking

    def block(self, answer: object, convert: Callable[[object], object]) -> BlockingResponse:
        """``convert`` of an answer as soon as that is complete; until then the connection waits."""
        blocking = self._block_response()
        blocking.complete_from(answer, convert)
        return blocking

    def convert(self, answer: object, convert: Callable[[object], object]) -> object:
        """``convert`` of an answer, now where it is complete."""
        return self.block(answer, convert) if isinstance(answer, Wait) else convert(answer)

    def throttle(self, response: object, ms: int) -> object:
        """The response with a throttle time; the connection is not read from for as long."""
        if isinstance(response, HangUp):
            return response
        until = self._block_response()
        self.pending.run_after(self.ctx.broker.broker_id, ms, lambda: until.complete(None))
        if response is not None:
            response = replace(cast("Message", response), throttle_time_ms=ms)
        return ThrottledResponse(response, until)

    def pace(self, response: object, size: int, bytes_per_s: int | None) -> object:
        """The response, of which some bytes are sent at a time; see `PacedResponse`."""
        if isinstance(response, HangUp):
            return response
        return PacedResponse(response, size, bytes_per_s, self._block_response())

    def intercept_response(self, answer: object, intercept: Callable[[object], object]) -> object:
        """What becomes of an answer as soon as that is complete; it may be due later still."""
        if not isinstance(answer, Wait):
            return intercept(answer)
        blocking = self._block_response()

        def on_response(response: object) -> None:
            if not blocking.done:
                blocking.complete_from(intercept(response), _unchanged)

        blocking.inner = answer
        answer.then(on_response)
        return blocking

    def _block_response(self) -> BlockingResponse:
        return self.pending.block_response(self.ctx.broker.broker_id)


def _unchanged(response: object) -> object:
    return response
