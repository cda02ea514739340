"""Base offsets are compared with the upcoming offset of the partition, batch after batch."""

from __future__ import annotations

from typing import Final

from fencepost.broker.core.scheduler import ManualClock
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional.playing import play, table
from tests.broker.handlers.conditional.rows import (
    ON,
    UNSPECIFIED,
    Answer,
    Batch,
    Row,
    appended,
    batch,
    cut,
    deleted_to,
    failed,
    flipped,
    mismatch,
    one,
    truncated_to,
    unreadable,
)

LARGEST: Final = 2**63 - 1
NO_ZSTD: Final = failed(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


ONE_BATCH: Final = (
    one("the first offset of an empty log", "", batch("a", 0), appended(0), "a"),
    one("beyond an empty log", "", batch("a", 1), mismatch((0, 1, 0)), ""),
    one("nothing expected of an empty log", "", batch("a", UNSPECIFIED), appended(0), "a"),
    one("nothing expected", "abc", batch("de", UNSPECIFIED), appended(3), "abcde"),
    one("the upcoming offset", "abc", batch("d", 3), appended(3), "abcd"),
    one("several records", "abc", batch("def", 3), appended(3), "abcdef"),
    one("one too low", "abc", batch("d", 2), mismatch((0, 2, 3)), "abc"),
    one("one too high", "abc", batch("d", 4), mismatch((0, 4, 3)), "abc"),
    one(
        "the base offset of clients that know nothing",
        "abc",
        batch("d", 0),
        mismatch((0, 0, 3)),
        "abc",
    ),
    one("below nothing", "abc", batch("d", -2), mismatch((0, -2, 3)), "abc"),
    one("the largest offset", "abc", batch("de", LARGEST), mismatch((0, LARGEST, 3)), "abc"),
    # The base offset is one statement, so it is one error.
    one("several records too low", "abc", batch("def", 1), mismatch((0, 1, 3)), "abc"),
    one("upcoming in the midst of it", "abc", batch("def", 2), mismatch((0, 2, 3)), "abc"),
    Row(
        name="what cannot be read is not read",
        before={"t-0": ["abc"]},
        send=[("t-0", [Batch(values="d", at=3, damage=unreadable)])],
        answers=[("t-0", appended(3))],
        after={},
    ),
    Row(
        name="what cannot be read is compared as well",
        before={"t-0": ["abc"]},
        send=[("t-0", [Batch(values="d", at=4, damage=unreadable)])],
        answers=[("t-0", mismatch((0, 4, 3)))],
        after={"t-0": "abc"},
    ),
)

SEVERAL_BATCHES: Final = (
    one("two batches", "abc", [batch("de", 3), batch("f", 5)], appended(3), "abcdef"),
    one("two batches to an empty log", "", [batch("a", 0), batch("b", 1)], appended(0), "ab"),
    one(
        "the second too low",
        "abc",
        [batch("de", 3), batch("fg", 3)],
        mismatch((2, 3, 5)),
        "abc",
    ),
    one("the second too high", "abc", [batch("d", 3), batch("e", 5)], mismatch((1, 5, 4)), "abc"),
    # What the second expects is what there would be after the first.
    one("only the first wrong", "abc", [batch("de", 4), batch("f", 5)], mismatch((0, 4, 3)), "abc"),
    one(
        "both wrong",
        "abc",
        [batch("de", 4), batch("f", 6)],
        mismatch((0, 4, 3), (2, 6, 5)),
        "abc",
    ),
    one(
        "a set from elsewhere",
        "abc",
        [batch("d", 9), batch("e", 10), batch("f", 11)],
        mismatch((0, 9, 3), (1, 10, 4), (2, 11, 5)),
        "abc",
    ),
    one(
        "one that expects nothing in between",
        "abc",
        [batch("d", 3), batch("ef", UNSPECIFIED), batch("g", 6)],
        appended(3),
        "abcdefg",
    ),
    one(
        "one that expects nothing moves the rest",
        "abc",
        [batch("de", UNSPECIFIED), batch("f", 3)],
        mismatch((2, 3, 5)),
        "abc",
    ),
    one(
        "several that expect nothing",
        "abc",
        [batch("d", UNSPECIFIED), batch("e", UNSPECIFIED)],
        appended(3),
        "abcde",
    ),
    one(
        "many batches",
        "abc",
        [batch(value, 3 + at) for at, value in enumerate("defghijklm")],
        appended(3),
        "abcdefghijklm",
    ),
    one(
        "the last of many",
        "abc",
        [*(batch(value, 3 + at) for at, value in enumerate("defghij")), batch("k", 3)],
        mismatch((7, 3, 10)),
        "abc",
    ),
)

GAPS: Final = (
    one(
        "a gap",
        "abc",
        Batch(values="de", at=3, deltas=(0, 2)),
        mismatch((1, 5, 4)),
        "abc",
    ),
    one(
        "a gap and all behind it",
        "abc",
        Batch(values="defg", at=3, deltas=(0, 1, 5, 6)),
        mismatch((2, 8, 5), (3, 9, 6)),
        "abc",
    ),
    one(
        "a gap in what is too high",
        "abc",
        Batch(values="de", at=4, deltas=(0, 2)),
        mismatch((0, 4, 3), (1, 6, 4)),
        "abc",
    ),
    one(
        "a gap before the first",
        "abc",
        Batch(values="de", at=3, deltas=(1, 2)),
        mismatch((0, 4, 3), (1, 5, 4)),
        "abc",
    ),
    one(
        "a gap that all match",
        "abc",
        Batch(values="de", at=2, deltas=(1, 2)),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
    one(
        "a gap where nothing is expected",
        "abc",
        Batch(values="de", at=UNSPECIFIED, deltas=(0, 2)),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
    one(
        "a header that tells of a gap",
        "abc",
        Batch(values="de", at=3, last_delta=5),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
    one(
        "a gap in a compressed batch",
        "abc",
        Batch(values="de", at=3, deltas=(0, 2), codec=Codec.LZ4),
        mismatch((1, 5, 4)),
        "abc",
    ),
    one(
        "a gap in the second batch",
        "abc",
        [batch("d", 3), Batch(values="ef", at=4, deltas=(0, 2))],
        mismatch((2, 6, 5)),
        "abc",
    ),
    one(
        "a gap in the first batch",
        "abc",
        [Batch(values="de", at=3, deltas=(0, 2)), batch("f", 5)],
        mismatch((1, 5, 4)),
        "abc",
    ),
    one(
        "a gap where records cannot be read",
        "abc",
        Batch(values="de", at=3, deltas=(0, 2), damage=unreadable),
        failed(ErrorCode.INVALID_RECORD, start=0),
        "abc",
    ),
)

COMPRESSED: Final = (
    *(
        one(
            f"right in {codec.name}",
            "abc",
            Batch(values="de", at=3, codec=codec),
            appended(3),
            "abcde",
            since=7 if codec is Codec.ZSTD else 3,
        )
        for codec in Codec
    ),
    *(
        one(
            f"wrong in {codec.name}",
            "abc",
            Batch(values="de", at=4, codec=codec),
            mismatch((0, 4, 3)),
            "abc",
            since=7 if codec is Codec.ZSTD else 3,
        )
        for codec in Codec
    ),
    one(
        "right in zstd too early",
        "abc",
        Batch(values="de", at=3, codec=Codec.ZSTD),
        NO_ZSTD,
        "abc",
        until=6,
    ),
    one(
        "wrong in zstd too early",
        "abc",
        Batch(values="de", at=4, codec=Codec.ZSTD),
        NO_ZSTD,
        "abc",
        until=6,
    ),
    one(
        "a set in several codecs",
        "abc",
        [Batch(values="de", at=3, codec=Codec.GZIP), Batch(values="f", at=5, codec=Codec.SNAPPY)],
        appended(3),
        "abcdef",
    ),
    one(
        "a set with zstd too early",
        "abc",
        [batch("d", 3), Batch(values="e", at=4, codec=Codec.ZSTD)],
        NO_ZSTD,
        "abc",
        until=6,
    ),
)

CONVERTED: Final = (
    *(
        one(
            f"right and converted to {codec}",
            "abc",
            [Batch(values="de", at=3, codec=Codec.LZ4), batch("f", 5)],
            appended(3),
            "abcdef",
            configs={**ON, "compression.type": codec},
        )
        for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd")
    ),
    one(
        "the broker's own timestamps",
        "abc",
        [batch("de", 3), batch("f", 5)],
        Answer(base=3, append_time_ms=ManualClock().now_ms()),
        "abcdef",
        configs={**ON, "message.timestamp.type": "LogAppendTime"},
    ),
    one(
        "wrong and not converted",
        "abc",
        [Batch(values="de", at=3, codec=Codec.LZ4), batch("f", 6)],
        mismatch((2, 6, 5)),
        "abc",
        configs={**ON, "compression.type": "gzip"},
    ),
)

LOST: Final = (
    one("after DeleteRecords", ["abc", deleted_to(2)], batch("d", 3), appended(3, start=2), "cd"),
    one(
        "the first offset after DeleteRecords",
        ["abc", deleted_to(2)],
        batch("d", 2),
        mismatch((0, 2, 3), start=2),
        "c",
    ),
    one(
        "clients that know nothing after DeleteRecords of all",
        ["abc", deleted_to(3)],
        batch("d", 0),
        mismatch((0, 0, 3), start=3),
        "",
    ),
    one(
        "after DeleteRecords of all",
        ["abc", deleted_to(3)],
        batch("d", 3),
        appended(3, start=3),
        "d",
    ),
    one("after truncation", ["a", "b", "c", truncated_to(1)], batch("d", 1), appended(1), "ad"),
    one(
        "the old end after truncation",
        ["a", "b", "c", truncated_to(1)],
        batch("d", 3),
        mismatch((0, 3, 1)),
        "a",
    ),
    one("after truncation of all", ["abc", truncated_to(0)], batch("d", 0), appended(0), "d"),
)

DAMAGED: Final = (
    one(
        "damaged",
        "abc",
        Batch(values="d", at=3, damage=flipped),
        failed(ErrorCode.CORRUPT_MESSAGE),
        "abc",
    ),
    # Whole, of a size and undamaged comes before what it expects.
    one(
        "damaged and wrong",
        "abc",
        Batch(values="d", at=4, damage=flipped),
        failed(ErrorCode.CORRUPT_MESSAGE),
        "abc",
    ),
    one(
        "cut",
        "abc",
        Batch(values="d", at=3, damage=cut),
        failed(ErrorCode.INVALID_RECORD),
        "abc",
    ),
    one(
        "the second cut",
        "abc",
        [batch("d", 3), Batch(values="e", at=4, damage=cut)],
        failed(ErrorCode.INVALID_RECORD),
        "abc",
    ),
    one(
        "the second damaged",
        "abc",
        [batch("d", 3), Batch(values="e", at=4, damage=flipped)],
        failed(ErrorCode.CORRUPT_MESSAGE),
        "abc",
    ),
    one(
        "the first damaged",
        "abc",
        [Batch(values="d", at=3, damage=flipped), batch("e", 4)],
        failed(ErrorCode.CORRUPT_MESSAGE),
        "abc",
    ),
    one(
        "the second too large",
        "abc",
        [batch("d", 3), batch("e" * 40, 4)],
        failed(ErrorCode.MESSAGE_TOO_LARGE),
        "abc",
        configs={**ON, "max.message.bytes": "100"},
    ),
    one("no batch", "abc", [], failed(ErrorCode.INVALID_RECORD), "abc"),
)


@table([*ONE_BATCH, *SEVERAL_BATCHES, *GAPS, *COMPRESSED, *CONVERTED, *LOST, *DAMAGED])
def test_one_partition(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"
