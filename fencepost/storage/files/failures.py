"""What goes wrong with a log's files."""

import errno
from typing import final


@final
class StorageFailure(Exception):
    """A log's files can't be read or written; nothing is done with the log from then on.

    :ivar log: Topic and partition: ``topic-0``.
    :ivar why: What the operating system said, or what is wrong with the bytes.
    """

    def __init__(self, log: str, why: str) -> None:
        super().__init__(f"{log}: {why}")
        self.log = log
        self.why = why


@final
class DamagedSegment(OSError):
    """A segment's bytes are no batches from some position on.

    An `OSError`, because to a log it is the same as a disk that can't read them.

    :ivar position: Where the first bytes are that are none.
    :ivar reason: What is wrong with them.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(errno.EIO, f"no record batch at position {position}: {reason}")
        self.position = position
        self.reason = reason
