"""The chunks of one partition to the offsets that are theirs, in order, each once.

The log alone says how far earlier attempts came, and only by its content. That it ends behind a
chunk does not say that the chunk is in it: others may have appended as many records. So what it
has is compared, and what it does not have is appended where it is expected, or nowhere.

An earlier attempt may still be at it, or its last request be under way: a task that Spark believes
dead. Both send the same, and one of them is first; the other is refused, reads it back, and finds
it there.
"""

from fencepost.client.appending import Appender
from fencepost.client.client import Client
from fencepost.client.encoded import EncodedRecords
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition
from fencepost.client.outcomes import AppendRefused, ExpectedOffsetMismatch, NotChecked
from fencepost.pipeline.load.outcomes import LoadInterrupted, LoadRefused, PartitionLoaded
from fencepost.pipeline.load.reading_back import Log


class PartitionLoad:
    """One attempt to bring rows into a partition.

    :param partition: With the topic's id.
    :param base: The offset of the first row.
    :param patience_s: How long to go on with one request while brokers fail, in seconds.
    """

    def __init__(
        self, client: Client, partition: Partition, *, base: int, patience_s: float
    ) -> None:
        self._partition = partition
        self._name = f"{partition.topic}-{partition.index}"
        self._base = base
        self._at = base
        self._appended = 0
        self._end = -1
        self._log = Log(client, partition, patience_s=patience_s)
        self._appender = Appender(client, partition, deadline_s=patience_s)

    @property
    def loaded(self) -> PartitionLoaded:
        """What it has come to."""
        return PartitionLoaded(
            partition=self._partition.index,
            base=self._base,
            found=self._at - self._base - self._appended,
            appended=self._appended,
        )

    async def begin(self) -> None:
        """Look how far the log goes. To be called first.

        :raises LoadRefused: When it does not reach back or up to the first row.
        :raises LoadInterrupted: When nobody tells in time.
        """
        start, self._end = await self._log.bounds()
        if start > self._base:
            raise LoadRefused(
                f"{self._name} begins at offset {start}: what has been at {self._base} is not to "
                "be known any more"
            )
        if self._end < self._base:
            raise LoadRefused(
                f"{self._name} ends at offset {self._end}, before {self._base}, which the load "
                "has begun at: it has lost records"
            )

    async def take(self, chunk: EncodedRecords) -> None:
        """See to it that the log has the next chunk.

        :raises LoadRefused: When something else is where it belongs.
        :raises LoadInterrupted: When brokers do not answer, or can't tell what they have done.
        """
        behind = self._at + len(chunk)
        if behind <= self._end:
            await self._log.require(chunk, self._at)
        else:
            await self._append(chunk)
        self._at = behind

    async def _append(self, chunk: EncodedRecords) -> None:
        expected = self._at
        try:
            await self._appender.append(chunk, expected=expected, may_be_there=True)
        except ExpectedOffsetMismatch as mismatch:
            if mismatch.upcoming is not None and mismatch.upcoming <= expected:
                raise LoadInterrupted(f"{mismatch}: the log has become shorter") from mismatch
            there = expected + mismatch.appended
            raise LoadRefused(
                f"{self._name} has something else at offset {there} than the source"
            ) from mismatch
        except NotChecked as error:
            raise LoadRefused(str(error)) from error
        except AppendRefused as error:
            raise self._refused(error) from error
        except KafkaClientError as error:
            # That an earlier attempt may have been taken is no reason to try for ever.
            if isinstance(error.__cause__, AppendRefused):
                raise self._refused(error.__cause__) from error
            raise LoadInterrupted(str(error)) from error
        self._appended += len(chunk)

    def _refused(self, why: AppendRefused) -> LoadRefused:
        said = f": {why.message}" if why.message else ""
        return LoadRefused(
            f"{self._name} does not take the rows from offset {self._at} on: {why.name}{said}"
        )
