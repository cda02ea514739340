"""What a rule of an audit is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost.pipeline.audit.partition_evidence import PartitionEvidence
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
    order: int
    """Where it stands in a report, among the rules about logs or among those about traces: what
    others build on comes first. Rules of the same number go by their names."""
    check: Callable[[PartitionEvidence], Iterator[Violation]]
