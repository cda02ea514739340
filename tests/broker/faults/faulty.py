"""Faults in few words, for clusters that are driven by hand."""

from __future__ import annotations

from typing import Any, Final

from fencepost.broker.core.events import Event
from fencepost.broker.faults.kinds import Action
from fencepost.broker.faults.registry import Fault
from fencepost.broker.faults.rules import FaultRule
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from tests.broker.driver import Driver

CODE: Final = ErrorCode.KAFKA_STORAGE_ERROR
"""No handler answers it on its own."""


def rule(api_name: str, action: Action, **selectors: Any) -> FaultRule:  # noqa: ANN401  # a rule's fields
    return FaultRule(api=BY_NAME[api_name], action=action, **selectors)


def set_fault(
    driver: Driver,
    api_name: str,
    action: Action,
    **selectors: Any,  # noqa: ANN401  # as above
) -> Fault:
    return driver.cluster.faults.add(rule(api_name, action, **selectors))


def listen(driver: Driver) -> list[Event]:
    """What happens from now on."""
    events: list[Event] = []
    driver.cluster.events.listeners.append(events.append)
    return events
