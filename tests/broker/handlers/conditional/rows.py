"""A row of the tables: the log before, the request, the answer, the log after.

A record is a character of a text, its value; "de" is a batch of two records. Partitions are named
``t-0``. What a version cannot carry is not looked for in its answer: record errors and messages
come with v8, the log start offset with v5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fencepost.protocol.compression import Codec
from fencepost.protocol.records import HEADER_SIZE, Record, build_batch
from tests.harness.driver import Driver
from tests.harness.records import TIMESTAMP

MISMATCH: Final = 2701
UNSPECIFIED: Final = -1
HEADER: Final = "expected-offset"
LOG_START_FROM: Final = 5
RECORD_ERRORS_FROM: Final = 8

Configs: TypeAlias = Mapping[str, str]
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

ON: Final[Configs] = {"check.expected.offsets": "true"}
BY_HEADER: Final[Configs] = {**ON, "check.expected.offsets.source": "header"}
BY_KEY: Final[Configs] = {**ON, "check.expected.offsets.scope": "key"}
BY_KEY_AND_HEADER: Final[Configs] = {**BY_HEADER, **BY_KEY}
OFF: Final[Configs] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch on its way: bytes as a client sends them."""

    values: str
    at: int
    """Base offset."""
    keys: str | None = None
    """A key a character, a full stop for none; None: no record has one."""
    headers: Sequence[Headers] | None = None
    """Of each record; None: none has any."""
    deltas: Sequence[int] | None = None
    """Offset deltas, where they are not 0, 1, 2..."""
    last_delta: int | None = None
    """What the batch's header says of the last one, where that is not so."""
    codec: Codec = Codec.NONE
    producer: tuple[int, int, int] | None = None
    """Id, epoch and base sequence."""
    transactional: bool = False
    damage: Callable[[bytearray], bytearray] = bytearray
    """What happens to the bytes on their way."""

    @property
    def encoded(self) -> bytes:
        """Its bytes."""
        count = len(self.values)
        deltas = range(count) if self.deltas is None else self.deltas
        keys = "." * count if self.keys is None else self.keys
        headers: Sequence[Headers] = [()] * count if self.headers is None else self.headers
        records = [
            Record(
                self.at + delta,
                TIMESTAMP,
                None if key == "." else key.encode(),
                value.encode(),
                tuple(each),
            )
            for value, delta, key, each in zip(self.values, deltas, keys, headers, strict=True)
        ]
        producer_id, epoch, sequence = self.producer or (-1, -1, -1)
        built = build_batch(
            records,
            base_offset=self.at,
            last_offset=None if self.last_delta is None else self.at + self.last_delta,
            codec=self.codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=self.transactional,
        )
        return bytes(self.damage(built))


def batch(values: str, at: int, keys: str | None = None) -> Batch:
    """A batch without headers that says where its records are to be."""
    return Batch(values=values, at=at, keys=keys)


def stating(
    values: str, *expected: int | bytes | Headers | None, at: int = 0, keys: str | None = None
) -> Batch:
    """A batch of a client that states offsets in headers.

    :param expected: For each record: a number for the text of it, bytes as they are, None for no
        header, or all headers.
    """
    return Batch(values=values, at=at, keys=keys, headers=[_headers(each) for each in expected])


def _headers(expected: int | bytes | Headers | None) -> Headers:
    if expected is None:
        return ()
    if isinstance(expected, int):
        return [(HEADER, b"%d" % expected)]
    if isinstance(expected, bytes):
        return [(HEADER, expected)]
    return expected


def int64(number: int) -> bytes:
    """The other way to write an offset into a header."""
    return struct.pack(">q", number)


def flipped(records: bytearray) -> bytearray:
    """A bit of the last byte is another."""
    records[-1] ^= 1
    return records


def cut(records: bytearray) -> bytearray:
    """The last byte is missing."""
    return records[:-1]


def unreadable(records: bytearray) -> bytearray:
    """The records are no records; the checksum is right."""
    from fencepost.protocol.records import checksum, peek_header

    records[HEADER_SIZE:] = b"\xff" * (len(records) - HEADER_SIZE)
    crc = checksum(records, 0, peek_header(records))
    struct.pack_into(">I", records, 17, crc)
    return records


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A partition's part of an answer."""

    code: int = 0
    base: int = -1
    """Offset of the first record that was appended."""
    append_time_ms: int = -1
    """Of a batch that was there already, its timestamp, as Kafka has it."""
    start: int = 0
    """Log start offset."""
    errors: Sequence[tuple[int, str]] = ()
    """Record errors: index and text."""
    message: str | None = None
    """``{partition}`` is whose answer it is, ``{culprits}`` are those that mismatched."""
    is_culprit: bool = False

    def at(self, version: int, partition: str, culprits: str) -> dict[str, object]:
        """What is on the wire."""
        body: dict[str, object] = {
            "Index": int(partition.rpartition("-")[2]),
            "ErrorCode": self.code,
            "BaseOffset": self.base,
            "LogAppendTimeMs": self.append_time_ms,
        }
        if version >= LOG_START_FROM:
            body["LogStartOffset"] = self.start
        if version >= RECORD_ERRORS_FROM:
            body["RecordErrors"] = [
                {"BatchIndex": at, "BatchIndexErrorMessage": text} for at, text in self.errors
            ]
            body["ErrorMessage"] = self.message and self.message.format(
                partition=partition, culprits=culprits
            )
        return body


