"""Records say in a header where they are to be; base offsets mean nothing then."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional.playing import play, table
from tests.broker.handlers.conditional.rows import (
    BY_HEADER,
    HEADER,
    UNSPECIFIED,
    Answer,
    Batch,
    Configs,
    Headers,
    Row,
    Step,
    appended,
    batch,
    deleted_to,
    dragged,
    failed,
    int64,
    mismatch,
    one,
    stating,
    truncated_to,
)

NO_OFFSET: Final = f"The header {HEADER} is neither decimal text nor 8 bytes"


def row(
    name: str,
    before: str | list[Step],
    sent: Batch | list[Batch],
    answer: Answer,
    after: str,
    *,
    since: int = 3,
    configs: Configs = BY_HEADER,
) -> Row:
    """One partition of a topic that asks the headers."""
    return one(name, before, sent, answer, after, configs=configs, since=since)


def invalid(*indexes: int) -> Answer:
    """These records state what is no offset."""
    shown = ", ".join(f"RecordError(batchIndex={at}, message='{NO_OFFSET}')" for at in indexes[:3])
    return Answer(
        code=ErrorCode.INVALID_RECORD,
        errors=[(at, NO_OFFSET) for at in indexes],
        message=f"One or more records have been rejected due to {len(indexes)} record errors in "
        f"total, and only showing the first three errors at most: [{shown}]",
    )


def last(*values: bytes | None) -> Headers:
    """Several headers of the name, and others around them."""
    return [("trace", b"1"), *((HEADER, value) for value in values), ("trace", None)]


STATED: Final = (
    row("text", "abc", stating("d", 3), appended(3), "abcd"),
    row("eight bytes", "abc", stating("d", int64(3)), appended(3), "abcd"),
    row("text on an empty log", "", stating("a", 0), appended(0), "a"),
    row("eight bytes on an empty log", "", stating("a", int64(0)), appended(0), "a"),
    row("zeros before it", "abc", stating("d", b"003"), appended(3), "abcd"),
    # Eight digits are text: as an integer they would be an offset beyond all that there are.
    row("eight digits", "abc", stating("d", b"00000003"), appended(3), "abcd"),
    row("eight other digits", "abc", stating("d", b"12345678"), mismatch((0, 12345678, 3)), "abc"),
    row("text too low", "abc", stating("d", 2), mismatch((0, 2, 3)), "abc"),
    row("text too high", "abc", stating("d", 4), mismatch((0, 4, 3)), "abc"),
    row("eight bytes too low", "abc", stating("d", int64(2)), mismatch((0, 2, 3)), "abc"),
    row("eight bytes too high", "abc", stating("d", int64(4)), mismatch((0, 4, 3)), "abc"),
    row(
        "the largest in text",
        "abc",
        stating("d", 2**63 - 1),
        mismatch((0, 2**63 - 1, 3)),
        "abc",
    ),
    row(
        "the largest in eight bytes",
        "abc",
        stating("d", int64(2**63 - 1)),
        mismatch((0, 2**63 - 1, 3)),
        "abc",
    ),
    row("negative in eight bytes", "abc", stating("d", int64(-2)), mismatch((0, -2, 3)), "abc"),
    row("nothing in text", "abc", stating("d", UNSPECIFIED), appended(3), "abcd"),
    row("nothing in eight bytes", "abc", stating("d", int64(UNSPECIFIED)), appended(3), "abcd"),
    row("no header", "abc", stating("d", None), appended(3), "abcd"),
    row("base offsets mean nothing", "abc", stating("d", 3, at=99), appended(3), "abcd"),
    row("base offsets without headers", "abc", batch("d", 99), appended(3), "abcd"),
    row("a base offset that is right", "abc", stating("d", 4, at=3), mismatch((0, 4, 3)), "abc"),
)

EACH_RECORD: Final = (
    row("each record", "abc", stating("def", 3, 4, 5), appended(3), "abcdef"),
    row("each in its own way", "abc", stating("def", 3, int64(4), None), appended(3), "abcdef"),
    row("one of them", "abc", stating("def", None, 4, None), appended(3), "abcdef"),
    row("the same for all", "abc", stating("def", 3, 3, 3), mismatch((1, 3, 4), (2, 3, 5)), "abc"),
    row("the other way round", "abc", stating("de", 4, 3), mismatch((0, 4, 3), (1, 3, 4)), "abc"),
    row("only the last wrong", "abc", stating("def", None, 4, 4), mismatch((2, 4, 5)), "abc"),
    row(
        "two batches",
        "abc",
        [stating("de", 3, 4), stating("f", 5)],
        appended(3),
        "abcdef",
    ),
    row(
        "records are counted through all batches",
        "abc",
        [stating("de", 3, 9), stating("f", 5), stating("g", 5)],
        mismatch((1, 9, 4), (3, 5, 6)),
        "abc",
    ),
    row(
        "a batch without headers moves the rest",
        "abc",
        [batch("de", 0), stating("f", 3)],
        mismatch((2, 3, 5)),
        "abc",
    ),
)

SEVERAL: Final = (
    row("the last of several is right", "abc", stating("d", last(b"9", b"3")), appended(3), "abcd"),
    row(
        "the last of several is wrong",
        "abc",
        stating("d", last(b"3", b"9")),
        mismatch((0, 9, 3)),
        "abc",
    ),
    row(
        "the last of several expects nothing",
        "abc",
        stating("d", last(b"9", b"-1")),
        appended(3),
        "abcd",
    ),
    row("the last of several is none", "abc", stating("d", last(b"3", b"x")), invalid(0), "abc"),
    row("one that is none before it", "abc", stating("d", last(b"x", b"3")), appended(3), "abcd"),
    row(
        "another name",
        "abc",
        stating("d", [("Expected-Offset", b"9"), ("expected_offset", b"x")]),
        appended(3),
        "abcd",
    ),
)

INVALID: Final = tuple(
    row(f"stating {name}", "abc", stating("d", [(HEADER, value)]), invalid(0), "abc")
    for name, value in {
        "null": None,
        "empty": b"",
        "a word": b"three",
        "a sign": b"+3",
        "a space": b" 3",
        "a fraction": b"3.0",
        "a negative number": b"-2",
        "two signs": b"--1",
        "seven bytes": b"\0" * 7,
        "nine bytes": b"\0" * 9,
        "more than 64 bits": b"%d" % 2**63,
        "too many digits": b"9" * 20,
        "digits of another alphabet": "٣".encode(),
    }.items()
)

INVALID_AMONG_OTHERS: Final = (
    row("the second none", "abc", stating("def", 3, b"x", 5), invalid(1), "abc"),
    row("all none", "abc", stating("defg", b"x", b"y", b"", None), invalid(0, 1, 2), "abc"),
    row(
        "one that is none in the second batch",
        "abc",
        [stating("de", 3, 4), stating("fg", 5, b"x")],
        invalid(3),
        "abc",
    ),
)

COMPRESSED: Final = (
    *(
        row(
            f"right in {codec.name}",
            "abc",
            Batch(values="de", at=0, codec=codec, headers=[last(b"3"), last(int64(4))]),
            appended(3),
            "abcde",
            since=7 if codec is Codec.ZSTD else 3,
        )
        for codec in Codec
    ),
    *(
        row(
            f"wrong in {codec.name}",
            "abc",
            Batch(values="de", at=0, codec=codec, headers=[last(b"3"), last(int64(5))]),
            mismatch((1, 5, 4)),
            "abc",
            since=7 if codec is Codec.ZSTD else 3,
        )
        for codec in Codec
    ),
)

LOST: Final = (
    row("after DeleteRecords", ["abc", deleted_to(3)], stating("d", 3), appended(3, start=3), "d"),
    row(
        "an offset that was deleted",
        ["abc", deleted_to(3)],
        stating("d", 0),
        mismatch((0, 0, 3), start=3),
        "",
    ),
    row("after truncation", ["a", "b", truncated_to(1)], stating("c", 1), appended(1), "ac"),
)

GAPS: Final = (
    row(
        "a gap",
        "abc",
        Batch(values="de", at=0, deltas=(0, 2), headers=[last(b"3"), last(b"4")]),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
)

TOGETHER: Final = (
    Row(
        name="a mismatch and what is none in another partition",
        topics={"t": BY_HEADER},
        before={"t-0": ["abc"], "t-1": ["x"]},
        send=[
            ("t-0", [stating("d", 9)]),
            ("t-1", [stating("y", b"x")]),
        ],
        answers=[("t-0", mismatch((0, 9, 3))), ("t-1", invalid(0))],
        after={"t-0": "abc", "t-1": "x"},
    ),
    Row(
        name="what is none drags no other down",
        topics={"t": BY_HEADER},
        before={"t-0": ["abc"], "t-1": ["x"]},
        send=[("t-0", [stating("d", 3)]), ("t-1", [stating("y", b"x")])],
        answers=[("t-0", appended(3)), ("t-1", invalid(0))],
        after={"t-0": "abcd", "t-1": "x"},
    ),
    Row(
        name="clients that state nothing are dragged down",
        topics={"t": BY_HEADER},
        before={"t-0": ["abc"], "t-1": ["x"]},
        send=[("t-0", [stating("d", 9)]), ("t-1", [batch("y", 0)])],
        answers=[("t-0", mismatch((0, 9, 3))), ("t-1", dragged())],
        after={"t-0": "abc", "t-1": "x"},
    ),
)


@table(
    [
        *STATED,
        *EACH_RECORD,
        *SEVERAL,
        *INVALID,
        *INVALID_AMONG_OTHERS,
        *COMPRESSED,
        *LOST,
        *GAPS,
        *TOGETHER,
    ]
)
def test_headers(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"
