"""Buckets are as many as partitions need: none grows with the cluster."""

from __future__ import annotations

import pytest

from fencepost.pipeline.audit.bucket_job import COPIES_A_BUCKET, bucket_count


@pytest.mark.parametrize(
    ("partitions", "copies", "buckets"),
    [(1, 3, 1), (50, 150, 50), (4_000, 8_192, 128), (4_000, 64_000, 1_000)],
)
def test_there_are_as_many_as_partitions_need(partitions: int, copies: int, buckets: int) -> None:
    assert bucket_count(partitions, copies) == buckets


@pytest.mark.parametrize("copies", [10**5, 10**6, 10**7])
def test_a_bucket_does_not_grow_with_the_cluster(copies: int) -> None:
    assert copies / bucket_count(4_000, copies) <= COPIES_A_BUCKET
