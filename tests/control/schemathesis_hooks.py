"""What schemathesis leaves alone, for a Kafka client that is not to be harmed; see its test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import schemathesis

from tests.control.fuzzed import CLIENTS_BROKERS, FUZZED, FUZZED_BROKER, SAFE

if TYPE_CHECKING:
    from schemathesis import Case, HookContext

PATIENCE_MS: Final = 20
"""How long a wait may take, so that there is time for others."""

WAITING: Final = ("/records", "/records/expect", "/groups/{group}/wait")
"""What may wait and has its time in its body."""


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    """Keep requests off the client's topic, brokers and requests, and off long waits."""
    path, body = case.path_parameters or {}, case.body
    if "topic" in path:
        path["topic"] = _topic(path["topic"])
        if str(path.get("partition", "")).isdigit():
            path["partition"] = int(path["partition"]) % 2
    if str(path.get("broker")) in CLIENTS_BROKERS:
        path["broker"] = FUZZED_BROKER
    if isinstance(body, dict) and case.operation.path == "/v1/topics":
        body["name"] = _topic(body.get("name"))
    if isinstance(body, dict) and case.operation.path == "/v1/faults" and _may_be_mine(body):
        body["client_id"] = "absent"
    if isinstance(body, dict) and case.operation.path.endswith(WAITING):
        body["timeout_ms"] = PATIENCE_MS
    elif case.operation.path.endswith("/wait"):
        given = (case.query or {}).get("timeout_ms", "10000")
        if str(given).isdigit():
            case.query = {**(case.query or {}), "timeout_ms": str(PATIENCE_MS)}


def _may_be_mine(fault: dict[str, Any]) -> bool:
    """Whether it might hit the client; one with a client id that is no text is to be refused."""
    return isinstance(fault.get("client_id", ""), str | None)


def _topic(given: Any) -> Any:  # noqa: ANN401  # whatever comes to its mind
    if isinstance(given, str) and (given == SAFE or len(given) % 2):
        return FUZZED
    return given
