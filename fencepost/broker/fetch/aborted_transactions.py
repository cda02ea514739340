"""The aborted transactions of a read_committed Fetch: consumers leave their records out (KIP-98).

A consumer drops a transactional record where a transaction of its producer is in the list, from the
first offset there on to the marker. So the list has every transaction of which records may be
among those that are sent, those that began before the fetch offset as well. More do no harm. As in
Kafka, whose list goes on to the next entry of the offset index, a short list is not cut at the last
record that is sent: that would take a look at each batch.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import AbortedTransaction
from fencepost.protocol.records import HEADER_SIZE, peek_header
from fencepost.storage.log import transactions
from fencepost.storage.log.interface import Log

FoundRecords: TypeAlias = tuple[tuple[Buffer, ...], tuple[AbortedTransaction, ...] | None]
"""What is read of a partition, and the aborted transactions; None for who is not read_committed."""
_FEW: Final = 20
"""So many are sent without a look at the batches."""


def find_aborted(
    log: Log, offset: int, records: Sequence[Buffer]
) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions of what a Fetch reads from a log.

    :param records: What is sent: batches from `offset` on.
    :raises StorageFailure: When an index can't be read.
    """
    if not records:
        return ()
    found = log.aborted_transactions(offset, log.log_end_offset)
    if len(found) > _FEW:
        end = end_offset(records)
        found = tuple(each for each in found if each.first_offset < end)
    return to_answer(found)


def end_offset(records: Iterable[Buffer]) -> int:
    """The offset behind the last batch of which at least the header is there; 0 without one."""
    end = 0
    for buffer in records:
        at = 0
        while len(buffer) - at >= HEADER_SIZE:
            header = peek_header(buffer, at)
            end = header.next_offset
            at += header.size
    return end


def to_answer(
    found: Iterable[transactions.AbortedTransaction],
) -> tuple[AbortedTransaction, ...]:
    """Transactions as a Fetch answers them."""
    return tuple(
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in found
    )
