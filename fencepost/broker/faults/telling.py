"""An action as a test names it."""

from typing import assert_never

from fencepost.broker.faults.rules import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Refuse,
    StaleMetadata,
    Throttle,
)
from fencepost.protocol.errors import ErrorCode


def action_told(action: Action) -> dict[str, object]:
    """One field: what is done, and its value; an error by Kafka's name where it has one."""
    match action:
        case Refuse(code):
            return {"error": ErrorCode(code).name if code in _NAMED else code}
        case Delay(ms):
            return {"delay": ms}
        case Disconnect(when):
            return {"disconnect": when.value}
        case Throttle(ms):
            return {"throttle": ms}
        case Drop():
            return {"drop": True}
        case Corrupt():
            return {"corrupt": True}
        case StaleMetadata(epoch):
            return {"stale_metadata": epoch}
        case _:
            assert_never(action)


_NAMED = frozenset(ErrorCode)
