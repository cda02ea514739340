"""Truncation: the end of a log goes back, or all of it goes and it begins at another offset."""

from collections.abc import Sequence

from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.log_state import LogState
from fencepost.storage.log.producer_state import ProducerStateEntry


def truncate_to(log: LogState, offset: int) -> bool:
    """Drop everything from `offset` on, and of the batch that holds it all.

    :returns: Whether there was anything to drop.
    """
    log.epochs.truncate_from_end(offset)
    if offset >= log.end:
        return False
    log.keys.before_truncation(offset)
    if offset < log.segments.first_offset:
        truncate_fully_and_start_at(log, offset, now_ms=log.segments.active.created_ms)
        return True
    log.segments.truncate(offset)
    log.end = offset
    log.start = min(log.start, offset)
    log.cleaned_until = min(log.cleaned_until, log.segments.active.base_offset)
    if log.producers.wrote_at_or_after(offset):  # producers may have expired since
        active = log.segments.active
        log.producers.restore(active.producer_snapshot, keep_below=active.base_offset)
        log.producers.replay(active.scan())
    log.on_truncated()
    return True


def truncate_fully_and_start_at(
    log: LogState, offset: int, *, now_ms: int, log_start_offset: int | None = None
) -> None:
    """Drop everything, epochs and producers too; the next record gets `offset`."""
    log.start_over(offset, offset if log_start_offset is None else log_start_offset, now_ms)
    log.on_truncated()


def start_from_tier(
    log: LogState,
    offset: int,
    *,
    log_start_offset: int,
    epochs: Sequence[EpochEntry],
    producers: Sequence[ProducerStateEntry],
    now_ms: int,
) -> None:
    """Drop everything and go on at `offset`; what lies before is in the tier."""
    log.start_over(offset, log_start_offset, now_ms, tuple(producers))
    for entry in epochs:
        log.epochs.assign(entry.epoch, entry.start_offset)
    log.on_truncated()
