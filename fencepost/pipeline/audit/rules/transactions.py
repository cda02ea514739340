"""The transactions of a partition end with a marker, as their coordinator has decided.

A transaction that is open is damage where its producer goes on without it, or where it is older
than its time-out and no coordinator knows of it. What can be said of that against the coordinators
is said of the log that goes furthest: another replica may lack a marker that it has yet to fetch.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Final

from fencepost.broker.transactions.transaction_state import IDLE, TransactionState
from fencepost.pipeline.audit import transaction_fold
from fencepost.pipeline.audit.coordinator_log import (
    CoordinatedProducer,
    CoordinatorLog,
    Decision,
)
from fencepost.pipeline.audit.log_stretches import LogStretches, log_stretches
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.audit.transaction_fold import (
    MarkerSeen,
    ProducerTransactions,
    TransactionFault,
    TransactionFinding,
    TransactionPart,
    TransactionSummary,
)

NAME: Final = "transactions"
MAX_TIMEOUT_MS: Final = 15 * 60 * 1000
"""The default of ``transaction.max.timeout.ms``, for what no coordinator knows."""
_WORDS: Final = {True: "commit", False: "abort"}


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Batches outside of their transaction, and what contradicts the coordinators."""
    summaries: list[tuple[LogStretches, TransactionSummary]] = []
    for log in log_stretches(evidence):
        folds = log.folds.values()
        parts = [each.transactions for each in folds if each.transactions is not None]
        if not parts:
            continue
        summary = reduce(transaction_fold.merge, parts)
        summaries.append((log, summary))
        for found in summary.findings:
            yield _violation(log, found)
    coordinators = evidence.metadata.coordinators
    replicas = [each for each in summaries if each[0].replica is not None]
    if coordinators is not None and replicas:
        log, summary = max(replicas, key=lambda each: _reach(each[0]))
        for producer, known in summary.producers.items():
            yield from _against(evidence, coordinators, log, summary, producer, known)


def _violation(log: LogStretches, found: TransactionFinding) -> Violation:
    batch = found.batch
    match found.fault:
        case TransactionFault.PLAIN:
            message = (
                f"producer {found.producer} goes on outside of its transaction, which has no "
                f"marker behind offset {found.number_before}"
            )
        case TransactionFault.COORDINATOR_EPOCH:
            message = (
                f"a marker of producer {found.producer} is of coordinator epoch {found.number}, "
                f"and the one before it of {found.number_before}"
            )
    return log.violation(
        NAME,
        message,
        segment=batch.segment,
        position=batch.position,
        offset=batch.offset,
        end_offset=batch.end_offset,
    )


def _reach(log: LogStretches) -> tuple[int, int]:
    assert log.replica is not None, "segments of the tier were left out"
    return log.replica.last_epoch_before(log.replica.end), log.replica.end


def _against(
    evidence: PartitionEvidence,
    coordinators: CoordinatorLog,
    log: LogStretches,
    summary: TransactionSummary,
    producer: int,
    seen: ProducerTransactions,
) -> Iterator[Violation]:
    """What of a producer in a log contradicts the coordinators."""
    known = coordinators.producers.get(producer)
    partition = (evidence.topic, evidence.partition)
    still_open = seen.open
    if still_open is not None and still_open.records:
        message = _open_message(evidence, coordinators, known, still_open)
        if message is not None:
            yield log.violation(
                NAME,
                f"the transaction of producer {producer} is open, and {message}",
                segment=still_open.begin.segment,
                position=still_open.begin.position,
                offset=still_open.begin.offset,
                end_offset=seen.end.end_offset,
            )
            return
    if known is None or known.decision is None or partition not in known.decision.partitions:
        return
    if seen.last is None or seen.last.batch.epoch < known.decision.epoch:
        # Where offsets are missing the marker may have gone with the records.
        if known.decision.has_own_epoch and _is_complete(known) and not summary.holes:
            yield log.violation(
                NAME,
                f"transactional id {known.transactional_id} has completed "
                f"{_decided(producer, known.decision)}, and the log has no marker of that",
                segment=seen.end.segment,
                position=seen.end.position,
                offset=seen.end.end_offset,
            )
    elif _contradicts(coordinators, known, known.decision, seen.last, is_open=bool(still_open)):
        yield log.violation(
            NAME,
            f"a marker says {_WORDS[seen.last.committed]} where transactional id "
            f"{known.transactional_id} has decided {_decided(producer, known.decision)}",
            segment=seen.last.batch.segment,
            position=seen.last.batch.position,
            offset=seen.last.batch.offset,
            end_offset=seen.last.batch.end_offset,
        )


def _decided(producer: int, decision: Decision) -> str:
    return f"a {_WORDS[decision.committed]} of producer {producer}, epoch {decision.epoch}"


def _is_complete(known: CoordinatedProducer) -> bool:
    return known.state in IDLE or known.state is TransactionState.ONGOING


def _open_message(
    evidence: PartitionEvidence,
    coordinators: CoordinatorLog,
    known: CoordinatedProducer | None,
    still_open: TransactionPart,
) -> str | None:
    """Why it should not be open; None where it may be."""
    timeout = MAX_TIMEOUT_MS if known is None else known.timeout_ms
    if evidence.now_ms - still_open.end_time <= timeout:
        return None
    if not (coordinators.clean or still_open.begin.time <= coordinators.latest_ms):
        return None  # it may have begun when the coordinators' logs had been read
    if known is None:
        return "no coordinator knows of it" if coordinators.whole else None
    name = f"transactional id {known.transactional_id}"
    if known.epoch < still_open.begin.epoch:
        return None
    if known.state in IDLE:
        return f"{name} has none open: it is {known.state.title}"
    if (evidence.topic, evidence.partition) not in known.partitions:
        return f"{name} is {known.state.title} without this partition"
    return None


def _contradicts(
    coordinators: CoordinatorLog,
    known: CoordinatedProducer,
    decision: Decision,
    last: MarkerSeen,
    *,
    is_open: bool,
) -> bool:
    """Whether a producer's last marker ends that transaction, and otherwise than it was decided."""
    if last.committed == decision.committed or last.batch.epoch != decision.epoch:
        return False
    if decision.has_own_epoch:
        return True
    # Many transactions have the epoch: the last marker is of this one if it was completed and none
    # was decided later.
    is_later = not coordinators.clean and last.batch.time > coordinators.latest_ms
    return _is_complete(known) and not is_open and not is_later


RULE: Final = Rule(
    name=NAME,
    about="A transaction ends in each of its partitions with a marker, as its coordinator decided.",
    source="KIP-98 and KIP-890",
    needs_trace=False,
    order=9,
    severity=Severity.DAMAGE,
    remedy="end what hangs with kafka-transactions.sh abort, and produce again what is lost by it",
    check=check,
    screen=lambda bucket: bucket.has_no_producer,
)
