"""Copies of records with a byte that is another one."""

from __future__ import annotations

import pytest

from fencepost.broker.faults.wrong_responses import corrupted
from fencepost.protocol.records import crc_ok, iter_headers
from tests.harness.records import batch


@pytest.mark.parametrize("codec", [0, 1])
def test_the_first_batch_fails_its_checksum_and_only_that(codec: int) -> None:
    first, second = batch(b"a" * 100, codec=codec), batch(b"b" * 100, codec=codec)
    records = bytes(first + second)
    copy = corrupted(records)
    assert [at for at, (a, b) in enumerate(zip(records, copy, strict=True)) if a != b] == [
        len(first) - 1
    ]
    assert [crc_ok(copy, at, header) for at, header in iter_headers(copy)] == [False, True]


@pytest.mark.parametrize("records", [b"x", b"no batch at all", bytes(61), bytes(batch(b"a"))[:70]])
def test_what_is_no_batch_is_changed_as_well(records: bytes) -> None:
    copy = corrupted(records)
    assert len(copy) == len(records)
    assert copy != records
