"""The invariants of transactions. Each function checks one; it returns the violation, or None."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
    from fencepost.simulation.history import Batch
    from fencepost.simulation.transactions.ledger import (
        GroupPartition,
        ProducerEpoch,
        SentBatch,
        SentOffset,
        SentTransaction,
    )

Problem = str | None
_States = Mapping[str, "TransactionMetadata"]


def transactions_are_atomic(
    transaction: "SentTransaction", visible: Mapping["SentBatch", int]
) -> Problem:
    """Of a transaction read_committed consumers see in the end each batch once, or nothing.

    :param visible: How often each of its batches that logs still hold is seen.
    """
    repeated = [batch for batch, count in visible.items() if count > 1]
    if repeated:
        return f"{transaction}: a batch in p{repeated[0].index} is visible more than once"
    missing = [b for b, count in visible.items() if b.is_acknowledged and not count]
    if missing and (any(visible.values()) or transaction.told is True):
        seen = sum(visible.values())
        return f"{transaction}: {seen} batches are visible, one in p{missing[0].index} is not"
    return None


def transactions_are_isolated(who: str, batch: "SentBatch") -> Problem:
    """A read_committed consumer gets nothing of an aborted or open transaction."""
    if batch.transaction.may_be_committed:
        return None
    return f"{who}: got a batch of {batch.transaction}"


def offsets_are_isolated(who: str, key: "GroupPartition", sent: "SentOffset | None") -> Problem:
    """A consumer finds no offset committed by an aborted or open transaction.

    :param sent: What was found; None where no producer has committed it.
    """
    if sent is not None and sent.transaction.may_be_committed:
        return None
    found = "no producer" if sent is None else str(sent.transaction)
    return f"{who}: offset of {key.group} for p{key.partition} is of {found}"


def offsets_are_atomic(
    key: "GroupPartition",
    shown: "SentOffset | None",
    committed: Collection["SentOffset"],
    visible: Collection["SentBatch"] | None,
) -> Problem:
    """A group's stable offset is of its last transaction that is committed, with all its records.

    :param shown: The committed offset.
    :param committed: The offsets of transactions that are known to be committed.
    :param visible: The batches that read_committed consumers see in the end, or that logs hold no
        more; None before the end.
    """
    where = f"offset of {key.group} for p{key.partition}"
    if shown is None:
        lost = next(iter(committed), None)
        return None if lost is None else f"{where}: none, of {lost.transaction} is {lost.offset}"
    of = f"{where}: {shown.offset} of {shown.transaction}"
    later = [each for each in committed if _is_over(shown.transaction, each.transaction)]
    if later:
        return f"{of}, and not {later[0].offset} of {later[0].transaction}"
    acknowledged = [batch for batch in shown.transaction.batches if batch.is_acknowledged]
    missing = [b for b in acknowledged if visible is not None and b not in visible]
    if missing:
        return f"{of}, of which a batch in p{missing[0].index} is not visible"
    return None


def _is_over(one: "SentTransaction", other: "SentTransaction") -> bool:
    """Whether a transaction had ended when another one began."""
    return one.closed is not None and one.closed < other.begun


def markers_follow_decisions(where: str, marker: "Batch", is_decided: bool) -> Problem:
    """Each marker carries out a decision that is committed to ``__transaction_state``."""
    if is_decided:
        return None
    kind = "commit" if marker.commits else "abort"
    return f"{where}: {marker} is a marker of producer {marker.producer} to {kind}, not decided"


def last_stable_offsets_stop_at_open_transactions(
    where: str, last_stable_offset: int, first_open: int
) -> Problem:
    """No leader's last stable offset lies behind the first record of an open transaction.

    A transaction is open until its marker is committed.
    """
    if last_stable_offset <= first_open:
        return None
    return (
        f"{where}: last stable offset {last_stable_offset}, a transaction is open at {first_open}"
    )


def one_epoch_of_an_id_is_given_once(
    transactional_id: str, producer: "ProducerEpoch", rank: int | None, is_repeated: bool
) -> Problem:
    """No two producers of a transactional id get the same producer id and epoch.

    :param rank: None where no producer had them before.
    :param is_repeated: Whether it is the same producer, which has asked again (KIP-360).
    """
    if rank is None or is_repeated:
        return None
    return f"{transactional_id}: {producer} is given out again"


def one_epoch_of_an_id_is_alive(where: str, batch: "Batch", is_alive: bool) -> Problem:
    """Once a transactional id has a new producer epoch, no leader takes records of another."""
    if is_alive:
        return None
    return f"{where}: {batch} is of producer {batch.producer}, whose id has a newer epoch"


def coordinators_are_what_their_log_says(where: str, lived: _States, replayed: _States) -> Problem:
    """A coordinator equals the one that is replayed from its log, and from that of the one before.

    :param lived: What the coordinator knows.
    """
    if lived == replayed:
        return None
    for transactional_id in sorted({*lived, *replayed}):
        one, other = lived.get(transactional_id), replayed.get(transactional_id)
        if one != other:
            return f"{where}: {transactional_id} is {one}, and {other} in the log"
    return None


def transactions_come_to_an_end(
    index: int, high_watermark: int, last_stable_offset: int
) -> Problem:
    """Once all is well again no transaction stays open longer than its timeout."""
    if last_stable_offset == high_watermark:
        return None
    return f"p{index}: last stable offset {last_stable_offset}, high watermark {high_watermark}"


def offsets_become_stable(key: "GroupPartition", found: int | None) -> Problem:
    """Once all is well again a group's offsets can be fetched, and no transaction holds them back.

    :param found: What is committed; None with an error.
    """
    return (
        None if found is not None else f"offset of {key.group} for p{key.partition} is not stable"
    )


INVARIANTS: Final = (
    transactions_are_atomic,
    transactions_are_isolated,
    offsets_are_isolated,
    offsets_are_atomic,
    markers_follow_decisions,
    last_stable_offsets_stop_at_open_transactions,
    one_epoch_of_an_id_is_given_once,
    one_epoch_of_an_id_is_alive,
    coordinators_are_what_their_log_says,
    transactions_come_to_an_end,
    offsets_become_stable,
)
"""All of them."""
