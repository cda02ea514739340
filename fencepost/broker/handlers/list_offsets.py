"""ListOffsets (2), versions 1-11: offsets by time, and the special targets.

    >= 0  the first record at or after that time, its timestamp and epoch
    -1    latest: high watermark, last stable offset (read_committed), log end (replicas, debugging)
    -2    earliest: log start offset            -4  earliest that is local
    -3    the record with the highest timestamp -5  latest that is tiered
                                                -6  earliest that waits to be tiered
Nothing found is offset and epoch -1 without an error. The same partition asked twice is one answer,
INVALID_REQUEST.

After an election the gate is closed (KIP-207): a new leader may know a lower high watermark than
its predecessor had told clients. Until it has reached the log end that it was elected with, an
answer could go back behind an earlier one, and a client's lookup is refused, as
``list.offsets.gate`` says: with ``kip`` every lookup; with ``kafka`` as Apache Kafka does it,
latest, and a lookup by time or of the maximum timestamp that finds nothing below what may be read.
Other brokers and debuggers are answered. Where leaders are elected uncleanly offsets go back
anyway, and the gate stays open.

Of a tiered topic (KIP-405) -5 and -6 find nothing until the leader's task has run, and -6 nothing
where nothing was ever tiered. A record by its time, and -3, is looked for in the tier as well,
where the log begins there; who waits longer than the request's timeout (v10+), or
``remote.list.offsets.request.timeout.ms``, is answered REQUEST_TIMED_OUT. Apache Kafka does
otherwise (``conformance=apache``): -3 knows only what is local; -6 of a log of which nothing was
tiered is its start, and never lies before it; and -5 and -6 find nothing beyond what may be read.

Versions: v2 isolation level; v4 current leader epoch, and the epoch in the answer (KIP-320); v5
OFFSET_NOT_AVAILABLE; v7 -3; v8 -4; v9 -5; v10 timeout; v11 -6 (KIP-1023). A target below its
version is UNSUPPORTED_VERSION, before any other check.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from msgspec import Struct

from fencepost.broker.configs.effective_configs import BrokerConfigs, ListOffsetsGate
from fencepost.broker.core.outcomes import Answer, Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.replication.partition_checks import NO_EPOCH, find_leader, find_replica
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of each special target."""
FIRST_WITH_GATE_ERROR: Final = 5
"""The version from which clients know OFFSET_NOT_AVAILABLE."""
CONSUMER: Final = -1
DEBUGGING: Final = -2
READ_COMMITTED: Final = 1
_ISOLATION_LEVELS: Final = (0, READ_COMMITTED)


class _Lookup(Struct, frozen=True, kw_only=True):
    """The lookup in one partition that passed its checks."""

    ctx: Context
    replica: Replica
    target: int
    bound: int
    """Exclusive end of what the asker may read."""
    gate: ListOffsetsGate

    @property
    def reaches_into_tier(self) -> bool:
        """Whether what is here can't tell."""
        log = self.replica.log
        if log.local_log_start_offset <= log.log_start_offset:
            return False
        return self.target >= 0 or (
            self.target == MAX_TIMESTAMP and not self.ctx.broker.configs.apache
        )

    def answer(self, timestamp: int, offset: int, epoch: int) -> ListOffsetsPartitionResponse:
        """What was found; all are -1 where nothing was."""
        if self.gate is ListOffsetsGate.KAFKA and offset < 0 and _is_by_time(self.target):
            return _error(self.replica.index, gate_error(self.ctx.version))
        return _answer(self.replica, timestamp, offset, epoch)

    def find(self) -> ListOffsetsPartitionResponse:
        """Look at what this broker has."""
        try:
            return self.answer(*_find(self))
        except StorageFailure as failure:
            return self._fail(failure)

    def find_in_tier(self, then: Callable[[ListOffsetsPartitionResponse], None]) -> None:
        """Look in the tier as well; `then` is told now or later."""
        reader = self.ctx.broker.remote_log_manager.reader
        try:
            here = _by_time(self.replica, self.target)
        except StorageFailure as failure:
            then(self._fail(failure))
            return

        def take(found: TimestampAndOffset | ErrorCode | None) -> None:
            if isinstance(found, ErrorCode):
                then(_error(self.replica.index, found))
            else:
                then(self.answer(*_readable(found or here, self.bound)))

        if self.target == MAX_TIMESTAMP:
            reader.latest(self.replica, here.timestamp if here else 0, take)
        else:
            reader.lookup(self.replica, self.target, take)

    def _fail(self, failure: StorageFailure) -> ListOffsetsPartitionResponse:
        """The log can't be read: only this partition is refused."""
        self.ctx.broker.mark_offline(self.replica, failure)
        return _error(self.replica.index, ErrorCode.KAFKA_STORAGE_ERROR)


