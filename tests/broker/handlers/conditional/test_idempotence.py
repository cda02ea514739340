"""A batch that comes again is known before its offsets are compared; sequences come after them."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional.playing import play, table
from tests.broker.handlers.conditional.rows import (
    BY_HEADER,
    BY_KEY,
    ON,
    UNSPECIFIED,
    Answer,
    Batch,
    Configs,
    Headers,
    Row,
    Step,
    again,
    appended,
    batch,
    failed,
    mismatch,
    one,
    truncated_to,
)

PRODUCER: Final = 7000


def by(
    values: str,
    at: int,
    sequence: int,
    *,
    epoch: int = 0,
    producer: int = PRODUCER,
    codec: Codec = Codec.NONE,
    keys: str | None = None,
    headers: list[Headers] | None = None,
) -> Batch:
    """A batch of an idempotent producer."""
    return Batch(
        values=values,
        at=at,
        producer=(producer, epoch, sequence),
        codec=codec,
        keys=keys,
        headers=headers,
    )


def row(
    name: str,
    before: list[Step],
    sent: Batch | list[Batch],
    answer: Answer,
    after: str,
    configs: Configs = ON,
) -> Row:
    return one(name, before, sent, answer, after, configs=configs)


def failed_here(code: ErrorCode) -> Answer:
    """An error that the log has found."""
    return failed(code, start=0)


SENT_AGAIN: Final = (
    row("a batch again", [by("abc", 0, 0)], by("abc", 0, 0), again(0), "abc"),
    row(
        "a batch again after others wrote",
        [by("ab", 0, 0), "x"],
        by("ab", 0, 0),
        again(0),
        "abx",
    ),
    row(
        "one of the last five",
        [by(v, at, at) for at, v in enumerate("abcde")],
        by("a", 0, 0),
        again(0),
        "abcde",
    ),
    row(
        "one before the last five",
        [by(v, at, at) for at, v in enumerate("abcdef")],
        by("a", 0, 0),
        mismatch((0, 0, 6)),
        "abcdef",
    ),
    row(
        "a set again",
        [by("ab", 0, 0), by("c", 2, 2)],
        [by("ab", 0, 0), by("c", 2, 2)],
        again(0),
        "abc",
    ),
    row(
        "a set again after others wrote",
        ["x", by("ab", 1, 0), by("c", 3, 2), "y"],
        [by("ab", 1, 0), by("c", 3, 2)],
        again(1),
        "xabcy",
    ),
    row(
        "a compressed batch again",
        [by("ab", 0, 0, codec=Codec.LZ4)],
        by("ab", 0, 0, codec=Codec.LZ4),
        again(0),
        "ab",
    ),
    row(
        "again and expected elsewhere",
        [by("abc", 0, 0)],
        by("abc", 99, 0),
        again(0),
        "abc",
    ),
    row(
        "again by header",
        [by("ab", 0, 0)],
        by("ab", 0, 0, headers=[[("expected-offset", b"0")], ()]),
        again(0),
        "ab",
        BY_HEADER,
    ),
    row(
        "again by key",
        [by("ab", 0, 0, keys="xx")],
        by("ab", 0, 0, keys="xx"),
        again(0),
        "ab",
        BY_KEY,
    ),
)

SUFFIX_LOST: Final = (
    row(
        "the last of a set was lost",
        [by("ab", 0, 0), by("c", 2, 2), truncated_to(2)],
        [by("ab", 0, 0), by("c", 2, 2)],
        again(0),
        "abc",
    ),
    row(
        "all but the first of a set were lost",
        ["x", by("a", 1, 0), by("b", 2, 1), by("cd", 3, 2), truncated_to(2)],
        [by("a", 1, 0), by("b", 2, 1), by("cd", 3, 2)],
        again(1),
        "xabcd",
    ),
    row(
        "all of a set were lost",
        ["x", by("a", 1, 0), by("b", 2, 1), truncated_to(1)],
        [by("a", 1, 0), by("b", 2, 1)],
        appended(1),
        "xab",
    ),
    row(
        "others wrote where the last of a set was lost",
        [by("ab", 0, 0), by("c", 2, 2), truncated_to(2), "x"],
        [by("ab", 0, 0), by("c", 2, 2)],
        mismatch((2, 2, 3)),
        "abx",
    ),
)

NEXT: Final = (
    row("the next one", [by("ab", 0, 0)], by("c", 2, 2), appended(2), "abc"),
    row(
        "a set of the next ones",
        [by("ab", 0, 0)],
        [by("c", 2, 2), by("de", 3, 3)],
        appended(2),
        "abcde",
    ),
    row(
        "a set of more than five",
        [],
        [by(v, at, at) for at, v in enumerate("abcdefgh")],
        appended(0),
        "abcdefgh",
    ),
    row(
        "what was there and what is new",
        [by("ab", 0, 0)],
        [by("ab", 0, 0), by("c", 2, 2)],
        again(0),
        "abc",
    ),
    row("nothing expected", [by("ab", 0, 0)], by("c", UNSPECIFIED, 2), appended(2), "abc"),
    row(
        "two producers",
        [by("ab", 0, 0)],
        [by("c", 2, 2), by("d", 3, 0, producer=8000)],
        appended(2),
        "abcd",
    ),
    row("a new epoch", [by("ab", 0, 0)], by("c", 2, 0, epoch=1), appended(2), "abc"),
)

SEQUENCES: Final = (
    # What it expects comes first, whatever its sequence.
    row("a mismatch and out of order", [by("ab", 0, 0)], by("c", 3, 9), mismatch((0, 3, 2)), "ab"),
    row(
        "a mismatch and an old epoch",
        [by("a", 0, 0, epoch=1)],
        by("b", 2, 0),
        mismatch((0, 2, 1)),
        "a",
    ),
    row("a mismatch", [by("ab", 0, 0)], by("c", 3, 2), mismatch((0, 3, 2)), "ab"),
    row(
        "out of order",
        [by("ab", 0, 0)],
        by("c", 2, 9),
        failed_here(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        "ab",
    ),
    row(
        "an old epoch",
        [by("a", 0, 0, epoch=1)],
        by("b", 1, 0),
        failed_here(ErrorCode.INVALID_PRODUCER_EPOCH),
        "a",
    ),
    row(
        "out of order within a set",
        [by("ab", 0, 0)],
        [by("c", 2, 2), by("d", 3, 4)],
        failed_here(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        "ab",
    ),
    row(
        "after a mismatch the next one goes on",
        [by("ab", 0, 0)],
        [by("c", 2, 2), batch("x", 3), by("d", 4, 3)],
        appended(2),
        "abcxd",
    ),
)


@table([*SENT_AGAIN, *SUFFIX_LOST, *NEXT, *SEQUENCES])
def test_idempotent_producers(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"
