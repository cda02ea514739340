"""Which answers must be equal, and in what they may differ.

Nothing else is forgiven: a row that is not listed here is compared to the last character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.harness.wire import Value
from tests.oracle.asking import Row

APACHE: Final = ("--conformance", "apache", "--config", "auto.create.topics.enable=false")
"""How to serve what the rows are compared with: configured as the recorded broker was."""

RECORDED: Final = Path(__file__).with_name("rows") / "single.json"

EXCEPTED: Final = {
    (
        "Produce",
        "acks=0",
    ): "a race between the append and the lookup behind it, at a real broker as well",
    (
        "ListOffsets",
        "v11 known + unknown partition + unknown topic",
    ): "a real broker answers topics and partitions in the order of its hash maps",
    (
        "ApiVersions",
        "full v4 key list",
    ): "only what is served is advertised; transactions, SASL, ACLs, quorums and more come later",
}
"""Rows that are not compared, each with its reason."""

ADVERTISED_OTHERWISE: Final = {
    22: "InitProducerId v6 exists, and 4.3.1 holds it back as unstable",
    71: "GetTelemetrySubscriptions: Kafka advertises it with a metrics reporter configured",
    72: "PushTelemetry: the same",
}
"""API keys whose versions the recorded broker advertised otherwise, or not at all."""

MASKED_FIELDS: Final = (
    "ControllerId",
    "Port",
    "Host",
    "ClusterId",
    "NodeId",
    "LeaderId",
    "ThrottleTimeMs",
)

MASKED_TEXTS: Final[Sequence[tuple[str, str]]] = (
    (r"\bo\d+-", "P-"),  # the prefix of a run's topics
    (r"\b[0-9a-f]{32}\b", "ID"),  # topic ids
    (r"'(ControllerId|Port|NodeId|LeaderId|ThrottleTimeMs)': -?\d+", r"'\1': *"),
    (r"'(Leader|Host|ClusterId)': '?[^,'}]+'?", r"'\1': *"),
    (r"response \d+B: [0-9a-f]+", "response"),  # an answer that names a host and a port
    (r"\b1[5-9]\d{11}\b", "NOW"),  # times of day
    (r"-92233\d{14}", "LOW"),  # a bound that is a time of day minus the largest int64
    (r"'Rack': 'r\d'", "'Rack': *"),
    (r"127\.0\.0\.1:\d+", "ADDR"),
    (r"\b\d+\.\d+s\b", "S"),
)

MASKED_IN_METADATA: Final = (
    r"'(ReplicaNodes|IsrNodes|LeaderEpoch)': (\[[^]]*\]|-?\d+)",
    r"'\1': *",
)
"""Where a partition lives is placed by chance."""

KEY_COUNT: Final = (r"keys=[1-9]\d*", "keys=some")
"""How many APIs are advertised, in the rows of ApiVersions: see the exception of the key list."""


def recorded() -> list[Row]:
    return [
        (section, request, answer) for section, request, answer in json.loads(RECORDED.read_text())
    ]


def differences(want: Iterable[Row], got: Iterable[Row]) -> list[str]:
    """The rows of ``want`` that ``got`` lacks or answers otherwise, as readable text."""
    answers = _by_request(got)
    found = []
    for key, expected in _by_request(want).items():
        actual = answers.get(key, "no such row")
        if actual != expected:
            section, request = key
            found.append(f"{section}: {request}\n   want {expected}\n   got  {actual}")
    return found


def _by_request(rows: Iterable[Row]) -> dict[tuple[str, str], Value]:
    return {
        (section, request): _masked_row(section, answer)
        for section, request, answer in rows
        if (section, request) not in EXCEPTED
    }


def _masked_row(section: str, answer: Value) -> Value:
    if section == "ApiVersions" and isinstance(answer, str):
        answer = re.sub(*KEY_COUNT, answer)
    return mask(answer)


def mask(answer: Value) -> Value:
    """An answer without what differs between any two real clusters."""
    if isinstance(answer, dict):
        return {k: "*" if k in MASKED_FIELDS else mask(v) for k, v in answer.items()}
    if isinstance(answer, list):
        return [mask(each) for each in answer]
    if not isinstance(answer, str):
        return answer
    for pattern, replacement in MASKED_TEXTS:
        answer = re.sub(pattern, replacement, answer)
    return re.sub(*MASKED_IN_METADATA, answer) if "topic={" in answer else answer