_Answers = dict[str, dict[int, ListOffsetsPartitionResponse]]


def handle(ctx: Context, request: ListOffsetsRequest) -> Answer[ListOffsetsResponse]:
    """Look up every partition asked for, each once."""
    if request.isolation_level not in _ISOLATION_LEVELS:
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(
    ctx: Context, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse | Wait[ListOffsetsResponse]]:
    topics: _Answers = {}
    lookups: list[_Lookup] = []
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        if not topic.partitions:  # costs as much as a partition
            yield
        for asked in topic.partitions:
            yield
            index = asked.partition_index
            if index in answers:
                answers[index] = _error(index, ErrorCode.INVALID_REQUEST)
                continue
            found = _look_up(ctx, request, topic.name, asked)
            if isinstance(found, _Lookup):
                lookups.append(found)
                found = _error(index, ErrorCode.REQUEST_TIMED_OUT)
            answers[index] = found
    lookups = [each for each in lookups if _is_open(topics, each)]
    return _wait(ctx, request, topics, lookups) if lookups else _respond(topics)


def _is_open(topics: _Answers, lookup: _Lookup) -> bool:
    """Whether the tier is to be asked; not where the partition was asked twice."""
    answer = topics[lookup.replica.topic][lookup.replica.index]
    return answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def _wait(
    ctx: Context, request: ListOffsetsRequest, topics: _Answers, lookups: Iterable[_Lookup]
) -> Wait[ListOffsetsResponse]:
    """Answer when the tier has told of all, or not told in time."""
    wait: Wait[ListOffsetsResponse] = Wait()
    missing = {(each.replica.topic, each.replica.index): each for each in lookups}

    def take(key: tuple[str, int], found: ListOffsetsPartitionResponse) -> None:
        if wait.done:
            return
        topics[key[0]][key[1]] = found
        del missing[key]
        if not missing:
            wait.complete(_respond(topics))

    timeout_ms = ctx.broker.configs.remote_list_offsets_request_timeout_ms
    if request.timeout_ms > 0:
        timeout_ms = request.timeout_ms
    wait.expire_at(ctx.broker.scheduler, ctx.now_ms + timeout_ms, partial(_respond, topics))
    for key, lookup in list(missing.items()):
        lookup.find_in_tier(partial(take, key))
    return wait


def _respond(topics: _Answers) -> ListOffsetsResponse:
    found = [
        ListOffsetsTopicResponse(name=name, partitions=tuple(answers.values()))
        for name, answers in topics.items()
        if answers
    ]
    return ListOffsetsResponse(topics=tuple(found))


