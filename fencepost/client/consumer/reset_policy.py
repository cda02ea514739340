"""``auto_offset_reset``: where a consumer goes on that has no valid position.

The policies of Kafka's consumer are latest, earliest, none and by_duration (KIP-1106). The earlier
draft of KIP-320 adds closest. Each says one target for each of the draft's three situations; a
truncation whose offset was found needs none, as every policy but none goes to that offset:

    policy       no position yet     out of range        truncated, offset not found
    latest       log end             log end             log end
    earliest     log start           log start           log start
    by_duration  by time             by time             by time
    closest      log start           log start           by the time of the last committed record
    none         an error            an error            an error
"""

import re
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d{1,9})D)?(?:T(?=.)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:[.,]\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_BY_DURATION: Final = "by_duration:"


class Strategy(StrEnum):
    """The policies by their names."""

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"
    BY_DURATION = "by_duration"
    CLOSEST = "closest"


class Situation(StrEnum):
    """Why there is no valid position."""

    INITIALIZATION = "initialization"
    OUT_OF_RANGE = "out_of_range"
    """Before the log start; in Kafka's protocol also behind the log end."""
    TRUNCATED = "truncated"
    """The log was truncated, and the first offset that differs could not be found."""


class Target(StrEnum):
    """Where to look for the position."""

    LOG_START = "log_start"
    LOG_END = "log_end"
    BY_DURATION = "by_duration"
    """The first record that is not older than the policy's duration; else the log end."""
    BY_COMMIT = "by_commit"
    """By the timestamp of the most recently committed record; without any, the log end."""


def _in_each(target: Target) -> dict[Situation, Target]:
    return dict.fromkeys(Situation, target)


_TARGETS: Final = MappingProxyType(
    {
        Strategy.LATEST: _in_each(Target.LOG_END),
        Strategy.EARLIEST: _in_each(Target.LOG_START),
        Strategy.BY_DURATION: _in_each(Target.BY_DURATION),
        Strategy.CLOSEST: _in_each(Target.LOG_START) | {Situation.TRUNCATED: Target.BY_COMMIT},
        Strategy.NONE: {},
    }
)


class ResetPolicy(Struct, frozen=True, kw_only=True):
    """A parsed ``auto_offset_reset``."""

    strategy: Strategy
    duration_ms: int = 0
    """Of by_duration."""

    @property
    def resets(self) -> bool:
        """Whether positions are reset; otherwise the application is told by an error."""
        return self.strategy is not Strategy.NONE

    def target(self, situation: Situation) -> Target:
        """Where to look for the position; not for none."""
        return _TARGETS[self.strategy][situation]


def parse_reset_policy(text: str, *, drafted: bool) -> ResetPolicy:
    """Read ``latest``, ``earliest``, ``none``, ``by_duration:PnDTnHnM.nS`` or ``closest``.

    :param drafted: Whether the consumer speaks KIP-320's earlier draft, which has closest.
    :raises ValueError: When it is none of them, or closest without the draft.
    """
    if text.startswith(_BY_DURATION):
        duration_ms = _parse_duration(text.removeprefix(_BY_DURATION))
        return ResetPolicy(strategy=Strategy.BY_DURATION, duration_ms=duration_ms)
    if text == Strategy.CLOSEST and not drafted:
        raise ValueError(
            "auto_offset_reset closest is of KIP-320's earlier draft:"
            ' it needs dialect="kip-320-draft"'
        )
    if text not in set(Strategy) - {Strategy.BY_DURATION}:
        raise ValueError(
            f"auto_offset_reset {text!r} is none of latest, earliest, none,"
            " by_duration:PnDTnHnMn.nS" + (", closest" if drafted else "")
        )
    return ResetPolicy(strategy=Strategy(text))


def _parse_duration(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration as PnDTnHnMn.nS, such as P7D or PT1H30M")
    days, hours, minutes, seconds = (
        float((each or "0").replace(",", ".")) for each in found.groups()
    )
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
