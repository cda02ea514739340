"""Where requests meet faults: before the handlers of the broker that is asked.

A request is hit once at most. What it is answered may be a `BlockingResponse`, which holds up all
that its client asked behind it: as at a real broker nothing overtakes it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, assert_never, cast

from fencepost.broker.core import context
from fencepost.broker.core.outcomes import HANG_UP, BlockingResponse, HangUp, ThrottledResponse
from fencepost.broker.core.waits import Wait
from fencepost.broker.faults.registry import Fault, FaultRegistry
from fencepost.broker.faults.rules import (
    Corrupt,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    FaultRule,
    Refuse,
    StaleMetadata,
    Throttle,
)
from fencepost.broker.handlers import handler_of
from fencepost.broker.handlers.context import BrokerNode
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.faults.partial_refusal import Message
    from fencepost.protocol.apis import Api
    from fencepost.protocol.messages.fetch import FetchResponse
    from fencepost.protocol.messages.metadata import MetadataResponse
    from fencepost.protocol.messages.produce import ProduceRequest

_SESSION_CODES: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Of Fetch: they are about the session, not about a partition."""
_FIRST_FETCH_WITH_SESSIONS: Final = 7


class FaultNode(BrokerNode, Protocol):
    """What faults need of a broker: also the rules, and its handlers."""

    faults: FaultRegistry

    def handle(self, api: "Api", ctx: "Context", request: object) -> object:
        """Handle a request: see `fencepost.broker.core.outcomes`."""
        ...


Context: TypeAlias = context.Context[FaultNode]


def intercept(api: "Api", ctx: Context, request: object) -> object:
    """Answer a request of an API as the first fault that hits it says, or as ever."""
    broker = ctx.broker
    fault = broker.faults.find(ctx, api.key, request)
    ctx = ctx._replace(faults_checked=True)
    if fault is None:
        return broker.handle(api, ctx, request)
    rule = fault.rule
    match rule.action:
        case Refuse():
            return _refuse(rule, rule.action, ctx, request)
        case Delay(ms):
            return _delay(api, ctx, request, ms)
        case Disconnect(when):
            if when is DisconnectWhen.BEFORE:
                return HANG_UP
            return _blocking(ctx, broker.handle(api, ctx, request), lambda _: HANG_UP)
        case Throttle(ms):
            answer = broker.handle(api, ctx, request)
            return _blocking(ctx, answer, lambda response: _throttled(ctx, response, ms))
        case Drop():
            return _drop(ctx, broker.handle(api, ctx, request))
        case Corrupt():
            return _corrupt(fault, api, ctx, request)
        case StaleMetadata(epoch):
            return _stale(rule, epoch, ctx, request)
        case _:
            assert_never(rule.action)


# -- time and connections -----------------------------------------------------------------------


def _blocking(
    ctx: Context, answer: object, convert: Callable[[object], object]
) -> BlockingResponse:
    """What ``convert`` makes of an answer, when it is there; the connection waits for it."""
    held = ctx.broker.faults.block_response(ctx.broker.broker_id)
    held.complete_from(answer, convert)
    return held


def _delay(api: "Api", ctx: Context, request: object, ms: int) -> BlockingResponse:
    """Lie in the queue, and be carried out even if nobody waits for the answer any more."""
    broker, held = ctx.broker, ctx.broker.faults.block_response(ctx.broker.broker_id)

    def run() -> None:
        late = ctx._replace(now_ms=broker.scheduler.now_ms())
        try:
            answer = broker.handle(api, late, request)
        except Exception:
            held.complete(HANG_UP)
            raise
        held.complete_from(answer, lambda response: response)

    broker.faults.run_after(broker.broker_id, ms, run)
    return held


def _throttled(ctx: Context, response: object, ms: int) -> object:
    if isinstance(response, HangUp):
        return response
    faults, broker_id = ctx.broker.faults, ctx.broker.broker_id
    until = faults.block_response(broker_id)
    faults.run_after(broker_id, ms, lambda: until.complete(None))
    if response is not None:
        response = replace(cast("Message", response), throttle_time_ms=ms)
    return ThrottledResponse(response, until)


def _drop(ctx: Context, answer: object) -> BlockingResponse:
    """No answer, ever; the connection ends when its client gives up, or the broker does."""
    held = ctx.broker.faults.block_response(ctx.broker.broker_id)
    if isinstance(answer, Wait):
        held.inner = answer
    return held


# -- errors -------------------------------------------------------------------------------------


def _refuse(rule: FaultRule, action: Refuse, ctx: Context, request: object) -> object:
    if rule.api.name == "fetch":
        return _refuse_fetch(rule, action, ctx, request)
    from fencepost.broker.faults.partial_refusal import split_request

    broker, api, code = ctx.broker, rule.api, action.code
    is_late = code == ErrorCode.REQUEST_TIMED_OUT
    hangs_up = getattr(request, "acks", None) == 0

    parting = split_request(rule, action, ctx, cast("Message", request))
    if parting is None:
        if is_late:
            _cancel_wait(broker.handle(api, ctx, request))
        return HANG_UP if hangs_up else handler_of(api).refuse(request, code)
    if is_late and parting.selected is not None:
        _cancel_wait(broker.handle(api, ctx, parting.selected))
    answer = broker.handle(api, ctx, parting.rest)
    if hangs_up:
        return HANG_UP
    if isinstance(answer, Wait):
        return _blocking(ctx, answer, lambda response: parting.join(cast("Message", response)))
    return parting.join(cast("Message", answer))


def _refuse_fetch(rule: FaultRule, action: Refuse, ctx: Context, request: object) -> object:
    """Partitions live in sessions, and so it is for the handler to leave some out."""
    from fencepost.broker.handlers import fetch
    from fencepost.protocol.messages.fetch import FetchRequest, FetchResponse

    assert isinstance(request, FetchRequest)
    if action.code in _SESSION_CODES and ctx.version >= _FIRST_FETCH_WITH_SESSIONS:
        return FetchResponse(error_code=action.code)
    refusal = fetch.Refusal(
        code=action.code,
        topic=rule.topic,
        partition=rule.partition,
        is_late=action.code == ErrorCode.REQUEST_TIMED_OUT,
    )
    return fetch.handle_in_part(ctx, request, refusal)


def _cancel_wait(answer: object) -> None:
    """Carried out, and whoever waits for the answer is told another."""
    if isinstance(answer, Wait):
        answer.cancel()


# -- what is answered ---------------------------------------------------------------------------


def _corrupt(fault: Fault, api: "Api", ctx: Context, request: object) -> object:
    from fencepost.broker.faults.corruption import corrupt_fetch, corrupt_produce

    broker, rule = ctx.broker, fault.rule
    if api.name == "produce":
        corrupt = corrupt_produce(rule, ctx, cast("ProduceRequest", request))
        return broker.handle(api, ctx, corrupt)

    def convert(response: object) -> object:
        return corrupt_fetch(
            rule,
            ctx,
            cast("FetchResponse", response),
            lambda: broker.faults.try_hit(fault, ctx),
        )

    answer = broker.handle(api, ctx, request)
    return _blocking(ctx, answer, convert) if isinstance(answer, Wait) else convert(answer)


def _stale(rule: FaultRule, epoch: int, ctx: Context, request: object) -> object:
    from fencepost.broker.faults.stale_metadata import with_stale_epoch

    response = cast("MetadataResponse", ctx.broker.handle(rule.api, ctx, request))
    return with_stale_epoch(rule, epoch, ctx, ctx.broker.faults.leader_epoch_history, response)