def refuse(request: ListOffsetsRequest, error_code: int) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(_error(p.partition_index, error_code) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _look_up(
    ctx: Context, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse | _Lookup:
    index, target = asked.partition_index, asked.timestamp
    if target < 0 and ctx.version < _SINCE.get(target, ctx.version + 1):
        return _error(index, ErrorCode.UNSUPPORTED_VERSION)
    find = find_replica if request.replica_id == DEBUGGING else find_leader
    is_broker = request.replica_id >= 0
    replica = find(ctx.broker, topic, index, asked.current_leader_epoch, is_broker=is_broker)
    if isinstance(replica, ErrorCode):
        return _error(index, replica)
    is_client = request.replica_id == CONSUMER
    gate = effective_gate(ctx.broker.configs, replica) if is_client else ListOffsetsGate.OFF
    if gate is ListOffsetsGate.KIP or (gate is ListOffsetsGate.KAFKA and target == LATEST):
        return _error(index, gate_error(ctx.version))
    bound = _bound(replica, request)
    if target == LATEST:  # what most ask for: nothing is looked up
        return _answer(replica, -1, bound, replica.leader_epoch)
    lookup = _Lookup(ctx=ctx, replica=replica, target=target, bound=bound, gate=gate)
    return lookup if lookup.reaches_into_tier else lookup.find()


def _is_by_time(target: int) -> bool:
    return target >= 0 or target == MAX_TIMESTAMP


def _answer(
    replica: Replica, timestamp: int, offset: int, epoch: int
) -> ListOffsetsPartitionResponse:
    has_epochs = replica.log.config.keeps_leader_epochs
    return ListOffsetsPartitionResponse(
        partition_index=replica.index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if has_epochs else NO_EPOCH,
    )


def _error(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _bound(replica: Replica, request: ListOffsetsRequest) -> int:
    """Exclusive end of what the asker may read."""
    if request.replica_id != CONSUMER:
        return replica.log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return replica.last_stable_offset
    return replica.high_watermark


_Found = tuple[int, int, int]
"""Timestamp, offset and epoch; all -1 where there is nothing."""
_NOTHING: Final[_Found] = (-1, -1, -1)


def _find(lookup: _Lookup) -> _Found:
    """What this broker knows without asking the tier."""
    replica, target = lookup.replica, lookup.target
    if target == EARLIEST:
        return _at(replica, replica.log.log_start_offset)
    if target == EARLIEST_LOCAL:
        return _at(replica, replica.log.local_log_start_offset)
    if _is_by_time(target):
        return _readable(_by_time(replica, target), lookup.bound)
    return _end_of_tier(lookup)


def _end_of_tier(lookup: _Lookup) -> _Found:
    """The last offset that was tiered, or the next one to be."""
    broker, replica, log = lookup.ctx.broker, lookup.replica, lookup.replica.log
    if not log.config.remote_storage_enable:
        return _NOTHING
    highest = broker.remote_log_manager.highest_tiered(replica)
    wants_next, apache = lookup.target == EARLIEST_PENDING_UPLOAD, broker.configs.apache
    if highest is None:
        return _NOTHING
    if highest < 0 and not (
        apache and wants_next and log.local_log_start_offset == log.log_start_offset
    ):
        return _NOTHING
    offset = highest + 1 if wants_next else highest
    if apache and wants_next:  # the KIP lets it lie before the log start
        offset = max(offset, log.log_start_offset)
    return _NOTHING if apache and offset >= lookup.bound else _at(replica, offset)


def _by_time(replica: Replica, target: int) -> TimestampAndOffset | None:
    """The record that is asked for, of those that are here."""
    if target == MAX_TIMESTAMP:
        return replica.log.offset_of_max_timestamp()
    return replica.log.offset_for_timestamp(target)


def _readable(found: TimestampAndOffset | None, bound: int) -> _Found:
    return _NOTHING if found is None or found.offset >= bound else found


def _at(replica: Replica, offset: int) -> _Found:
    epoch = replica.log.epoch_for_offset(offset)
    return -1, offset, -1 if epoch is None else epoch


def effective_gate(configs: BrokerConfigs, replica: Replica) -> ListOffsetsGate:
    """What the gate holds back from clients of this leader now; off while it is open."""
    if replica.gate_is_open:
        return ListOffsetsGate.OFF
    return configs.topic(replica.topic).list_offsets_gate


def gate_error(version: int) -> ErrorCode:
    """The error of a lookup that the gate refuses."""
    if version >= FIRST_WITH_GATE_ERROR:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE
