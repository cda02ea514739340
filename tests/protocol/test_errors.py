"""Error codes by Kafka's numbers and names."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from fencepost.protocol.errors import ErrorCode, error_name

OWN = {"EXPECTED_OFFSET_MISMATCH": 2701, "LOG_TRUNCATION": 2702}


def test_the_numbers_and_names_are_kafkas_and_two_of_our_own() -> None:
    kafkas = {code.name.upper(): code.value for code in KioErrorCode}
    ours = {code.name: code.value for code in ErrorCode}
    assert {name: ours.get(name) for name in kafkas} == kafkas
    assert {name: number for name, number in ours.items() if name not in kafkas} == OWN


@pytest.mark.parametrize(
    ("code", "name"), [(0, "NONE"), (-1, "UNKNOWN_SERVER_ERROR"), (74, "FENCED_LEADER_EPOCH")]
)
def test_a_code_has_a_name(code: int, name: str) -> None:
    assert error_name(code) == name


def test_a_code_that_nobody_named_is_its_number() -> None:
    assert error_name(31_000) == "31000"
