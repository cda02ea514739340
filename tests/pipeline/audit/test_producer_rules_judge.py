"""What the rules about producers make of rows: what is wrong, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pytest

from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.pipeline.audit.coordinator_log import (
    CoordinatedProducer,
    CoordinatorLog,
    Decision,
)
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata, ReplicaMetadata
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES
from tests.pipeline.audit.log_rows import Row, of_broker, replica
from tests.pipeline.audit.producer_rows import marker, sent
from tests.pipeline.audit.summaries import NOW_MS, START_MS

S = TransactionState
HERE: Final = frozenset({("t", 0)})
ELSEWHERE: Final = frozenset({("u", 0)})


def judge(
    rule: str,
    rows: Sequence[Row],
    *replicas: ReplicaMetadata,
    coordinators: CoordinatorLog | None = None,
    now_ms: int = NOW_MS,
) -> list[str]:
    """The messages of a rule."""
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        metadata=PartitionMetadata(replicas=replicas or (replica(),), coordinators=coordinators),
        batches=pa.Table.from_pylist(list(rows), schema=BATCHES),
        now_ms=now_ms,
        traces=None,
    )
    return [each.message for each in RULES[rule].check(evidence)]


def coordinators(
    state: TransactionState | None = None,
    *,
    epoch: int = 0,
    partitions: frozenset[tuple[str, int]] = HERE,
    decision: Decision | None = None,
    **how: bool | int,
) -> CoordinatorLog:
    """What they know of producer 7; None: nothing."""
    known = {"whole": True, "clean": True, "latest_ms": NOW_MS, **how}
    if state is None:
        return CoordinatorLog(**known)  # type: ignore[arg-type]  # as the tests say
    producer = CoordinatedProducer(
        transactional_id="x",
        state=state,
        epoch=epoch,
        timeout_ms=60_000,
        partitions=partitions,
        decision=decision,
    )
    return CoordinatorLog(producers={7: producer}, **known)  # type: ignore[arg-type]  # likewise


def decided(committed: bool, epoch: int = 0, *, own: bool = False) -> Decision:
    return Decision(
        committed=committed,
        epoch=epoch,
        has_own_epoch=own,
        decided_ms=START_MS,
        partitions=HERE,
    )


# -- transactions ---------------------------------------------------------------------------------

OPEN: Final = [sent(0, 2, 0, transactional=True)]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (coordinators(S.ONGOING), None),
        (coordinators(S.PREPARE_COMMIT), None),
        (
            coordinators(S.ONGOING, partitions=ELSEWHERE),
            "transactional id x is Ongoing without this partition",
        ),
        (coordinators(S.COMPLETE_ABORT), "transactional id x has none open: it is CompleteAbort"),
        (coordinators(S.EMPTY, epoch=1), "transactional id x has none open: it is Empty"),
        (coordinators(), "no coordinator knows of it"),
        (coordinators(whole=False), None),
        (coordinators(clean=False, latest_ms=START_MS - 1), None),
        (coordinators(clean=False, latest_ms=START_MS), "no coordinator knows of it"),
        (None, None),
    ],
)
def test_an_open_transaction(known: CoordinatorLog | None, said: str | None) -> None:
    found = judge("transactions", OPEN, coordinators=known)
    assert found == ([] if said is None else [f"the transaction of producer 7 is open, and {said}"])


def test_a_young_transaction_is_open_and_no_finding() -> None:
    minute = START_MS + 60_000
    done = coordinators(S.COMPLETE_COMMIT)
    assert judge("transactions", OPEN, coordinators=done, now_ms=minute) == []
    assert len(judge("transactions", OPEN, coordinators=done, now_ms=minute + 1)) == 1
    unknown = coordinators()
    assert judge("transactions", OPEN, coordinators=unknown, now_ms=START_MS + 900_000) == []


def test_a_replica_that_has_yet_to_fetch_the_marker() -> None:
    rows = [*of_broker(1, *OPEN, marker(3, "commit")), *of_broker(2, *OPEN)]
    both = (replica(1), replica(2))
    assert judge("transactions", rows, *both, coordinators=coordinators(S.COMPLETE_COMMIT)) == []


def test_a_marker_without_a_batch_is_no_finding() -> None:
    assert judge("transactions", [marker(0, "abort"), marker(1, "commit")]) == []


@pytest.mark.parametrize(
    ("decision", "state", "is_found"),
    [
        (decided(committed=True), S.COMPLETE_COMMIT, True),
        (decided(committed=True), S.ONGOING, True),
        (decided(committed=True), S.PREPARE_COMMIT, False),  # the marker is of one before
        (decided(committed=True, own=True), S.PREPARE_COMMIT, True),
        (decided(committed=False), S.COMPLETE_ABORT, False),
        (decided(committed=True, epoch=1), S.COMPLETE_COMMIT, False),
    ],
)
def test_a_marker_against_the_decision(
    decision: Decision, state: TransactionState, is_found: bool
) -> None:
    known = coordinators(state, decision=decision)
    found = judge("transactions", [*OPEN, marker(3, "abort")], coordinators=known)
    assert bool(found) is is_found


def test_a_marker_that_is_not_there() -> None:
    known = coordinators(
        S.COMPLETE_COMMIT, epoch=2, decision=decided(committed=True, epoch=2, own=True)
    )
    rows = [*OPEN, marker(3, "commit", epoch=1)]
    (found,) = judge("transactions", rows, coordinators=known)
    assert "x has completed a commit of producer 7, epoch 2, and the log has no marker" in found
    holed = [*OPEN, marker(4, "commit", epoch=1)]
    assert judge("transactions", holed, coordinators=known) == []
