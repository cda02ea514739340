"""The rules of an audit, by name.

A rule is one module with one function, `check`: it is shown all that is known of a partition, and
yields what breaks it. It does no I/O and needs no Spark.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.pipeline.audit.evidence import Evidence
from fencepost.pipeline.audit.rules import (
    acknowledged_present,
    committed_offsets,
    contiguous_offsets,
    crc_and_structure,
    expected_offsets,
    fetched_share,
    latest_never_back,
    monotonic_epochs,
    no_stale_epoch,
    replicas_agree,
    tier_and_log,
    torn_tail,
    true_indexes,
)
from fencepost.pipeline.audit.violations import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must be so."""

    name: str
    """In kebab-case, as ``--rule`` and the column ``rule`` say it."""
    about: str
    """One sentence for people."""
    source: str
    """Where it is written: a KIP, or a part of Kafka's documentation."""
    needs_trace: bool
    check: Callable[[Evidence], Iterator[Violation]]


_ALL: Final = (
    Rule(
        name=crc_and_structure.NAME,
        about="Every byte of a log and of the tier is part of a batch with the checksum it states.",
        source="Kafka's message format, version 2",
        needs_trace=False,
        check=crc_and_structure.check,
    ),
    Rule(
        name=torn_tail.NAME,
        about="A log ends with a whole batch, and has what was durable and what was committed.",
        source="Kafka's recovery point and high watermark checkpoints",
        needs_trace=False,
        check=torn_tail.check,
    ),
    Rule(
        name=contiguous_offsets.NAME,
        about="Each offset of a log follows on the one before, but where compaction was.",
        source="Kafka's design: logs and their segments",
        needs_trace=False,
        check=contiguous_offsets.check,
    ),
    Rule(
        name=monotonic_epochs.NAME,
        about="Leader epochs never fall within a log, and are those of the epoch checkpoint.",
        source="KIP-101, KIP-320",
        needs_trace=False,
        check=monotonic_epochs.check,
    ),
    Rule(
        name=replicas_agree.NAME,
        about="Replicas have the same batches below their high watermarks, and in one epoch.",
        source="KIP-101, KIP-279, KIP-320",
        needs_trace=False,
        check=replicas_agree.check,
    ),
    Rule(
        name=tier_and_log.NAME,
        about="The tier and the logs have every record from the log start on, of one lineage.",
        source="KIP-405, KIP-1023",
        needs_trace=False,
        check=tier_and_log.check,
    ),
    Rule(
        name=true_indexes.NAME,
        about="The indexes of a segment say where its batches are, and how late.",
        source="Kafka's OffsetIndex and TimeIndex",
        needs_trace=False,
        check=true_indexes.check,
    ),
    Rule(
        name=acknowledged_present.NAME,
        about="No record is missing that was acknowledged to acks=all.",
        source="Kafka's producer: acks, and its design of replication; KIP-966",
        needs_trace=True,
        check=acknowledged_present.check,
    ),
    Rule(
        name=latest_never_back.NAME,
        about="Of two answers that are ordered in time the later tells no smaller latest offset.",
        source="KIP-207",
        needs_trace=True,
        check=latest_never_back.check,
    ),
    Rule(
        name=no_stale_epoch.NAME,
        about="No request succeeds under another leader epoch than the broker's.",
        source="KIP-320",
        needs_trace=True,
        check=no_stale_epoch.check,
    ),
    Rule(
        name=expected_offsets.NAME,
        about="A conditional publish lies at its expected offset, or nowhere.",
        source="KIP-27",
        needs_trace=True,
        check=expected_offsets.check,
    ),
    Rule(
        name=committed_offsets.NAME,
        about="Groups are told what they have committed, and it and its epoch fit the log.",
        source="KIP-320, KIP-211",
        needs_trace=True,
        check=committed_offsets.check,
    ),
    Rule(
        name=fetched_share.NAME,
        about="A follower that begins behind the tier begins where it should, and gets the rest.",
        source="KIP-1023, KIP-405",
        needs_trace=True,
        check=fetched_share.check,
    ),
)

RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in _ALL}
"""Every rule by its name, in the order of a report: first the logs, then the traces."""
