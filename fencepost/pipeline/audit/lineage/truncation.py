"""What a replica would truncate as a follower, and what it would answer as a leader.

A replica that is elected begins a new leader epoch at its log end. So every answer here is that of
a leader whose newest epoch has written nothing yet, and is newer than all that any replica knows.
"""

import numpy as np

from fencepost.pipeline.audit.batch_arrays import NOT_FOUND, Batches
from fencepost.pipeline.audit.lineage.comparison import LogSide
from fencepost.pipeline.audit.lineage.model import EpochAnswer, Truncation
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache, truncation_step


def elected(side: LogSide, epoch: int) -> LeaderEpochCache:
    """The leader epochs of a replica that is elected.

    :param epoch: Which begins; newer than all.
    """
    cache = LeaderEpochCache(side.epochs)
    cache.assign(epoch, side.end)
    return cache


def truncate(follower: LogSide, leader: LogSide, epoch: int) -> Truncation | None:
    """What a follower truncates when it follows, comparing epochs until both logs agree.

    KIP-101 compares the follower's newest epoch; KIP-279 goes on with the newest that the leader
    knows, until both know it.

    :param epoch: In which the leader is elected.
    :returns: None where the follower knows no leader epoch, though it has records.
    """
    own, answers = LeaderEpochCache(follower.epochs), elected(leader, epoch)
    end = follower.end
    if own.latest is None and len(follower.batches):
        return None
    while own.latest is not None:
        answer = answers.end_offset_for(own.latest, leader.end)
        step = truncation_step(answer, own.end_offset_for(answer.epoch, end))
        end = _whole_batches(follower.batches, min(end, step.offset))
        own.truncate_from_end(end)
        if step.is_common:
            break
    gone = follower.batches.last >= end
    return Truncation(offset=end, records=int(follower.batches.count[gone].sum()))


def answer_epoch(side: LogSide, asked: int, epoch: int) -> EpochAnswer:
    """What a replica answers a client that asks where an epoch ends.

    :param epoch: In which it is elected.
    """
    found = elected(side, epoch).end_offset_for(asked, side.end)
    return EpochAnswer(asked_epoch=asked, epoch=found.epoch, end_offset=found.end_offset)


def _whole_batches(batches: Batches, end: int) -> int:
    """Where a log ends that is truncated at an offset: a batch goes as a whole."""
    (number,) = batches.index_of(np.array([end]))
    return end if number == NOT_FOUND else int(batches.base[number])
