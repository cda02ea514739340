"""Any request of any API, from its fields as plain data."""

from typing import Final

from pydantic import Field

from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.actions.base import ActionAnswer, ActionBody
from fencepost.scenario.actions.context import Action, ActionContext, ScenarioClients
from fencepost.scenario.message_data import error_codes, named_api, to_plain_data, to_request


class CallBody(ActionBody):
    """Any request of any API."""

    api: str
    """Kafka's name, such as ``DescribeGroups``, or the key."""
    request: dict[str, object] = Field(default_factory=dict)
    """Its fields by Kafka's names in snake_case; those left out have Kafka's defaults."""


class CallAnswer(ActionAnswer):
    """Any answer. Its error is the first one in it that is not NONE."""

    response: dict[str, object] | None


async def _call(clients: ScenarioClients, context: ActionContext, body: CallBody) -> CallAnswer:
    api = named_api(body.api)
    connection = await clients.any_broker_connection(context, body)
    version = body.version
    if version is None:
        version = await connection.best_version(api, timeout_s=context.timeout_s)
    request = to_request(api, version, body.request)
    answer = await connection.ask_any(api, version, request, timeout_s=context.timeout_s)
    response = to_plain_data(api, version, answer)
    throttle_time_ms = response.get("throttle_time_ms", 0)
    assert isinstance(throttle_time_ms, int)
    error = next((code for code in error_codes(response) if code != ErrorCode.NONE), 0)
    return CallAnswer(
        **context.common_fields(error=error, version=version, throttle_time_ms=throttle_time_ms),
        response={**response},
    )


ACTIONS: Final = (Action("call", None, CallBody, CallAnswer, "Send any request.", _call),)
