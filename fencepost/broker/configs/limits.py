"""The limits of what clients may make the broker do or keep, as data.

docs/security.md has them as a table (``python -m docs.generate``), and each has a test
(tests/broker/configs/test_limits.py names it). A limit that is a config of Kafka's has its default
in the config table; one that no config sets is the constant that its code uses. Nothing at run time
imports this module: rooms above this one have constants of their own, which the test compares.
"""

from dataclasses import dataclass
from typing import Final

from fencepost.protocol.codec.reader import MAX_ELEMENTS, MAX_TAGGED_FIELDS
from fencepost.protocol.compression import MAX_DECOMPRESSED_BYTES, MAX_MEMBERS
from fencepost.protocol.frames import MAX_HEADER_TAGS
from fencepost.protocol.records import MAX_RECORDS
from fencepost.storage.log.validation import MAX_RECORD_ERRORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit."""

    name: str
    """What is limited."""
    bounds: str
    """What is bounded by it: the section of docs/security.md whose table has it."""
    error: str
    """What a client gets that goes beyond."""
    set_by: str | None = None
    """The config or option that sets it; None where it is fixed."""
    default: int | str | None = None
    """None where the config table has it."""


_CLOSED: Final = "the connection is closed"
_TOO_LARGE: Final = "MESSAGE_TOO_LARGE, with a message from Produce v8 on"

REQUESTS: Final = "requests"

LIMITS: Final[tuple[Limit, ...]] = (
    Limit(
        name="bytes of a request",
        bounds=REQUESTS,
        set_by="socket.request.max.bytes",
        error=_CLOSED,
    ),
    Limit(
        name="elements that an array claims to have",
        bounds=REQUESTS,
        default="as many as the rest of the request can hold",
        error=_CLOSED,
    ),
    Limit(
        name="elements of a request, in all its arrays",
        bounds=REQUESTS,
        default=MAX_ELEMENTS,
        error=_CLOSED,
    ),
    Limit(
        name="elements of a request that changes something",
        bounds=REQUESTS,
        default=100_000,
        error="POLICY_VIOLATION for all that it names",
    ),
    Limit(
        name="tagged fields of a request's header",
        bounds=REQUESTS,
        default=MAX_HEADER_TAGS,
        error=_CLOSED,
    ),
    Limit(
        name="tagged fields of a request's body",
        bounds=REQUESTS,
        default=MAX_TAGGED_FIELDS,
        error=_CLOSED,
    ),
    Limit(
        name="bytes of a batch",
        bounds=REQUESTS,
        set_by="max.message.bytes",
        error="MESSAGE_TOO_LARGE",
    ),
    Limit(
        name="records of a batch, and those that are read of a Produce",
        bounds=REQUESTS,
        default=MAX_RECORDS,
        error=_TOO_LARGE,
    ),
    Limit(
        name="bytes that the batches unpack to which are read of a Produce",
        bounds=REQUESTS,
        default=MAX_DECOMPRESSED_BYTES,
        error=_TOO_LARGE,
    ),
    Limit(
        name="gzip members or snappy blocks of a batch that is read",
        bounds=REQUESTS,
        default=MAX_MEMBERS,
        error=_TOO_LARGE,
    ),
    Limit(
        name="records at fault that the answer for a partition names",
        bounds=REQUESTS,
        default=MAX_RECORD_ERRORS,
        error="the others are counted in the message",
    ),
    Limit(
        name="partitions that a CreateTopics, CreatePartitions or Metadata creates",
        bounds=REQUESTS,
        default=10_000,
        error="POLICY_VIOLATION for all of its topics",
    ),
    Limit(
        name="configs in an answer of DescribeConfigs",
        bounds=REQUESTS,
        default=1_000_000,
        error="POLICY_VIOLATION for the resources beyond",
    ),
    Limit(
        name="partitions in an answer of DescribeTopicPartitions",
        bounds=REQUESTS,
        set_by="max.request.partition.size.limit",
        error="a cursor to go on with",
    ),
    Limit(
        name="bytes of records in an answer of Fetch",
        bounds=REQUESTS,
        set_by="fetch.max.bytes",
        error="fewer records",
    ),
    Limit(
        name="bytes of a committed offset's metadata",
        bounds=REQUESTS,
        set_by="offset.metadata.max.bytes",
        error="OFFSET_METADATA_TOO_LARGE",
    ),
    Limit(
        name="bytes of a client's telemetry",
        bounds=REQUESTS,
        set_by="telemetry.max.bytes",
        error="TELEMETRY_TOO_LARGE",
    ),
)
"""All limits; a table for each section, in this order."""

SECTIONS: Final = tuple(dict.fromkeys(limit.bounds for limit in LIMITS))
"""The sections of docs/security.md that have a table."""
