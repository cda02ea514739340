"""Line i goes to offset base + i: lines that are there are compared, the others are appended.

The log alone says how far an earlier attempt came, and only by its content. That it ends behind a
chunk does not say that the chunk is in it: others may have appended as many records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from examples.bulk_load.source import Source
from examples.bulk_load.written import NotRead, Written
from fencepost.client import (
    Appender,
    AppendRefused,
    Client,
    ExpectedOffsetMismatch,
    FetchedRecord,
    NewRecord,
    NotChecked,
    OutcomeUnknown,
    Partition,
    Unreachable,
)

NEEDED: Final = {
    "check.expected.offsets": "true",
    "check.expected.offsets.source": "batch",
    "check.expected.offsets.scope": "partition",
}
"""What the topic must be like; the last two are so by default."""


class Impossible(Exception):
    """The log has something else than the file, or will not take its lines."""


class Interrupted(Exception):
    """It could not be seen through. To start again is safe, and goes on from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The file is in the log."""

    found: int
    """Lines that earlier attempts had brought there."""
    appended: int
    """Lines that this one has."""
    next_offset: int
    """Behind the file's last line."""

    @property
    def lines(self) -> int:
        """All of the file."""
        return self.found + self.appended


class Load:
    """One attempt to bring a file into a partition.

    :param base: The offset of the file's first line.
    :param chunk: Lines that are appended together, wholly or not at all.
    :param patience_s: How long to go on with one request while brokers fail.
    """

    def __init__(
        self,
        client: Client,
        partition: Partition,
        source: Source,
        *,
        base: int,
        chunk: int,
        patience_s: float,
    ) -> None:
        self._source = source
        self._base = base
        self._chunk = chunk
        self._name = f"{partition.topic}-{partition.index}"
        self._written = Written(client, partition, patience_s=patience_s)
        self._appender = Appender(client, partition, deadline_s=patience_s)

    async def run(self, tell: Callable[[str], None]) -> Loaded:
        """Compare, then append.

        :param tell: Is told in a line how much is there when the appending begins.
        :raises Impossible: When something else is where the file's lines belong.
        :raises Interrupted: When brokers do not answer, or can't tell what they have done.
        """
        try:
            await self._require_checks()
            await self._compare()
        except NotRead as error:
            raise Interrupted(f"{self._name} can't be read: {error}") from error
        found = self._source.taken
        tell(f"{found} lines are there")
        while records := self._source.take(self._chunk):
            await self._append(records)
        taken = self._source.taken
        return Loaded(found=found, appended=taken - found, next_offset=self._base + taken)

    async def _require_checks(self) -> None:
        """Without them, whatever is sent twice is there twice."""
        found = await self._written.configs(*NEEDED)
        if found != NEEDED:
            needed = ", ".join(f"{name}={value}" for name, value in NEEDED.items())
            raise Impossible(f"the topic of {self._name} must have {needed}")

    async def _compare(self) -> None:
        """Take the lines from the source that are in the log."""
        start, end = await self._written.bounds()
        if start > self._base:
            raise Impossible(
                f"{self._name} begins at offset {start}: what has been at {self._base} is not to "
                "be known any more"
            )
        if end < self._base:
            raise Impossible(f"{self._name} ends at offset {end}, before the base {self._base}")
        async for records in self._written.records(self._base, end):
            offset = self._base + self._source.taken
            lines = self._source.take(len(records))
            for at, line in enumerate(lines):
                if not _is(records[at], offset + at, line):
                    raise self._foreign(offset + at)
            if len(lines) < len(records):
                return  # others went on behind the file's last line

    async def _append(self, records: list[NewRecord]) -> None:
        expected = self._base + self._source.taken - len(records)
        try:
            # A request of an attempt that was killed may arrive at any time: its records are known
            # by their content, and so it does not matter who brought them.
            await self._appender.append(records, expected=expected, may_be_there=True)
        except ExpectedOffsetMismatch as mismatch:
            if mismatch.upcoming is not None and mismatch.upcoming <= expected:
                raise Interrupted(f"{mismatch}: the log has become shorter") from mismatch
            raise self._foreign(expected + mismatch.appended) from mismatch
        except NotChecked as error:
            raise Impossible(f"{error}; its configs were changed") from error
        except AppendRefused as error:
            raise Impossible(str(error)) from error
        except (OutcomeUnknown, Unreachable) as error:
            raise Interrupted(str(error)) from error

    def _foreign(self, offset: int) -> Impossible:
        line = offset - self._base + 1
        return Impossible(
            f"{self._name} has something else at offset {offset} than line {line} of "
            f"{self._source.path}: nothing was appended there"
        )


def _is(record: FetchedRecord, offset: int, line: NewRecord) -> bool:
    """Whether a record is this line, where it belongs."""
    found = (record.offset, record.key, record.value, record.headers)
    return found == (offset, line.key, line.value, line.headers)
