"""Faults in few words, for clusters that are driven by hand."""

from __future__ import annotations

from typing import Any, Final

from fencepost.broker.core.events import Event
from fencepost.broker.faults.kinds import Action
from fencepost.broker.faults.registry import Fault
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.faults.selectors import EVERY, Apis
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver

CODE: Final = ErrorCode.KAFKA_STORAGE_ERROR
"""No handler answers it on its own."""


def rule(
    api_names: str,
    action: Action | None = None,
    **selectors: Any,  # noqa: ANN401  # a rule's fields
) -> FaultRule:
    """:param api_names: One or several with spaces, or ``*``."""
    named = () if api_names == EVERY else tuple(BY_NAME[name] for name in api_names.split())
    return FaultRule(api=Apis(named), action=action, **selectors)


def set_fault(
    driver: Driver,
    api_names: str,
    action: Action | None = None,
    **selectors: Any,  # noqa: ANN401  # as above
) -> Fault:
    return driver.cluster.faults.add(rule(api_names, action, **selectors))


def listen(driver: Driver) -> list[Event]:
    """What happens from now on."""
    events: list[Event] = []
    driver.cluster.events.listeners.append(events.append)
    return events