def appended(base: int, *, start: int = 0) -> Answer:
    """The records are in the log, from this offset on."""
    return Answer(base=base, start=start)


def again(base: int) -> Answer:
    """The records, or some of them, were in the log already, from this offset on."""
    return Answer(base=base, append_time_ms=TIMESTAMP)


def mismatch(
    *errors: tuple[int, int, int] | tuple[int, int, int, int],
    code: int = MISMATCH,
    start: int = 0,
) -> Answer:
    """Refused for its own expectations: index, expected and upcoming offset of each record.

    With the scope key, the last offset of the key comes fourth.
    """
    texts = [(error[0], _text(*error[1:])) for error in errors]
    index, text = texts[0]
    why = f"Nothing was appended. Record {index} for {{partition}}: {text}"
    return Answer(code=code, start=start, errors=texts, message=why, is_culprit=True)


def _text(expected: int, upcoming: int, last_of_key: int | None = None) -> str:
    of_key = "" if last_of_key is None else f", last offset of the key {last_of_key}"
    return f"Expected offset {expected}{of_key}, upcoming offset {upcoming}"


def dragged(*, code: int = MISMATCH, start: int = 0) -> Answer:
    """Refused for the sake of another partition."""
    why = (
        "Nothing was appended, because the expected offset of a record in the same request does "
        "not match: {culprits}"
    )
    return Answer(code=code, start=start, message=why)


def failed(code: int, *, start: int = -1, message: str | None = None) -> Answer:
    """Refused for another reason, its own."""
    return Answer(code=code, start=start, message=message)


Played: TypeAlias = tuple[list[tuple[str, dict[str, object]]], dict[str, str]]
"""The answers by partition as they are on the wire, and the values in the logs."""

Step: TypeAlias = "str | Batch | Callable[[Driver, str, int], None]"
"""What happened to a partition: records without keys, a batch that expects nothing, or a deed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request at one state."""

    name: str
    send: Sequence[tuple[str, Sequence[Batch]]]
    """Partitions with their batches, in the request's order."""
    answers: Sequence[tuple[str, Answer]]
    """In the answer's order."""
    before: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    """What has happened to each partition."""
    after: Mapping[str, str]
    """The values of each partition that can be read in the end."""
    topics: Mapping[str, Configs] = field(default_factory=lambda: {"t": ON})
    """Each with two partitions on broker 1."""
    configs: Configs = field(default_factory=dict)
    """The brokers'."""
    since: int = 3
    until: int = 13
    """Produce versions, both inclusive."""

    @property
    def versions(self) -> range:
        """Produce versions that it is about."""
        return range(self.since, self.until + 1)

    def played(self, version: int) -> Played:
        """What is to come of it."""
        culprits = ", ".join(partition for partition, each in self.answers if each.is_culprit)
        answers = [
            (partition, each.at(version, partition, culprits)) for partition, each in self.answers
        ]
        return answers, dict(self.after)


def one(
    name: str,
    before: str | Sequence[Step],
    sent: Batch | Sequence[Batch],
    answer: Answer,
    after: str,
    *,
    configs: Configs = ON,
    since: int = 3,
    until: int = 13,
    brokers: Configs | None = None,
) -> Row:
    """A row of one partition."""
    steps = ([before] if before else []) if isinstance(before, str) else before
    batches = [sent] if isinstance(sent, Batch) else sent
    return Row(
        name=name,
        before={"t-0": steps},
        send=[("t-0", batches)],
        answers=[("t-0", answer)],
        after={"t-0": after},
        topics={"t": configs},
        configs=brokers or {},
        since=since,
        until=until,
    )


def deleted_to(offset: int) -> Step:
    """The step that deletes the records before an offset."""

    def step(driver: Driver, topic: str, index: int) -> None:
        driver.leader(topic, index).delete_records(offset)

    return step


def truncated_to(offset: int) -> Step:
    """The step that truncates the log."""

    def step(driver: Driver, topic: str, index: int) -> None:
        assert driver.leader(topic, index).truncate_to(offset)

    return step
