"""One conditional append on its way, sent until its outcome is known.

It appends a batch set: records of one partition as several batches, which one request carries.

As long as every attempt was answered by a mismatch, nothing of it is in the log. From the first
attempt on whose answer is lost, or says no more than "later", the append is in doubt: it may be
in the log, and the next attempt is refused on its account. Where a mismatch may be of one's own
making, the log is read:

    what is at the expected offsets             what follows
    all of the records                          they are appended
    some of the first, then the log ends        the rest is sent, with the offset that it has then
    some of the first or none, then others      mismatch
    nothing yet below the high watermark        it is waited for
    something is missing (compacted, deleted)   it is not known, and never will be
    the log does not reach as far               see below

Only what is below the leader's high watermark counts, as the rest may be lost in an election;
what is below stays, and so no attempt that is still under way can be appended there any more.

A log that ends before the expected offset proves nothing: a leader who was deposed, and does not
know it yet, has such a log, while the records are in that of another. A client in doubt goes on
asking then. To send the same again is always safe, as it is conditional.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fencepost.client.append_outcomes import (
    AppendRefused,
    ExpectedOffsetMismatch,
    ExpectedRecords,
    NotChecked,
    OutcomeUnknown,
    Verdict,
    match_records,
)
from fencepost.client.batches import EncodedRecords, NewRecord, encode_records
from fencepost.client.client import Client, Leader, find_leader
from fencepost.client.connection import PRODUCE, Connection
from fencepost.client.errors import RETRIABLE, KafkaClientError, Unreachable
from fencepost.client.model import Fetched, OffsetSpec, Partition, Produced
from fencepost.client.partitions import fetch, list_offsets, produce
from fencepost.client.retry import Deadline
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.expected_offsets import Mismatch, parse_mismatch
from fencepost.protocol.records import HEADER_SIZE

DEFAULT_MAX_RECORDS: Final = 10_000
DEFAULT_MAX_BATCH_BYTES: Final = 1 << 18
_RECORD_OVERHEAD: Final = 36
"""The most that length, attributes, deltas, lengths of key and value, and count take."""
_HEADER_OVERHEAD: Final = 10
"""The most that the two lengths of a record header take."""


class BatchLimits(Struct, frozen=True, kw_only=True):
    """Where one batch ends and the next begins."""

    max_records: int = DEFAULT_MAX_RECORDS
    max_bytes: int = DEFAULT_MAX_BATCH_BYTES
    """Before compression. A record that is larger by itself is a batch by itself."""
    codec: Codec = Codec.NONE

    def __post_init__(self) -> None:
        if self.max_records < 1 or self.max_bytes < 1:
            raise ValueError("a batch holds one record at least")


def encode_set(own: ExpectedRecords, start: int, limits: BatchLimits) -> bytearray:
    """The records from an offset on, each batch with the offset that is expected as its base."""
    if isinstance(own.records, EncodedRecords):
        whole = own.records.encode_from(start - own.first_offset, base_offset=start)
        if whole is not None:
            return whole
    encoded = bytearray()
    at = start
    for batch in split_batches(own.records[start - own.first_offset :], limits):
        encoded += encode_records(
            batch, base_offset=at, codec=limits.codec, sequenced=own.sequence_at(at)
        )
        at += len(batch)
    return encoded


def split_batches(
    records: Sequence[NewRecord], limits: BatchLimits
) -> Iterator[Sequence[NewRecord]]:
    """The records in batches, each as large as may be; cut the same way however often."""
    start, size = 0, HEADER_SIZE
    for at, record in enumerate(records):
        needed = _max_record_bytes(record)
        if at > start and (at - start == limits.max_records or size + needed > limits.max_bytes):
            yield records[start:at]
            start, size = at, HEADER_SIZE
        size += needed
    if start < len(records):
        yield records[start:]


def _max_record_bytes(record: NewRecord) -> int:
    size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += _HEADER_OVERHEAD + len(name.encode("utf-8", "surrogateescape")) + len(value or b"")
    return size


_POLL_S: Final = 0.5
"""How long a fetch waits for the high watermark before the records are sent again."""
_WAIT_SHARE: Final = 0.75
"""Of the time of an attempt, for replication: the broker is to answer before it is given up."""
_RECORD_ERRORS_SINCE: Final = 8
_RETRIABLE: Final = RETRIABLE | {ErrorCode.UNKNOWN_SERVER_ERROR}


class AppendOptions(Struct, frozen=True, kw_only=True):
    """How records are sent and read back."""

    acks: int
    limits: BatchLimits
    version: int | None
    """Of Produce; None is the highest that both sides know."""
    fetch_version: int | None
    mismatch_code: int
    """Of a mismatch, where the answer has no record errors."""


class AppendAttempts:
    """An append until its outcome is known.

    :param leader: Whom to ask first; None: to be found.
    :param in_doubt: Whether an earlier attempt may have been appended.
    """

    def __init__(
        self,
        client: Client,
        partition: Partition,
        own: ExpectedRecords,
        manner: AppendOptions,
        patience: Deadline,
        *,
        leader: Leader | None,
        in_doubt: bool,
    ) -> None:
        self.leader = leader
        self._client = client
        self._partition = partition
        self._target = partition
        """The same, by the id that its topic had when it was first found."""
        self._records = own
        self._options = manner
        self._deadline = patience
        self._in_doubt = in_doubt
        self._last_leader = leader
        self._next_offset = own.first_offset
        """All records before it were seen in the log."""
        self._upcoming: int | None = None
        self._reason = "there was no time to ask"

    async def run(self) -> None:
        """Return when all records are in the log.

        :raises ExpectedOffsetMismatch: When others are there, or were there first.
        :raises AppendRefused: When the broker refuses, and no attempt is in doubt.
        :raises NotChecked: When the topic does not look at base offsets.
        :raises OutcomeUnknown: When it is not found out in time, or cannot be.
        :raises Unreachable: When nothing was sent in time.
        """
        while self._next_offset < self._records.end_offset:
            self._require_time()
            try:
                connection, version = await self._connect_to_leader()
            except KafkaClientError as error:
                await self._backoff(str(error))
                continue
            self._require_time()
            try:
                answer = await self._send(connection, version)
            except KafkaClientError as error:
                self._in_doubt = True
                await self._backoff(str(error))
                continue
            await self._handle_answer(connection, answer)

    # -- one attempt ----------------------------------------------------------------------------

    async def _connect_to_leader(self) -> tuple[Connection, int]:
        """The leader, and the version to send in. No record goes out here."""
        timeout_s = self._deadline.attempt_timeout_s
        if self.leader is None:
            self.leader = await find_leader(
                self._client, self._partition, last=self._last_leader, timeout_s=timeout_s
            )
            self._last_leader = self.leader
        if self._target.topic_id is None:
            self._target = replace(self._target, topic_id=self.leader.topic_id)
        connection = await self._client.broker(self.leader.broker, timeout_s=timeout_s)
        version = self._options.version
        if version is None:
            version = await connection.best_version(PRODUCE.api, timeout_s=timeout_s)
        return connection, version

    async def _send(self, connection: Connection, version: int) -> Produced:
        timeout_s = self._deadline.attempt_timeout_s
        answer = await produce(
            connection,
            self._target,
            encode_set(self._records, self._next_offset, self._options.limits),
            acks=self._options.acks,
            wait_ms=round(_WAIT_SHARE * timeout_s * 1000),
            version=version,
            timeout_s=timeout_s,
        )
        assert answer is not None, "acks=0 is not answered, and not allowed"
        return answer

    async def _handle_answer(self, connection: Connection, answer: Produced) -> None:
        if answer.error == ErrorCode.NONE:
            if answer.base_offset != self._next_offset:
                raise NotChecked(self._partition, self._next_offset, answer.base_offset)
            self._next_offset = self._records.end_offset
            return
        mismatch = find_mismatch(answer)
        if mismatch is None and answer.error in _RETRIABLE:
            self._in_doubt = True
        if mismatch is not None or self._is_mismatch_by_code(answer):
            self._upcoming = None if mismatch is None else mismatch.upcoming
            if not self._in_doubt:
                raise self._mismatch()
            self._reason = "the records were refused, and were not found in the log"
            await self._read_back(connection)
        elif answer.error in _RETRIABLE:
            await self._backoff(_describe_error(answer.error, answer.message))
        else:
            refused = AppendRefused(self._partition, answer.error, answer.message)
            if self._in_doubt:
                raise self._unknown(str(refused)) from refused
            raise refused

    def _is_mismatch_by_code(self, answer: Produced) -> bool:
        """Whether the code alone says it: Kafka has none such, or there is no room for more."""
        if answer.error == ErrorCode.EXPECTED_OFFSET_MISMATCH:
            return True
        return answer.version < _RECORD_ERRORS_SINCE and answer.error == self._options.mismatch_code

    # -- reading back ---------------------------------------------------------------------------

    async def _read_back(self, connection: Connection) -> None:
        """Read on as far as the log goes, and find out whose records are there."""
        if self._upcoming is not None and self._upcoming < self._next_offset:
            await self._restart_after_short_log(f"the log ends at {self._upcoming}")
            return
        before = self._next_offset
        while self._next_offset < self._records.end_offset and self._next_offset != self._upcoming:
            try:
                fetched = await self._fetch(connection)
            except KafkaClientError as error:
                await self._backoff(str(error))
                return
            if fetched.error != ErrorCode.NONE:
                await self._handle_fetch_error(connection, fetched.error)
                return
            if not self._compare(fetched) or self._deadline.is_expired:
                break
        if self._next_offset == before:
            await self._deadline.backoff()

    async def _fetch(self, connection: Connection) -> Fetched:
        timeout_s = self._deadline.attempt_timeout_s
        return await fetch(
            connection,
            self._target,
            self._next_offset,
            epoch=-1 if self.leader is None else self.leader.epoch,
            wait_ms=round(min(_POLL_S, _WAIT_SHARE * timeout_s) * 1000),
            version=self._options.fetch_version,
            timeout_s=timeout_s,
        )

    def _compare(self, fetched: Fetched) -> bool:
        """Whether more of one's own records were found."""
        before = self._next_offset
        compared = match_records(self._records, fetched.content, before, fetched.high_watermark)
        self._next_offset = compared.next_offset
        if compared.verdict is Verdict.FOREIGN:
            raise self._mismatch()
        if compared.verdict is Verdict.MISSING:
            raise self._unknown(f"the record at {self._next_offset} is no longer in the log")
        return self._next_offset > before

    async def _handle_fetch_error(self, connection: Connection, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = await self._log_start(connection)
            if start is not None and start > self._next_offset:
                raise self._unknown(f"the log begins at {start} by now")
            await self._restart_after_short_log(f"the log does not reach {self._next_offset}")
        elif code in _RETRIABLE:
            await self._backoff(f"reading back: {_describe_error(code, None)}")
        else:
            refused = AppendRefused(self._partition, code, None)
            raise self._unknown(f"reading back: {refused}") from refused

    async def _log_start(self, connection: Connection) -> int | None:
        """Where the log begins, None where that is not told: a refused Fetch does not say."""
        timeout_s = self._deadline.attempt_timeout_s
        try:
            found = await list_offsets(
                connection, self._target, OffsetSpec.EARLIEST, timeout_s=timeout_s
            )
        except KafkaClientError:
            return None
        return found.offset if found.error == ErrorCode.NONE else None

    async def _restart_after_short_log(self, why: str) -> None:
        """The log is shorter than what was seen of it, or was expected: look for another leader.

        What was seen is not believed any more; an unclean election may have lost it.
        """
        self._next_offset = self._records.first_offset
        await self._backoff(why)

    # -- how it goes on, and how it ends --------------------------------------------------------

    async def _backoff(self, reason: str) -> None:
        self._reason = reason
        self.leader = None
        await self._deadline.backoff()

    def _require_time(self) -> None:
        if not self._deadline.is_expired:
            return
        if self._in_doubt:
            raise self._unknown(self._reason)
        raise Unreachable(f"nothing was sent: {self._reason}")

    def _mismatch(self) -> ExpectedOffsetMismatch:
        first = self._records.first_offset
        return ExpectedOffsetMismatch(
            self._partition, first, self._upcoming, self._next_offset - first
        )

    def _unknown(self, reason: str) -> OutcomeUnknown:
        first = self._records.first_offset
        return OutcomeUnknown(
            self._partition,
            first,
            upcoming=self._upcoming,
            appended=self._next_offset - first,
            reason=reason,
        )


def find_mismatch(answer: Produced) -> Mismatch | None:
    """What the first record error that tells of an expected offset says; None where none does.

    By this a mismatch is known whatever code the topic has been given for it
    (``check.expected.offsets.error.code``), from version 8 of Produce on.
    """
    for _, text in answer.record_errors:
        if text is not None and (found := parse_mismatch(text)) is not None:
            return found
    return None


def _describe_error(code: int, message: str | None) -> str:
    return f"{error_name(code)}: {message}" if message else error_name(code)
