"""The partition of a key is the one that Kafka's clients and brokers compute."""

from __future__ import annotations

import pytest

from fencepost.broker.coordinator import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("my-group", -1906497762),
        ("polygenelubricants", -2147483648),
        ("é", 233),
        ("😀", 1772899),
        ("console-consumer-12345", 158455506),
    ],
)
def test_hashes_are_javas(text: str, java: int) -> None:
    assert java_hash(text) == java % 2**32


def test_the_smallest_hash_has_no_absolute_value() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert {partition_for(f"g{n}", 4) for n in range(50)} == {0, 1, 2, 3}
