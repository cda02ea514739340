"""Conditional appends (KIP-27): records that go to the expected offsets, or nowhere."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from fencepost.client.append_attempts import (
    DEFAULT_MAX_BATCH_BYTES,
    DEFAULT_MAX_RECORDS,
    AppendAttempts,
    AppendOptions,
    BatchLimits,
)
from fencepost.client.append_outcomes import (
    Appended,
    AppendRefused,
    ExpectedOffsetMismatch,
    ExpectedRecords,
    NotChecked,
)
from fencepost.client.batches import NOT_SEQUENCED, EncodedRecords, NewRecord, Sequenced
from fencepost.client.client import Client, Leader
from fencepost.client.cluster import init_producer_id
from fencepost.client.errors import RETRIABLE, KafkaClientError, Unreachable
from fencepost.client.model import Partition
from fencepost.client.retry import Deadline
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.records import increment_sequence


class Appender:
    """Appends to one partition of a topic with ``check.expected.offsets=true``, one at a time.

    The topic's ``check.expected.offsets.source`` must be ``batch``. A second append waits until
    the first is through. Connections and leaders are the client's; requests to a broker wait for
    each other on its one connection, so that who must not wait takes another client.

    :param acks: -1: appended is what every in-sync replica has. 1: what the leader has, which may
        be lost in an election.
    :param deadline_s: Seconds for one append, from when its turn has come.
    :param request_timeout_s: Seconds for one attempt.
    :param idempotent: Whether records carry a producer id, which is asked for with the first
        append. By it one's own records are told from others with the same content.
    :param producer: The id and epoch that they carry, and the next sequence number, as an
        earlier appender's `producer` told. Idempotent it is then anyway.
    :param max_batch_records: Where a batch ends, and the next of the set begins.
    :param max_batch_bytes: The same by bytes, before compression.
    :param version: Of Produce; None is the highest that both sides know.
    :param fetch_version: Of Fetch, by which appended records are recognised.
    :param mismatch_code: The topic's ``check.expected.offsets.error.code``. Only versions below 8
        of Produce need it: later answers tell by their record errors. Where it is one that says
        "again later" at any topic, such as NOT_LEADER_OR_FOLLOWER, each answer of it leaves a
        doubt there, and the log is read.
    :raises ValueError: With acks=0, which leaves the outcome unknown, and impossible limits.
    """

    def __init__(
        self,
        client: Client,
        partition: Partition,
        *,
        acks: int = -1,
        deadline_s: float = 30.0,
        request_timeout_s: float = 5.0,
        idempotent: bool = False,
        producer: Sequenced | None = None,
        max_batch_records: int = DEFAULT_MAX_RECORDS,
        max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
        codec: Codec = Codec.NONE,
        version: int | None = None,
        fetch_version: int | None = None,
        mismatch_code: int = ErrorCode.EXPECTED_OFFSET_MISMATCH,
    ) -> None:
        if acks not in (-1, 1):
            raise ValueError(f"acks={acks}: only -1 and 1 tell whether records were appended")
        self.partition = partition
        self._client = client
        self._deadline_s = deadline_s
        self._request_timeout_s = request_timeout_s
        self._idempotent = idempotent or producer is not None
        self._producer = producer
        self._producer_was_given = producer is not None
        self._options = AppendOptions(
            acks=acks,
            limits=BatchLimits(
                max_records=max_batch_records, max_bytes=max_batch_bytes, codec=codec
            ),
            version=version,
            fetch_version=fetch_version,
            mismatch_code=mismatch_code,
        )
        self._lock = asyncio.Lock()
        self._leader: Leader | None = None
        self._in_doubt: ExpectedRecords | None = None
        """The last append, where its outcome is not known."""

    @property
    def producer(self) -> Sequenced | None:
        """Producer id, epoch and next sequence number; None without, or before the first append.

        An appender that is to take over an append needs it as it is before that append.
        """
        return self._producer

    async def append(
        self, records: Sequence[NewRecord], *, expected: int, may_be_there: bool = False
    ) -> Appended:
        """Append records at an offset, all of them in one request; or none.

        It is sent until its outcome is known. Where an answer is lost and a later attempt is
        refused, the log is read: the records are recognised by their content.

        After `OutcomeUnknown`, or when it was cancelled, the same records may be appended at the
        same offset once more: that is a later attempt of the same append.

        :param records: `EncodedRecords` go out as they are; no producer id can be theirs.
        :param expected: The offset of the first record, where the log must end now.
        :param may_be_there: Whether an earlier attempt may have appended them, such as one of a
            process that has died. Then the first refusal already has the log read.
        :raises ExpectedOffsetMismatch: When the log does not end there. What of these records is
            in the log all the same, it says.
        :raises AppendRefused: When the broker refuses for another reason; none is appended.
        :raises NotChecked: When the topic does not look at base offsets: they are appended.
        :raises OutcomeUnknown: When it is not found out in time, or not to be found out.
        :raises Unreachable: When nothing could be sent in time.
        :raises ValueError: Without records, with an offset below 0, where the records of an
            earlier attempt carried a producer id that is not known here, or where records that are
            encoded already are to carry one.
        """
        if not records:
            raise ValueError("there are no records to append")
        if expected < 0:
            raise ValueError(f"an offset below 0 expects nothing: {expected}")
        if self._idempotent and isinstance(records, EncodedRecords):
            raise ValueError("records that are encoded already can carry no producer id")
        kept = records if isinstance(records, EncodedRecords) else tuple(records)
        async with self._lock:
            patience = Deadline(self._deadline_s, self._request_timeout_s)
            own, in_doubt = await self._expected_records(kept, expected, patience, may_be_there)
            await self._run_attempts(own, patience, in_doubt=in_doubt)
        return Appended(first_offset=expected, next_offset=own.end_offset)

    # -- inside ---------------------------------------------------------------------------------

    async def _expected_records(
        self,
        records: tuple[NewRecord, ...] | EncodedRecords,
        expected: int,
        patience: Deadline,
        may_be_there: bool,
    ) -> tuple[ExpectedRecords, bool]:
        """What is to be appended, and whether an earlier attempt is in doubt."""
        last = self._in_doubt
        if last is not None and (last.records, last.first_offset) == (records, expected):
            return last, True
        if not self._idempotent:
            sequenced = NOT_SEQUENCED
        elif may_be_there and not self._producer_was_given:
            raise ValueError("may_be_there: whose? Hand on the producer of the earlier attempt")
        elif self._producer is None or last is not None:
            # The sequence numbers of an append that is in doubt may be used, or not.
            sequenced = await _new_producer(self._client, self.partition, patience)
            self._producer_was_given = False
        else:
            sequenced = self._producer
        self._producer = sequenced if self._idempotent else None
        own = ExpectedRecords(records=records, first_offset=expected, sequenced=sequenced)
        return own, may_be_there

    async def _run_attempts(
        self, own: ExpectedRecords, patience: Deadline, *, in_doubt: bool
    ) -> None:
        settling = AppendAttempts(
            self._client,
            self.partition,
            own,
            self._options,
            patience,
            leader=self._leader,
            in_doubt=in_doubt,
        )
        self._leader = None
        self._in_doubt = own
        try:
            await settling.run()
        except ExpectedOffsetMismatch as mismatch:
            self._finish(own, mismatch.appended, settling.leader)
            raise
        except (AppendRefused, Unreachable):
            self._finish(own, 0, settling.leader)
            raise
        except NotChecked:
            self._finish(own, len(own.records), settling.leader)
            raise
        self._finish(own, len(own.records), settling.leader)

    def _finish(self, own: ExpectedRecords, appended: int, leader: Leader | None) -> None:
        self._in_doubt = None
        self._leader = leader
        if self._idempotent:
            first = own.sequenced
            after = increment_sequence(first.base_sequence, appended)
            self._producer = replace(first, base_sequence=after)


async def _new_producer(client: Client, partition: Partition, patience: Deadline) -> Sequenced:
    """A producer id that is new.

    :raises AppendRefused: When there is none to be had.
    :raises Unreachable: When no broker gives one in time.
    """
    reason = "there was no time to ask for a producer id"
    while not patience.is_expired:
        timeout_s = patience.attempt_timeout_s
        try:
            connection = await client.any_broker(timeout_s=timeout_s)
            answer = await init_producer_id(connection, timeout_s=timeout_s)
        except KafkaClientError as error:
            reason = str(error)
        else:
            if answer.error == ErrorCode.NONE:
                return Sequenced(
                    producer_id=answer.producer_id,
                    producer_epoch=answer.producer_epoch,
                    base_sequence=0,
                )
            if answer.error not in RETRIABLE:
                raise AppendRefused(partition, answer.error, "InitProducerId")
            reason = error_name(answer.error)
        await patience.backoff()
    raise Unreachable(f"nothing was sent: no producer id: {reason}")
