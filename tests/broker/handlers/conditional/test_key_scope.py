"""An expected offset has to be beyond the last offset of the record's key."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional.playing import play, table
from tests.broker.handlers.conditional.rows import (
    BY_KEY,
    BY_KEY_AND_HEADER,
    UNSPECIFIED,
    Answer,
    Batch,
    Configs,
    Row,
    Step,
    appended,
    batch,
    dragged,
    failed,
    mismatch,
    one,
    stating,
    truncated_to,
)

THERE: Final[list[Step]] = [batch("abc", UNSPECIFIED, "xyx")]
"""The last offset of x is 2, that of y is 1."""
APART: Final[list[Step]] = [batch(v, UNSPECIFIED, k) for v, k in zip("abc", "xyx", strict=True)]
"""The same in a batch each."""


def row(
    name: str,
    before: list[Step],
    sent: Batch | list[Batch],
    answer: Answer,
    after: str,
    *,
    configs: Configs = BY_KEY,
    since: int = 3,
) -> Row:
    return one(name, before, sent, answer, after, configs=configs, since=since)


BASE_OFFSETS: Final = (
    row("beyond the key's last", THERE, batch("d", 3, "x"), appended(3), "abcd"),
    row("at the key's last", THERE, batch("d", 2, "x"), mismatch((0, 2, 3, 2)), "abc"),
    row("before the key's last", THERE, batch("d", 0, "x"), mismatch((0, 0, 3, 2)), "abc"),
    row("others have written meanwhile", THERE, batch("d", 2, "y"), appended(3), "abcd"),
    row(
        "at the last of a key that is older",
        THERE,
        batch("d", 1, "y"),
        mismatch((0, 1, 3, 1)),
        "abc",
    ),
    row("far beyond", THERE, batch("d", 99, "x"), appended(3), "abcd"),
    row("a new key", THERE, batch("d", 0, "z"), appended(3), "abcd"),
    row("no key", THERE, batch("d", 0), appended(3), "abcd"),
    row("nothing expected", THERE, batch("d", UNSPECIFIED, "x"), appended(3), "abcd"),
    row("an empty log", [], batch("a", 0, "x"), appended(0), "a"),
    row("below nothing", THERE, batch("d", -2, "x"), mismatch((0, -2, 3, 2)), "abc"),
    row("below nothing with a new key", THERE, batch("d", -2, "z"), appended(3), "abcd"),
)

SEVERAL_RECORDS: Final = (
    row("each its own key", THERE, batch("de", 3, "xy"), appended(3), "abcde"),
    row("the same key twice", THERE, batch("de", 3, "xx"), appended(3), "abcde"),
    # The first is to be at 3, so the second has to expect more.
    row(
        "the same key twice from an old offset",
        THERE,
        batch("de", 2, "yy"),
        mismatch((1, 3, 4, 3)),
        "abc",
    ),
    row(
        "a new key twice from an old offset",
        THERE,
        batch("de", 0, "zz"),
        mismatch((1, 1, 4, 3)),
        "abc",
    ),
    row(
        "all that do not match",
        THERE,
        batch("def", 0, "xyz"),
        mismatch((0, 0, 3, 2), (1, 1, 4, 1)),
        "abc",
    ),
    row("keys and none", THERE, batch("def", 1, "..x"), appended(3), "abcdef"),
    row(
        "two batches",
        THERE,
        [batch("d", 3, "x"), batch("e", 4, "x")],
        appended(3),
        "abcde",
    ),
    row(
        "two batches and the second from an old offset",
        THERE,
        [batch("d", 3, "x"), batch("e", 3, "x")],
        mismatch((1, 3, 4, 3)),
        "abc",
    ),
    row(
        "one that expects nothing counts",
        THERE,
        [batch("d", UNSPECIFIED, "y"), batch("e", 2, "y")],
        mismatch((1, 2, 4, 3)),
        "abc",
    ),
    row(
        "another key in between",
        THERE,
        [batch("de", 3, "xz"), batch("f", 2, "y")],
        appended(3),
        "abcdef",
    ),
)

GAPS: Final = (
    row(
        "a gap",
        THERE,
        Batch(values="de", at=2, deltas=(0, 2), keys="xy"),
        mismatch((0, 2, 3, 2)),
        "abc",
    ),
    row(
        "a gap that all match",
        THERE,
        Batch(values="de", at=3, deltas=(0, 2), keys="xy"),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
)

COMPRESSED: Final = tuple(
    one_row
    for codec in Codec
    for one_row in (
        row(
            f"right in {codec.name}",
            THERE,
            Batch(values="de", at=3, keys="xy", codec=codec),
            appended(3),
            "abcde",
            since=7 if codec is Codec.ZSTD else 3,
        ),
        row(
            f"wrong in {codec.name}",
            THERE,
            Batch(values="de", at=0, keys="xy", codec=codec),
            mismatch((0, 0, 3, 2), (1, 1, 4, 1)),
            "abc",
            since=7 if codec is Codec.ZSTD else 3,
        ),
    )
)

HEADERS: Final = tuple(
    row(name, THERE, sent, answer, after, configs=BY_KEY_AND_HEADER)
    for name, sent, answer, after in (
        ("header beyond", stating("d", 3, keys="x"), appended(3), "abcd"),
        ("header at the last", stating("d", 2, keys="x"), mismatch((0, 2, 3, 2)), "abc"),
        ("header of another key", stating("d", 2, keys="y"), appended(3), "abcd"),
        ("header with a new key", stating("d", 0, keys="z"), appended(3), "abcd"),
        ("header without a key", stating("d", 0), appended(3), "abcd"),
        ("no header", stating("d", None, keys="x"), appended(3), "abcd"),
        ("header and base offset", stating("d", 3, at=1, keys="x"), appended(3), "abcd"),
        (
            "the same offset for all of a key",
            stating("def", 3, 3, 3, keys="xyx"),
            mismatch((2, 3, 5, 3)),
            "abc",
        ),
        (
            "only the last of a key states one",
            stating("de", None, 3, keys="xx"),
            mismatch((1, 3, 4, 3)),
            "abc",
        ),
    )
)

LOST: Final = (
    row("after truncation", [*APART, truncated_to(2)], batch("d", 1, "x"), appended(2), "abd"),
    row(
        "the last before the truncation",
        [*APART, truncated_to(2)],
        batch("d", 0, "x"),
        mismatch((0, 0, 2, 0)),
        "ab",
    ),
    row(
        "a key that was truncated away",
        [*APART, truncated_to(1)],
        batch("d", 0, "y"),
        appended(1),
        "ad",
    ),
)

TOGETHER: Final = (
    Row(
        name="another partition is dragged down",
        topics={"t": BY_KEY},
        before={"t-0": THERE, "t-1": THERE},
        send=[("t-0", [batch("d", 0, "x")]), ("t-1", [batch("d", 3, "x")])],
        answers=[("t-0", mismatch((0, 0, 3, 2))), ("t-1", dragged())],
        after={"t-0": "abc", "t-1": "abc"},
    ),
    Row(
        name="keys of another partition are others",
        topics={"t": BY_KEY},
        before={"t-0": THERE},
        send=[("t-1", [batch("d", 0, "x")])],
        answers=[("t-1", appended(0))],
        after={"t-0": "abc", "t-1": "d"},
    ),
    Row(
        name="the same partition twice",
        topics={"t": BY_KEY},
        before={"t-0": THERE},
        send=[("t-0", [batch("d", 3, "x")]), ("t-0", [batch("e", 3, "x")])],
        answers=[("t-0", dragged()), ("t-0", mismatch((0, 3, 4, 3)))],
        after={"t-0": "abc"},
    ),
)


@table([*BASE_OFFSETS, *SEVERAL_RECORDS, *GAPS, *COMPRESSED, *HEADERS, *LOST, *TOGETHER])
def test_keys(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"
