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


@pytest.mark.parametrize(
    ("key", "count", "partition"),
    [
        ("group", 50, 47),
        ("my-group", 50, 12),
        ("polygenelubricants", 50, 0),
        # Where a 4.3.1 with four partitions of __consumer_offsets wrote these groups.
        ("test-consumer-group", 4, 1),
        ("second-group", 4, 2),
        ("third-group", 4, 3),
    ],
)
def test_the_absolute_value_of_the_hash_chooses(key: str, count: int, partition: int) -> None:
    assert partition_for(key, count) == partition


def test_every_partition_has_keys() -> None:
    assert {partition_for(f"g{n}", 4) for n in range(50)} == {0, 1, 2, 3}
