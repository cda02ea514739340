"""What a test sees and holds of a follower: its steps, and where it stops."""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import HEADER_SIZE, batch_size, iter_headers


class FollowerState(Enum):
    """What a follower is doing: see `fencepost.broker.replication.follower.follower`."""

    IDLE = "idle"
    TRUNCATING = "truncating"
    FETCHING = "fetching"
    LOST = "lost"
    TRACING = "tracing"
    BUILDING = "building"
    BACKING_OFF = "backing off"


class Hold(Struct):
    """A test keeps a follower from fetching."""

    at: int | None = None
    """Where (exclusive end of what it may have); None is wherever it is."""
    reached: bool = False


class Step(Struct, frozen=True, kw_only=True):
    """What one request of a follower did. Log ends are exclusive."""

    api: str
    """Kafka's name of it; ``Tier`` where it was the remote tier that was asked."""
    asked: str | None
    """What ListOffsets was for, such as ``earliest_pending_upload``."""
    leader: int
    """Whom it asked, as far as it knew."""
    leader_epoch: int
    fetch_offset: int
    """Its log end before."""
    error: int | None
    """What it was answered, an ``ErrorCode`` where Kafka has one; None where no answer came."""
    appended: int
    """Records."""
    truncated_to: int | None
    """The log end, where the log was truncated or started again."""
    log_end_offset: int
    """After it, as the high watermark and the state."""
    high_watermark: int
    state: FollowerState


Report = Callable[[Step], None]


def known_error(code: int) -> int:
    """The error of this code where Kafka has one; a test may make up others."""
    try:
        return ErrorCode(code)
    except ValueError:
        return code


def batches_ending_by(records: tuple[Buffer, ...], offset: int) -> tuple[Buffer, ...]:
    """The leading whole batches that end at or before ``offset`` (exclusive)."""
    allowed: list[Buffer] = []
    for buffer in records:
        end = 0
        for at, header in iter_headers(buffer):
            if header.last_offset >= offset:
                break
            end = at + header.size
        else:
            allowed.append(buffer)
            continue
        if end:
            allowed.append(memoryview(buffer)[:end])
        break
    return tuple(allowed)


def first_batches(records: tuple[Buffer, ...], most: int) -> tuple[Buffer, ...]:
    """The leading whole batches, at most so many."""
    if sum(map(len, records)) <= most * HEADER_SIZE:
        return records
    taken: list[Buffer] = []
    for buffer in records:
        end = 0
        while most and end < len(buffer) and (size := batch_size(buffer, end)):
            end += size
            most -= 1
        taken.append(buffer if end == len(buffer) else memoryview(buffer)[:end])
        if not most:
            break
    return tuple(taken)
