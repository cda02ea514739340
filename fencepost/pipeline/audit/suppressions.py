"""Findings that are known and accepted: a file of them, a line each, and which findings it is of.

    # Broker 2 is replaced in January, and its indexes with it.
    true-indexes     topic=orders-*  broker=2               -- OPS-1234
    replicas-agree   topic=payments  partition=3  until=2027-01-31  -- lost in the outage of May

A line has the name of a rule, where its findings are, and why they are accepted. What is left out
counts for nothing: a rule alone is suppressed everywhere. A finding that is suppressed is recorded
with the reason, and is no violation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.datasource.schemas import Place
from fencepost.protocol.lookup import suggestion

_REASON: Final = "--"
_EXAMPLE: Final = "true-indexes topic=orders partition=3 -- OPS-1234"


class InvalidSuppressions(ValueError):
    """A file of suppressions has a line that can't be followed. The text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Which findings are accepted, and why."""

    rule: str
    reason: str
    topic: str | None = None
    """A pattern of names with ``*`` and ``?``; None, as of the others: whichever it is."""
    partition: int | None = None
    broker: int | None = None
    place: str | None = None
    segment: int | None = None
    """Its base offset."""
    until: date | None = None
    """The last day, in UTC."""

    def is_of(self, finding: Violation) -> bool:
        """Whether it is of a finding."""
        if finding.rule != self.rule:
            return False
        if self.topic is not None and not fnmatchcase(finding.topic or "", self.topic):
            return False
        return all(
            wanted is None or wanted == found
            for wanted, found in (
                (self.partition, finding.partition),
                (self.broker, finding.broker),
                (self.place, finding.place),
                (self.segment, finding.segment),
            )
        )


def reason_of(finding: Violation, suppressions: Sequence[Suppression]) -> str | None:
    """Why a finding is suppressed; None where it is not, or is explained and needs none."""
    if finding.explanation is not None:
        return None
    return next((each.reason for each in suppressions if each.is_of(finding)), None)


def parse_suppressions(
    text: str, name: str, rules: Collection[str], now_ms: int
) -> tuple[Suppression, ...]:
    """The lines of a file that count now.

    :param name: Of the file, for errors.
    :param rules: The names that there are.
    :param now_ms: When the audit was begun: what ended before is left out.
    :raises InvalidSuppressions: When a line can't be followed; the error says which, and what would
        be right.
    """
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            parsed = _parse(line, rules)
        except InvalidSuppressions as error:
            raise InvalidSuppressions(f"{name}, line {number}: {error}") from None
        if parsed is not None and (parsed.until is None or parsed.until >= today):
            found.append(parsed)
    return tuple(found)


def _parse(line: str, rules: Collection[str]) -> Suppression | None:
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    if _REASON not in words or words[-1] == _REASON:
        raise InvalidSuppressions(f"it has no reason: put one behind {_REASON}, as in {_EXAMPLE}")
    at = words.index(_REASON)
    (rule, *conditions), reason = words[:at] or [""], " ".join(words[at + 1 :])
    if not rule:
        raise InvalidSuppressions(f"it has no rule: a line begins with one, as in {_EXAMPLE}")
    if rule not in rules:
        raise InvalidSuppressions(f"there is no rule {rule}{suggestion(rule, tuple(rules))}")
    return Suppression(rule=rule, reason=reason, **_conditions(conditions))


def _conditions(words: Iterable[str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _READERS:
            known = suggestion(key, tuple(_READERS))
            raise InvalidSuppressions(f"{word!r} is no condition{known}")
        if not equals or not value:
            raise InvalidSuppressions(f"{word!r} has no value: write {_SHOWN[key]}")
        if key in found:
            raise InvalidSuppressions(f"{word!r} gives {key} a second time: write a line for each")
        try:
            found[key] = _READERS[key](value)
        except ValueError:
            raise InvalidSuppressions(f"{word!r} can't be: write {_SHOWN[key]}") from None
    return found


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "topic": str,
    "partition": _number,
    "broker": _number,
    "place": lambda text: Place(text).value,
    "segment": _number,
    "until": date.fromisoformat,
}
_SHOWN: Final = {
    "topic": "topic=orders, or topic=orders-* for several",
    "partition": "partition=3",
    "broker": "broker=2",
    "place": "place=log or place=tier",
    "segment": "segment=4500, the base offset in the file's name",
    "until": "until=2027-01-31",
}
