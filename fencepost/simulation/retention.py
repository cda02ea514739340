"""How far retention may move a log start, computed from the batches that a log has.

Retention takes the oldest records of a log, in order: those without which the log still has
``retention.bytes``, and those that are older than ``retention.ms``. Where the records are, and how
they are cut into segments, makes no difference.
"""

from collections.abc import Sequence

from fencepost.simulation.history import Batch
from fencepost.storage.log.config import LogConfig


def retained_from(batches: Sequence[Batch], config: LogConfig, *, start: int, now_ms: int) -> int:
    """The highest log start that retention allows.

    :param batches: All of the log from its start on, in order.
    :param start: The log start so far.
    """
    if not config.is_deleted:
        return start
    excess = sum(batch.size_bytes for batch in batches) - config.retention_bytes
    for batch in batches:
        by_size = config.retention_bytes >= 0 and batch.size_bytes <= excess
        by_time = 0 <= config.retention_ms <= now_ms - batch.max_timestamp
        if not by_size and not by_time:
            break
        excess -= batch.size_bytes
        start = batch.next_offset
    return start
