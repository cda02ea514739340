"""The invariants of log starts and of the remote tier. Each function checks one; it returns the
violation, or None.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fencepost.protocol.records import BatchHeader
from fencepost.simulation.history import Batch, PartitionHistory
from fencepost.storage.tier.segment_metadata import RemoteSegment

Problem = str | None


def log_starts_rise_for_a_reason(where: str, before: int, after: int, allowed: int) -> Problem:
    """A log start rises only by retention that is due, by DeleteRecords, or as a leader's did.

    :param allowed: The highest log start for which there is such a reason.
    """
    if after <= max(before, allowed):
        return None
    return f"{where}: log start {after} after {before}, and there is no reason beyond {allowed}"


def the_tier_holds_what_leaders_wrote(
    history: PartitionHistory, segment: RemoteSegment, header: BatchHeader, batch: Batch | None
) -> Problem:
    """A segment in the tier has what leaders appended, and says of each batch its epoch."""
    where = f"p{history.index}: segment {segment.start_offset} to {segment.end_offset} in the tier"
    epoch, base_offset = header.partition_leader_epoch, header.base_offset
    if batch is None or batch.crc != header.crc:
        return f"{where} has {base_offset} of epoch {epoch}, which no leader appended so"
    if not segment.start_offset <= base_offset < batch.next_offset <= segment.end_offset + 1:
        return f"{where} has {batch}"
    if batch.next_offset <= history.deleted:  # a log does not know epochs before its start
        return None
    told = max((e for e in segment.epochs if e.start_offset <= base_offset), default=None)
    return None if told is not None and told.epoch == epoch else f"{where} calls {batch} {told}"


def only_what_is_committed_is_tiered(
    history: PartitionHistory, batches: Iterable[Batch]
) -> Problem:
    """Nothing goes to the tier before it is committed."""
    for batch in batches:
        if batch.next_offset > history.deleted and not history.committed.holds(batch):
            return f"p{history.index}: {batch} is in the tier, and not committed"
    return None


def offsets_are_in_order(where: str, end: int, last_stable: int, local_start: int) -> Problem:
    """A leader's log end is not below its last stable offset, nor that below its local log start.

    That is Lz >= Ly >= Lx in KIP-1023.
    """
    if end >= last_stable >= local_start:
        return None
    return (
        f"{where}: log end {end}, last stable offset {last_stable}, local log start {local_start}"
    )


def tiered_offsets_are_in_order(where: str, last_stable: int, last: int, first: int) -> Problem:
    """What a leader knows to be tiered lies below its last stable offset.

    That is Ly >= Ry >= Rx in KIP-1023.

    :param last: Inclusive.
    :param first: Inclusive; -1 where the tier has nothing any more.
    """
    if last_stable > last >= first:
        return None
    return f"{where}: last stable offset {last_stable}, tiered is from {first} to {last}"


def no_gap_behind_the_tier(where: str, last: int, local_start: int, start: int) -> Problem:
    """A leader's local log begins behind what is tiered at the latest, or where the log does.

    That is Lx <= Ry + 1, until records are deleted that were not tiered yet.

    :param last: Inclusive.
    """
    if local_start <= max(last + 1, start):
        return None
    return f"{where}: tiered is up to {last}, the local log begins at {local_start}"


def what_is_committed_can_be_read(
    where: str, start: int, local_start: int, lacking: Sequence[Batch]
) -> Problem:
    """From the log start on, what a replica does not hold itself the tier holds."""
    if not lacking:
        return None
    told = ", ".join(map(str, lacking))
    return f"{where}: from log start {start} to local log start {local_start} there is no {told}"


def followers_know_the_epochs_of_the_tier(where: str, batch: Batch, known: int | None) -> Problem:
    """A follower that begins behind the tier knows the leader epochs of what lies there."""
    if known == batch.epoch:
        return None
    return f"{where}: began behind {batch}, and takes it for epoch {known}"


def followers_know_the_producers_of_the_tier(
    where: str,
    known: Mapping[int, tuple[int, int]],
    expected: Mapping[int, Batch],
    first: int,
) -> Problem:
    """A follower that begins behind the tier knows the producers as its leader did there.

    What was deleted need not be known, nor be right: the leader can't tell a follower where their
    logs parted before its own log start, so that the follower keeps what it has of that.

    :param known: Epoch and last offset of each producer.
    :param expected: Each producer's last batch.
    :param first: The log start, in the follower's log or in the leader's.
    """
    for producer_id, batch in expected.items():
        assert batch.producer is not None
        wanted = (batch.producer[1], batch.next_offset - 1)
        found = known.get(producer_id)
        if found != wanted and max(wanted[1], found[1] if found else 0) >= first:
            return f"{where}: of producer {producer_id} known is {found}: {batch}"
    strangers = [
        producer_id
        for producer_id, (_, last) in known.items()
        if producer_id not in expected and last >= first
    ]
    return f"{where}: no batch is of the producers {sorted(strangers)}" if strangers else None


INVARIANTS: Final = (
    log_starts_rise_for_a_reason,
    the_tier_holds_what_leaders_wrote,
    only_what_is_committed_is_tiered,
    offsets_are_in_order,
    tiered_offsets_are_in_order,
    no_gap_behind_the_tier,
    what_is_committed_can_be_read,
    followers_know_the_epochs_of_the_tier,
    followers_know_the_producers_of_the_tier,
)
"""All of them."""
