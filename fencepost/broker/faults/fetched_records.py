"""Faults that select a Fetch by a record in its response, which is read before it is known.

The response is then handled as any request that is hit: to the kind of fault it is what the
handlers answer.
"""

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from fencepost.broker.core.context import PartitionRefusal
from fencepost.broker.core.outcomes import Delivery
from fencepost.broker.faults.interceptor import Interception
from fencepost.broker.faults.matching import fetched_partitions, topic_name_of, topics_of
from fencepost.broker.faults.request_fields import topic_fields
from fencepost.broker.fetch.partition_answers import error_answer
from fencepost.broker.handlers.context import Context
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.fetch import FetchResponse, PartitionData

if TYPE_CHECKING:
    from fencepost.broker.faults.kinds import Action


def intercept(hit: Interception, action: "Action") -> object:
    """Carry out a Fetch; hit its response if that has a record that the fault selects."""
    return hit.intercept_response(
        hit.carry_out(), lambda response: _intercept_response(hit, action, response)
    )


def _intercept_response(hit: Interception, action: "Action", answer: object) -> object:
    partitions = _selected(hit, answer)
    if not partitions or not hit.try_hit():
        return answer

    def handle(_api: Api, ctx: Context, _request: object) -> object:
        refusal = ctx.refusal
        response = cast(FetchResponse, answer)
        return response if refusal is None else _refused(ctx, response, refusal)

    return action.intercept(
        replace(hit, handle=handle, try_hit=lambda: True, partitions=partitions)
    )


def observe(hit: Interception, answer: object) -> object:
    """Count a Fetch if its response has a record that the fault selects; the answer is the same."""

    def count(outcome: object) -> object:
        response = outcome.response if isinstance(outcome, Delivery) else outcome
        if _selected(hit, response):
            hit.try_hit()
        return outcome

    return hit.intercept_response(answer, count)


def _selected(hit: Interception, response: object) -> frozenset[tuple[str | None, int]]:
    if not isinstance(response, FetchResponse):
        return frozenset()
    return fetched_partitions(hit.selectors, hit.ctx, response)


def _refused(ctx: Context, response: FetchResponse, refusal: PartitionRefusal) -> FetchResponse:
    """The response with the error, and without records, for the partitions that are refused."""
    fields = topics_of(topic_fields(BY_NAME["fetch"]))

    def partition(name: str | None, data: PartitionData) -> PartitionData:
        if not refusal.applies_to(name, data.partition_index):
            return data
        return error_answer(data.partition_index, refusal.code)

    return replace(
        response,
        responses=tuple(
            replace(topic, partitions=tuple(partition(name, p) for p in topic.partitions))
            for topic in response.responses
            for name in (topic_name_of(fields, ctx, topic),)
        ),
    )
