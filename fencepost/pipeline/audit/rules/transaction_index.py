"""The transaction index of a segment has the transactions that its markers abort, and no others.

Fetch tells readers of committed records what to leave out from these indexes: one without an entry
lets aborted records be read as committed ones.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Final

from fencepost.pipeline.audit import transaction_index_fold
from fencepost.pipeline.audit.explanations import unclean_shutdown
from fencepost.pipeline.audit.log_stretches import LogStretches, log_stretches
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.transaction_index_fold import IndexFault, IndexFinding
from fencepost.storage.formats.file_names import FileKind
from fencepost.storage.formats.indexes import CorruptIndex, decode_transactions

NAME: Final = "transaction-index"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Entries that are missing, or that are not so."""
    for log in log_stretches(evidence):
        files = log.files(FileKind.TRANSACTION_INDEX)
        for base in log.segments:
            try:
                decode_transactions(files.get(base, b""), base)
            except CorruptIndex as error:
                yield _violation(log, base, f"the index makes no sense: {error}")
        parts = [each.index for each in log.folds.values() if each.index is not None]
        if parts:
            summary = reduce(transaction_index_fold.merge, parts)
            for found in transaction_index_fold.verdict(summary):
                yield _violation(log, found.marker, _message(found))


def _message(found: IndexFinding) -> str:
    which = f"the transaction of producer {found.producer} that the marker {found.marker} aborts"
    match found.fault:
        case IndexFault.ABSENT:
            return f"{which} has no entry"
        case IndexFault.WITHOUT_MARKER:
            return f"there is an entry for {which}, and none is there"
        case IndexFault.FIRST_OFFSET:
            return f"{which} begins at offset {found.expected}, and its entry says {found.said}"
        case IndexFault.LAST_STABLE_OFFSET:
            said = "none before its segment" if found.said < 0 else found.said
            known = "none is" if found.expected < 0 else f"{found.expected} is"
            return (
                f"the entry for the marker {found.marker} says last stable offset {said}, and by "
                f"the log {known} it"
            )


def _violation(log: LogStretches, offset: int, message: str) -> Violation:
    return log.violation(
        NAME,
        message,
        segment=max((base for base in log.segments if base <= offset), default=None),
        offset=offset,
        explanation=None if log.replica is None else unclean_shutdown(log.replica, offset),
    )


RULE: Final = Rule(
    name=NAME,
    about="The transaction index of a segment has the transactions that its markers abort.",
    source="KIP-98",
    needs_trace=False,
    order=10,
    severity=Severity.DAMAGE,
    remedy="delete the replica while its broker is stopped: it fetches the log from the leader",
    is_of_file=True,
    check=check,
    screen=lambda bucket: bucket.has_no_aborted_transaction,
)
