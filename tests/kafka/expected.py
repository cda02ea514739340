"""Which of Kafka's tests fail on fencepost, and why: ``expected.txt``, and how a run compares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.kafka.suite import Result

LIST: Final = Path(__file__).parent / "expected.txt"
_OUT_OF_REACH: Final = re.compile(r"OutOfReach: (\S+) is out of reach")


class Reason(StrEnum):
    """Why a test may fail. No other reason counts."""

    GROUPS = "groups"
    """It wants groups of KIP-848 and later ones: consumer, share, streams."""
    ACCESS = "access"
    """It wants SASL, an authorizer, or credentials, tokens and quotas that are stored."""
    JAVA = "java"
    """It reaches for a Java object of a broker in its own JVM; the call stands with it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The reason for which a test fails."""

    reason: Reason
    call: str = ""
    """With `Reason.JAVA`: the Java call that fails."""

    def __str__(self) -> str:
        return f"{self.reason} {self.call}".strip()


def read(text: str) -> dict[str, Expected]:
    """The lines of the list, ``TEST REASON [CALL]``, by test.

    :raises ValueError: When a line has no reason, another one, no call, or a test that was listed.
    """
    listed: dict[str, Expected] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        test, reason, *call = line.split(" ", 2)
        expected = Expected(Reason(reason), *call)
        if bool(expected.call) != (expected.reason is Reason.JAVA):
            raise ValueError(f"a Java call belongs to the reason java: {line}")
        if test in listed:
            raise ValueError(f"listed twice: {test}")
        listed[test] = expected
    return listed


def problems(results: Collection[Result], expected: Mapping[str, Expected]) -> Iterator[str]:
    """What a run and the list do not agree on: a line each, which begins with the test."""
    ran = Counter(result.test for result in results)
    yield from (f"{test} ran {count} times" for test, count in ran.items() if count > 1)
    for result in results:
        listed = expected.get(result.test)
        match result.outcome:
            case "fail" if listed is None:
                yield f"{result.test} fails: {first_line(result.trace)}"
            case "fail" if listed is not None and not _fits(listed, result):
                yield f"{result.test} fails by {out_of_reach(result)}, but is listed: {listed}"
            case "pass" if listed is not None:
                yield f"{result.test} passes, but is listed: {listed}"
            case "skip" if listed is not None:
                yield f"{result.test} is skipped, but is listed: {listed}"


def absent(results: Iterable[Result], expected: Mapping[str, Expected]) -> list[str]:
    """The listed tests that a run of all did not have."""
    ran = {result.test for result in results}
    return [f"{test} is listed and did not run" for test in expected if test not in ran]


def _fits(listed: Expected, result: Result) -> bool:
    """Whether a Java call that our classes refused is the listed one; some calls never come."""
    return listed.reason is not Reason.JAVA or out_of_reach(result) in {"", listed.call}


def out_of_reach(result: Result) -> str:
    """The Java call that our Java classes refused; empty where there was none."""
    found = _OUT_OF_REACH.search(result.trace)
    return found[1] if found else ""


def first_line(trace: str) -> str:
    return trace.partition("\n")[0][:300]


def summary(results: Collection[Result], expected: Mapping[str, Expected]) -> str:
    """How many there were, passed, and failed for which reason."""
    outcomes = Counter(result.outcome for result in results)
    failed = [result.test for result in results if result.outcome == "fail"]
    reasons = Counter(str(expected[test].reason) for test in failed if test in expected)
    words = [f"{outcomes['pass']} of {outcomes['pass'] + outcomes['fail']} pass"]
    words += [f"{reasons[reason]} fail for {reason}" for reason in Reason if reasons[reason]]
    if unexpected := len(failed) - sum(reasons.values()):
        words.append(f"{unexpected} fail and are not listed")
    if outcomes["skip"]:
        words.append(f"{outcomes['skip']} are skipped by Kafka")
    return ", ".join(words)
