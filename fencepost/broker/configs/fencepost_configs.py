"""fencepost's own configs: those that Kafka does not have, in the format of Kafka's tables.

They stand here, apart from Kafka's, from the day they have their effect; until then they are
unknown names and refused like any other. ``message.format.version`` was Kafka's until 4.0.
"""

from enum import StrEnum
from typing import Final

BROKER: Final = """\
check.expected.offsets BOOLEAN false cluster-wide acts
    Whether a produce is refused where a record's expected offset does not match (KIP-27).
check.expected.offsets.error.code SHORT 2701 1..32767|-1 cluster-wide acts
    Error code of such a refusal, for clients that know only Kafka's.
check.expected.offsets.scope STRING partition one-of:partition,key cluster-wide acts
    What is compared: the partition's upcoming offset, or the last offset of the record's key.
check.expected.offsets.source STRING batch one-of:batch,header cluster-wide acts
    Where an expected offset stands: base offset and delta, or the header expected-offset.
list.offsets.gate STRING kip one-of:kip,kafka,off cluster-wide acts
    Which ListOffsets lookups wait until a new leader's high watermark has caught up (KIP-207).
"""
TOPIC: Final = """\
check.expected.offsets BOOLEAN false acts
    Whether a produce is refused where a record's expected offset does not match (KIP-27).
check.expected.offsets.error.code SHORT 2701 1..32767|-1 acts
    Error code of such a refusal, for clients that know only Kafka's.
check.expected.offsets.scope STRING partition one-of:partition,key acts
    What is compared: the partition's upcoming offset, or the last offset of the record's key.
check.expected.offsets.source STRING batch one-of:batch,header acts
    Where an expected offset stands: base offset and delta, or the header expected-offset.
list.offsets.gate STRING kip one-of:kip,kafka,off acts
    Which ListOffsets lookups wait until a new leader's high watermark has caught up (KIP-207).
message.format.version STRING 4.3 format-version acts
    Release whose message format the topic has; before 0.11 it has no leader epochs (KIP-320).
"""
_SAME_ON_BROKERS: Final = (
    "check.expected.offsets",
    "check.expected.offsets.error.code",
    "check.expected.offsets.scope",
    "check.expected.offsets.source",
    "list.offsets.gate",
)
SYNONYMS: Final[dict[str, str]] = {name: name for name in _SAME_ON_BROKERS}
"""The broker config that a topic config takes its default from."""


class ListOffsetsGate(StrEnum):
    """Values of ``list.offsets.gate``."""

    KIP = "kip"
    """Every lookup."""
    KAFKA = "kafka"
    """Those that Apache Kafka refuses: latest, and by time where the answer is not committed."""
    OFF = "off"


_RELEASES: Final = (
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0", "0.10.1", "0.10.2", "0.11.0"),
    *("1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3"),
)
_WITH_EPOCHS: Final = frozenset(_RELEASES[_RELEASES.index("0.11.0") :])


def release_of(text: str) -> str | None:
    """The release that a version of Kafka belongs to (``0.10.2`` for ``0.10.2.1`` or
    ``0.10.2-IV0``), None where it belongs to none.
    """
    numbers, dash, level = text.partition("-IV")
    parts = numbers.split(".")
    if not all(part.isascii() and part.isdigit() for part in (*parts, level if dash else "0")):
        return None
    release = ".".join(parts[: 3 if parts[0] == "0" else 2])
    return release if release in _RELEASES else None


def has_leader_epochs(version: str) -> bool:
    """Whether batches of a message format carry leader epochs: since 0.11."""
    return release_of(version) in _WITH_EPOCHS
