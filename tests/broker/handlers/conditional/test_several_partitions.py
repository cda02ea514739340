"""A mismatch anywhere refuses the whole request, and every partition is told why."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from tests.broker.handlers.conditional.playing import play, table
from tests.broker.handlers.conditional.rows import (
    BY_HEADER,
    BY_KEY,
    OFF,
    ON,
    UNSPECIFIED,
    Batch,
    Row,
    again,
    appended,
    batch,
    cut,
    deleted_to,
    dragged,
    failed,
    flipped,
    mismatch,
    stating,
)

THERE: Final = {"t-0": ["abc"], "t-1": ["x"], "u-0": []}
TOPICS: Final = {"t": ON, "u": ON}
A_AND_B: Final = Batch(values="ab", at=0, producer=(7000, 0, 0))
OTHER_CODE: Final = {**ON, "check.expected.offsets.error.code": "87"}

ROWS: Final = (
    Row(
        name="all right",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 3)]), ("t-1", [batch("y", 1)]), ("u-0", [batch("k", 0)])],
        answers=[("t-0", appended(3)), ("t-1", appended(1)), ("u-0", appended(0))],
        after={"t-0": "abcd", "t-1": "xy", "u-0": "k"},
    ),
    Row(
        name="the first wrong",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 4)]), ("t-1", [batch("y", 1)]), ("u-0", [batch("k", 0)])],
        answers=[("t-0", mismatch((0, 4, 3))), ("t-1", dragged()), ("u-0", dragged())],
        after={"t-0": "abc", "t-1": "x", "u-0": ""},
    ),
    Row(
        name="the one in the middle wrong",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 3)]), ("t-1", [batch("y", 2)]), ("u-0", [batch("k", 0)])],
        answers=[("t-0", dragged()), ("t-1", mismatch((0, 2, 1))), ("u-0", dragged())],
        after={"t-0": "abc", "t-1": "x", "u-0": ""},
    ),
    Row(
        name="the last wrong",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 3)]), ("t-1", [batch("y", 1)]), ("u-0", [batch("k", 1)])],
        answers=[("t-0", dragged()), ("t-1", dragged()), ("u-0", mismatch((0, 1, 0)))],
        after={"t-0": "abc", "t-1": "x", "u-0": ""},
    ),
    Row(
        name="all wrong",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 0)]), ("t-1", [batch("y", 0)]), ("u-0", [batch("k", 5)])],
        answers=[
            ("t-0", mismatch((0, 0, 3))),
            ("t-1", mismatch((0, 0, 1))),
            ("u-0", mismatch((0, 5, 0))),
        ],
        after={"t-0": "abc", "t-1": "x", "u-0": ""},
    ),
    Row(
        name="one that expects nothing is dragged down",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", UNSPECIFIED)]), ("t-1", [batch("y", 0)])],
        answers=[("t-0", dragged()), ("t-1", mismatch((0, 0, 1)))],
        after={"t-0": "abc", "t-1": "x"},
    ),
    Row(
        name="sets of batches and one of them wrong",
        before=THERE,
        topics=TOPICS,
        send=[
            ("t-0", [batch("de", 3), batch("f", 5)]),
            ("t-1", [batch("y", 1), batch("z", 3), batch("w", 3)]),
        ],
        answers=[("t-0", dragged()), ("t-1", mismatch((1, 3, 2)))],
        after={"t-0": "abc", "t-1": "x"},
    ),
    Row(
        name="where the log starts is told to all",
        before={"t-0": ["abc", deleted_to(2)], "t-1": ["xyz", deleted_to(1)]},
        send=[("t-0", [batch("d", 3)]), ("t-1", [batch("w", 1)])],
        answers=[("t-0", dragged(start=2)), ("t-1", mismatch((0, 1, 3), start=1))],
        after={"t-0": "c", "t-1": "yz"},
    ),
    Row(
        name="a topic that checks nothing is dragged down",
        before=THERE,
        topics={"t": ON, "u": OFF},
        send=[("u-0", [batch("k", 0)]), ("t-0", [batch("d", 4)])],
        answers=[("u-0", dragged()), ("t-0", mismatch((0, 4, 3)))],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="a topic that checks nothing beside one that is right",
        before=THERE,
        topics={"t": ON, "u": OFF},
        send=[("u-0", [batch("k", 9)]), ("t-0", [batch("d", 3)])],
        answers=[("u-0", appended(0)), ("t-0", appended(3))],
        after={"t-0": "abcd", "u-0": "k"},
    ),
    Row(
        name="several batches are for topics that check",
        before=THERE,
        topics={"t": ON, "u": OFF},
        send=[
            ("u-0", [batch("k", 0), batch("l", 1)]),
            ("t-0", [batch("d", 3), batch("e", 4)]),
        ],
        answers=[("u-0", failed(ErrorCode.INVALID_RECORD)), ("t-0", appended(3))],
        after={"t-0": "abcde", "u-0": ""},
    ),
    Row(
        name="a partition that is dragged down gets the code of the one that mismatched",
        before=THERE,
        topics={"t": OTHER_CODE, "u": ON},
        send=[("u-0", [batch("k", 0)]), ("t-0", [batch("d", 4)])],
        answers=[("u-0", dragged(code=87)), ("t-0", mismatch((0, 4, 3), code=87))],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="each mismatch has the code of its topic",
        before=THERE,
        topics={"t": OTHER_CODE, "u": ON},
        send=[("u-0", [batch("k", 9)]), ("t-0", [batch("d", 4)])],
        answers=[("u-0", mismatch((0, 9, 0))), ("t-0", mismatch((0, 4, 3), code=87))],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="a topic of another source",
        before=THERE,
        topics={"t": ON, "u": BY_HEADER},
        send=[("u-0", [stating("k", 1)]), ("t-0", [batch("d", 3)])],
        answers=[("u-0", mismatch((0, 1, 0))), ("t-0", dragged())],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="a topic of another scope",
        before={"t-0": ["abc"], "u-0": [batch("k", UNSPECIFIED, "x")]},
        topics={"t": ON, "u": BY_KEY},
        send=[("u-0", [batch("l", 0, "x")]), ("t-0", [batch("d", 3)])],
        answers=[("u-0", mismatch((0, 0, 1, 0))), ("t-0", dragged())],
        after={"t-0": "abc", "u-0": "k"},
    ),
)

OWN_ERRORS: Final = (
    Row(
        name="a transaction anywhere",
        before=THERE,
        topics=TOPICS,
        send=[
            ("t-0", [batch("d", 3), Batch(values="e", at=4, transactional=True)]),
            ("u-0", [batch("k", 9)]),
        ],
        answers=[
            ("t-0", failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)),
            ("u-0", failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)),
        ],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="an unknown topic keeps its error",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 4)]), ("nope-0", [batch("k", 0)]), ("u-0", [batch("k", 0)])],
        answers=[
            ("t-0", mismatch((0, 4, 3))),
            ("nope-0", failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
            ("u-0", dragged()),
        ],
        after={"t-0": "abc", "u-0": ""},
        until=12,
    ),
    Row(
        name="an unknown partition keeps its error",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [batch("d", 4)]), ("t-9", [batch("k", 0)]), ("u-0", [batch("k", 0)])],
        answers=[
            ("t-0", mismatch((0, 4, 3))),
            ("t-9", failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
            ("u-0", dragged()),
        ],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="an unknown partition drags no other down",
        before=THERE,
        topics=TOPICS,
        send=[("t-9", [batch("k", 0)]), ("t-0", [batch("d", 3)])],
        answers=[
            ("t-9", failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
            ("t-0", appended(3)),
        ],
        after={"t-0": "abcd"},
    ),
    Row(
        name="a damaged batch keeps its error",
        before=THERE,
        topics=TOPICS,
        send=[
            ("t-0", [Batch(values="d", at=3, damage=flipped)]),
            ("t-1", [batch("y", 9)]),
            ("u-0", [batch("k", 0)]),
        ],
        answers=[
            ("t-0", failed(ErrorCode.CORRUPT_MESSAGE)),
            ("t-1", mismatch((0, 9, 1))),
            ("u-0", dragged()),
        ],
        after={"t-0": "abc", "t-1": "x", "u-0": ""},
    ),
    Row(
        name="a damaged batch drags no other down",
        before=THERE,
        topics=TOPICS,
        send=[
            ("t-0", [batch("d", 3), Batch(values="e", at=4, damage=flipped)]),
            ("t-1", [batch("y", 1)]),
        ],
        answers=[("t-0", failed(ErrorCode.CORRUPT_MESSAGE)), ("t-1", appended(1))],
        after={"t-0": "abc", "t-1": "xy"},
    ),
    Row(
        name="a cut batch keeps its error where nothing is checked",
        before=THERE,
        topics={"t": ON, "u": OFF},
        send=[("u-0", [Batch(values="k", at=0, damage=cut)]), ("t-0", [batch("d", 4)])],
        answers=[
            ("u-0", failed(ErrorCode.INVALID_RECORD)),
            ("t-0", mismatch((0, 4, 3))),
        ],
        after={"t-0": "abc", "u-0": ""},
    ),
    Row(
        name="zstd too early keeps its error",
        before=THERE,
        topics=TOPICS,
        send=[("t-0", [Batch(values="d", at=3, codec=Codec.ZSTD)]), ("t-1", [batch("y", 9)])],
        answers=[
            ("t-0", failed(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)),
            ("t-1", mismatch((0, 9, 1))),
        ],
        after={"t-0": "abc", "t-1": "x"},
        until=6,
    ),
)

THERE_ALREADY: Final = (
    # A client that hears that nothing was appended sends it once more as something new.
    Row(
        name="a batch that the log has already is not dragged down",
        before={"t-0": [A_AND_B], "t-1": ["x"]},
        send=[("t-0", [A_AND_B]), ("t-1", [batch("y", 0)])],
        answers=[("t-0", again(0)), ("t-1", mismatch((0, 0, 1)))],
        after={"t-0": "ab", "t-1": "x"},
    ),
    Row(
        name="a batch that the log has in part is dragged down",
        before={"t-0": [A_AND_B], "t-1": ["x"]},
        send=[("t-0", [A_AND_B, batch("c", 2)]), ("t-1", [batch("y", 0)])],
        answers=[("t-0", dragged()), ("t-1", mismatch((0, 0, 1)))],
        after={"t-0": "ab", "t-1": "x"},
    ),
)

TWICE: Final = (
    Row(
        name="the same partition twice",
        before=THERE,
        send=[("t-0", [batch("de", 3)]), ("t-0", [batch("f", 5)])],
        answers=[("t-0", appended(3)), ("t-0", appended(5))],
        after={"t-0": "abcdef"},
    ),
    Row(
        name="the same partition twice and the second wrong",
        before=THERE,
        send=[("t-0", [batch("de", 3)]), ("t-0", [batch("f", 3)])],
        answers=[("t-0", dragged()), ("t-0", mismatch((0, 3, 5)))],
        after={"t-0": "abc"},
    ),
    Row(
        name="the same partition twice and the first wrong",
        before=THERE,
        send=[("t-0", [batch("de", 4)]), ("t-1", [batch("y", 1)]), ("t-0", [batch("f", 5)])],
        answers=[("t-0", mismatch((0, 4, 3))), ("t-1", dragged()), ("t-0", dragged())],
        after={"t-0": "abc", "t-1": "x"},
    ),
    Row(
        name="the same batch twice",
        send=[("t-0", [A_AND_B]), ("t-0", [A_AND_B])],
        answers=[("t-0", appended(0)), ("t-0", again(0))],
        after={"t-0": "ab"},
    ),
    Row(
        name="the same batch twice beside a mismatch is not there",
        send=[("t-0", [A_AND_B]), ("t-0", [A_AND_B]), ("t-1", [batch("y", 9)])],
        answers=[("t-0", dragged()), ("t-0", dragged()), ("t-1", mismatch((0, 9, 0)))],
        after={"t-0": "", "t-1": ""},
    ),
)


@table([*ROWS, *OWN_ERRORS, *THERE_ALREADY, *TWICE])
def test_several_partitions(row: Row) -> None:
    for version in row.versions:
        assert play(row, version) == row.played(version), f"v{version}"
