"""Keys go where Kafka's own clients put them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as their_murmur2

from fencepost.pipeline.load.partitioner import murmur2, partitions_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # of Kafka's UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_known_hashes(key: bytes, hashed: int) -> None:
    assert murmur2(pa.array([key]))[0] == hashed % (1 << 32)


@settings(database=None, max_examples=50)
@given(st.lists(st.binary(max_size=70)))
def test_as_another_client_has_it(keys: list[bytes]) -> None:
    column = pa.array([b"before", *keys, b"behind"], pa.binary()).slice(1, len(keys))
    assert murmur2(column).tolist() == [their_murmur2(key) & 0xFFFFFFFF for key in keys]


@settings(database=None, max_examples=50)
@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(1, 200))
def test_partitions(keys: list[bytes | None], count: int) -> None:
    chosen = partitions_of(pa.array(keys, pa.binary()), count).to_pylist()
    assert chosen == [
        None if key is None else (their_murmur2(key) & 0x7FFFFFFF) % count for key in keys
    ]
