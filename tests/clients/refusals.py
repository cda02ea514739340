"""What real clients tell an application whose record is not where it expects it (KIP-27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CLIENTS: Final = ("java", "confluent", "go", "kafka-python", "aiokafka")
MISMATCH: Final = 2701
"""EXPECTED_OFFSET_MISMATCH, by default."""
INVALID_RECORD: Final = 87


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a client says of a refusal; ``{why}`` is what the broker says of the record."""

    alone: str
    """Of the one record of a batch that does not match."""
    each: str
    """Of one of several that do not match."""
    beside: str
    """Of a record that does match, in a batch with one that does not."""
    dragged: str
    """Of a record in another partition of the request."""

    def of(self, name: str, why: str) -> str:
        """What it says when the broker gave a reason."""
        words: str = getattr(self, name)
        return words.format(why=why)


def _same(words: str) -> Words:
    return Words(alone=words, each=words, beside=words, dragged=words)


_PART = (
    "Failed to append record because it was part of a batch which had one more more invalid records"
)
_GO: Final = {
    MISMATCH: "UNKNOWN_SERVER_ERROR -1: UNKNOWN_SERVER_ERROR: The server experienced an unexpected "
    "error when processing the request.",
    INVALID_RECORD: "INVALID_RECORD 87: INVALID_RECORD: This record has failed the validation on "
    "the broker and hence been rejected.",
}
LIBRDKAFKA: Final = {
    MISMATCH: "2701 ERR_2701?: Err-2701?",
    INVALID_RECORD: "87 INVALID_RECORD: Broker: Broker failed to validate record",
}
WORDS: Final[Mapping[tuple[str, int], Words]] = {
    ("java", MISMATCH): Words(
        alone="UnknownServerException: {why}",
        each="InvalidRecordException: {why}",
        beside=f"KafkaException: {_PART}",
        dragged="UnknownServerException: {why}",
    ),
    ("java", INVALID_RECORD): Words(
        alone="InvalidRecordException: {why}",
        each="InvalidRecordException: {why}",
        beside=f"KafkaException: {_PART}",
        dragged="InvalidRecordException: {why}",
    ),
    ("confluent", MISMATCH): Words(
        alone=LIBRDKAFKA[MISMATCH],
        each=LIBRDKAFKA[INVALID_RECORD],
        beside=LIBRDKAFKA[MISMATCH],
        dragged=LIBRDKAFKA[MISMATCH],
    ),
    ("confluent", INVALID_RECORD): _same(LIBRDKAFKA[INVALID_RECORD]),
    ("go", MISMATCH): _same(_GO[MISMATCH]),
    ("go", INVALID_RECORD): _same(_GO[INVALID_RECORD]),
    ("kafka-python", MISMATCH): Words(
        alone="UnrecognizedBrokerError 2701: [Error 2701] UnrecognizedBrokerError: {why}",
        each="InvalidRecordError 87: [Error 87] InvalidRecordError: {why}",
        beside=f"KafkaError : KafkaError: {_PART}",
        dragged="UnrecognizedBrokerError 2701: [Error 2701] UnrecognizedBrokerError: {why}",
    ),
    ("kafka-python", INVALID_RECORD): Words(
        alone="InvalidRecordError 87: [Error 87] InvalidRecordError: {why}",
        each="InvalidRecordError 87: [Error 87] InvalidRecordError: {why}",
        beside=f"KafkaError : KafkaError: {_PART}",
        dragged="InvalidRecordError 87: [Error 87] InvalidRecordError: {why}",
    ),
    ("aiokafka", MISMATCH): _same("UnknownError -1: [Error -1] UnknownError"),
    ("aiokafka", INVALID_RECORD): _same("UnknownError -1: [Error -1] UnknownError"),
}
