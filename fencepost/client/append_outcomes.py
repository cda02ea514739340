"""What becomes of a conditional append: appended, refused for good, or not to be known."""

from dataclasses import dataclass
from typing import ClassVar

from fencepost.client.errors import Failure, KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.errors import error_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """All records are in the log, at the offsets that were expected."""

    first_offset: int
    next_offset: int
    """The offset behind the last one: what the next append is to expect."""


class ExpectedOffsetMismatch(Exception):
    """Other records are at the expected offsets, or the log ends elsewhere. This is final.

    :ivar partition: Whose log it is.
    :ivar expected: The offset that was expected of the first record.
    :ivar upcoming: Where the log ended when the broker refused; None below version 8 of Produce,
        which has no room for it.
    :ivar appended: How many of the records are in the log all the same, from `expected` on, in
        front of the others: more than 0 only where an earlier attempt left a part of them.
    """

    def __init__(
        self, partition: Partition, expected: int, upcoming: int | None, appended: int = 0
    ) -> None:
        super().__init__(partition, expected, upcoming, appended)
        self.partition = partition
        self.expected = expected
        self.upcoming = upcoming
        self.appended = appended

    def __str__(self) -> str:
        upcoming = "" if self.upcoming is None else f", upcoming offset {self.upcoming}"
        part = f"; {self.appended} of the records are there" if self.appended else ""
        return f"{_name(self.partition)}: expected offset {self.expected}{upcoming}{part}"


class AppendRefused(Exception):
    """The broker will not take the records, however often it is asked; none was appended.

    :ivar code: Kafka's error code.
    :ivar message: What the broker said of it; None where it said nothing.
    """

    def __init__(self, partition: Partition, code: int, message: str | None) -> None:
        super().__init__(partition, code, message)
        self.partition = partition
        self.code = code
        self.message = message

    @property
    def name(self) -> str:
        """Kafka's name of the code, or the number as text."""
        return error_name(self.code)

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{_name(self.partition)}: {self.name}{said}"


class NotChecked(Exception):
    """The records were appended, but at other offsets: the topic does not check base offsets.

    Its ``check.expected.offsets`` is false, or ``check.expected.offsets.source`` is not ``batch``.

    :ivar expected: The offset that was expected of the first record that was sent.
    :ivar first_offset: The offset that it got.
    """

    def __init__(self, partition: Partition, expected: int, first_offset: int) -> None:
        super().__init__(partition, expected, first_offset)
        self.partition = partition
        self.expected = expected
        self.first_offset = first_offset

    def __str__(self) -> str:
        return (
            f"{_name(self.partition)} does not check expected offsets: the records that were "
            f"expected at {self.expected} are at {self.first_offset}"
        )


class OutcomeUnknown(KafkaClientError):
    """The records may be in the log, wholly or in part, or may yet come to be there.

    :ivar upcoming: Where the log ended when a broker refused last; None where that is not known.
    :ivar appended: How many of the records were seen in the log, from `expected` on.
    :ivar reason: Why it could not be found out.
    """

    failure: ClassVar[Failure] = Failure.TIMED_OUT

    def __init__(
        self,
        partition: Partition,
        expected: int,
        *,
        upcoming: int | None,
        appended: int,
        reason: str,
    ) -> None:
        super().__init__(
            f"{_name(partition)}: whether the records are at {expected} is not known: {reason}"
        )
        self.partition = partition
        self.expected = expected
        self.upcoming = upcoming
        self.appended = appended
        self.reason = reason


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"
