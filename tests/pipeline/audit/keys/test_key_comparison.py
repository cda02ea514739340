"""Replicas that were cleaned at other times agree by keys; one that has lost a value does not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fencepost.pipeline.audit.keys.key_differences import KeyDifference
from fencepost.protocol.records import Record
from tests.pipeline.audit.keys.cleaned_logs import (
    Batch,
    Log,
    T,
    cleaned,
    copies,
    differences,
    end_of,
    logs,
    newest_values,
    stable_end,
    without,
    write_log,
)


def shown(key: bytes | None) -> str:
    assert key is not None
    return repr(key[:24].decode()) + (f" (the first of {len(key)} bytes)" if len(key) > 24 else "")


def found(
    *replicas: Log, parts: int = 2, segments: int = 3, most: int = 1_000
) -> Sequence[KeyDifference]:
    with tempfile.TemporaryDirectory() as folder:
        files = [
            each
            for number, log in enumerate(replicas)
            for each in write_log(Path(folder), log, number + 1, segments=segments)
        ]
        return differences(files, parts, most).found


@given(data=st.data(), log=logs(), parts=st.integers(1, 3), segments=st.integers(1, 4))
def test_replicas_that_were_cleaned_at_other_times_agree(
    data: st.DataObject, log: Log, parts: int, segments: int
) -> None:
    one, other = data.draw(copies(log)), data.draw(copies(log))
    told = found(one, other, parts=parts, segments=segments)
    if end_of(one) == end_of(other):
        assert told == ()
    # What a tombstone behind its end has deleted is all that a shorter one may have alone.
    shorter = 1 if end_of(one) < end_of(other) else 2
    assert {each.holder for each in told} <= {shorter}
    assert all(not each.is_there for each in told)


@given(data=st.data(), log=logs(), parts=st.integers(1, 3), segments=st.integers(1, 4))
def test_a_value_that_one_of_them_has_lost_is_told(
    data: st.DataObject, log: Log, parts: int, segments: int
) -> None:
    one, other = data.draw(copies(log)), data.draw(copies(log))
    newest = newest_values(one)
    # A newer one in a transaction that is open may have taken its place on another broker.
    latest = {each.key: each.offset for batch in other for each in batch.records}
    shared = [
        record
        for key, record in newest_values(other).items()
        if newest.get(key) == record and latest[key] == record.offset
    ]
    assume(shared)
    lost = data.draw(st.sampled_from(shared))
    told = found(one, without(other, lost.offset), parts=parts, segments=segments)
    assert (
        KeyDifference(
            holder=1,
            other=2,
            offset=lost.offset,
            time_ms=lost.timestamp,
            key=shown(lost.key),
            is_there=False,
        )
        in told
    )


@given(
    data=st.data(),
    logs=st.lists(logs(), min_size=2, max_size=3),
    parts=st.integers(1, 3),
    segments=st.integers(1, 5),
    most=st.integers(1, 6),
)
def test_any_split_into_segments_stretches_and_parts_tells_what_the_whole_tells(
    data: st.DataObject, logs: list[Log], parts: int, segments: int, most: int
) -> None:
    # Of other logs too: nearly everything differs then.
    replicas = [data.draw(copies(log)) for log in logs]
    whole = found(*replicas, parts=1, segments=1)
    assert found(*replicas, parts=parts, segments=segments, most=most) == whole


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b"", "''"),
        (b"order 7", "'order 7'"),
        (b"12345678", "'12345678'"),
        ("ä".encode() * 12, f"'{'ä' * 12}'"),
        (b"x" + "ä".encode() * 20, f"'x{'ä' * 11}' (the first of 41 bytes)"),
        (b"\0\1\0\0", "0x00010000"),
        (b"\xff" * 30, f"0x{'ff' * 24} (the first of 30 bytes)"),
        (b"a\x1b[2J", "0x611b5b324a"),
    ],
)
def test_a_key_is_named_as_it_can_be_read(key: bytes, name: str) -> None:
    one: Log = (Batch(base=0, last=0, records=(Record(0, T, key, b"v"),)),)
    other: Log = (Batch(base=0, last=0, records=(Record(0, T, key, b"w"),)),)
    (told,) = found(one, other)
    assert told.key == name


def sent(offset: int, producer: int = -1) -> Batch:
    record = Record(offset, T, b"a", b"value %d" % offset)
    return Batch(base=offset, last=offset, records=(record,), producer=producer)


def ended(offset: int, *, committed: bool) -> Batch:
    return Batch(base=offset, last=offset, producer=1, marker=committed)


def test_what_was_aborted_is_missed_nowhere() -> None:
    log: Log = (sent(0), sent(1, producer=1), ended(2, committed=False), sent(3, producer=2))
    own = cleaned(log, 3, tombstones_until=0, keeps_empty=True)
    assert [len(each.records) for each in own] == [1, 0, 0, 1]
    assert found(log, own) == ()


@pytest.mark.parametrize(
    ("log", "lost"),
    [
        ((sent(0, producer=1), ended(1, committed=True), sent(2)), 2),
        ((sent(0, producer=1), ended(1, committed=True)), 0),
        (
            (
                sent(0, producer=1),
                ended(1, committed=True),
                sent(2, producer=1),
                ended(3, committed=False),
            ),
            0,
        ),
        ((sent(0, producer=1), sent(1)), 1),
    ],
    ids=["plain", "committed", "committed before one that was aborted", "beside an open one"],
)
@pytest.mark.parametrize("segments", [1, 4])
def test_what_counts_is_missed(log: Log, lost: int, segments: int) -> None:
    own = cleaned(without(log, lost), stable_end(log), tombstones_until=0, keeps_empty=True)
    (told,) = found(log, own, segments=segments)
    assert (told.holder, told.other, told.offset) == (1, 2, lost)
