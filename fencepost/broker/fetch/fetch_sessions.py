"""Incremental fetch sessions (KIP-227).

A session remembers which partitions a client fetches, so that its next request names only what
changed, and its next answer only what has something to say. A broker keeps a bounded number; one
that was unused for two minutes makes room.

    request (id, epoch)      means
    (0, 0) or (x, 0)         full request, and a new session in place of x
    (0, -1) or (x, -1)       full request without a session; x is closed
    (x, e), e > 0            incremental; e must be the one after the last

A session whose last partition is forgotten is closed, and that answer has no session id. As in
Kafka it is a full one then, of what the request itself names.
"""

import random
from collections.abc import Collection, Iterator
from typing import Final
from uuid import UUID

from msgspec import Struct, field

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_MS: Final = 120_000
_MAX_INT: Final = 2**31 - 1

Key = tuple[str, UUID | None, int]
"""Topic name (below v13) or topic id, and partition index."""


class CachedPartition(Struct):
    """A partition of a session, and what it was last answered."""

    request: FetchPartition
    name: str | None = None
    """Of the topic, from when its id was first known on: a session keeps it, as Kafka's does."""
    high_watermark: int = -1
    log_start_offset: int = -1
    answered: bool = False

    def has_changed(self, answer: PartitionData) -> bool:
        """Whether an incremental answer must name this partition."""
        return bool(
            answer.records
            or answer.error_code != ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
            or not self.answered
        )

    def update_response(self, answer: PartitionData) -> None:
        """Keep what was answered; an error is to be answered again."""
        self.high_watermark = answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        self.answered = answer.error_code == ErrorCode.NONE


class FetchSession(Struct):
    """One client's session."""

    session_id: int
    uses_topic_ids: bool
    last_used_ms: int
    epoch: int = INITIAL_EPOCH
    partitions: dict[Key, CachedPartition] = field(default_factory=dict)

    def next_epoch(self) -> int:
        """The epoch of the next request; it starts at 1 again behind the largest int."""
        return 1 if self.epoch == _MAX_INT else self.epoch + 1


class FetchPlan(Struct):
    """What a request asks for in the end: all of the session's partitions, in order."""

    partitions: dict[Key, CachedPartition]
    session_id: int = NO_SESSION
    incremental: bool = False
    error: ErrorCode = ErrorCode.NONE


class FetchSessionCache:
    """The sessions of one broker, the longest unused first."""

    def __init__(self, rng: random.Random, configs: BrokerConfigs) -> None:
        self._rng = rng
        self._configs = configs
        self._sessions: dict[int, FetchSession] = {}

    def plan(self, request: FetchRequest, version: int, now_ms: int) -> FetchPlan:
        """Find out what a request asks for, and bring its session up to date."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            plan = FetchPlan(requested_partitions(request))
            if request.session_epoch == INITIAL_EPOCH:
                plan.session_id = self._create(plan, version, now_ms)
            return plan
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.next_epoch():
            return FetchPlan({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= 13):
            return FetchPlan({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        session.epoch = request.session_epoch
        session.last_used_ms = now_ms
        _update(session, request)
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchPlan(requested_partitions(request))
        return FetchPlan(session.partitions, session_id=session.session_id, incremental=True)

    def requested(self, request: FetchRequest) -> Collection[Key]:
        """The partitions that a request is about, its session's too, whether it is right or not."""
        session = self._sessions.get(request.session_id)
        known = session.partitions if session and request.session_epoch > 0 else {}
        named = known.keys() | requested_partitions(request).keys()
        return named - set(forgotten_partitions(request)) if known else named

    def remove(self, session_id: int) -> None:
        """Forget a session, if there is one."""
        self._sessions.pop(session_id, None)

    def clear(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()

    def _create(self, plan: FetchPlan, version: int, now_ms: int) -> int:
        """A new session's id, or 0 where there is no room."""
        slots = self._configs.max_incremental_fetch_session_cache_slots
        if len(self._sessions) >= slots and not self._evict(now_ms):
            return NO_SESSION
        session_id = self._rng.randint(1, _MAX_INT)
        while session_id in self._sessions:
            session_id = self._rng.randint(1, _MAX_INT)
        self._sessions[session_id] = FetchSession(
            session_id,
            uses_topic_ids=version >= 13,
            last_used_ms=now_ms,
            partitions=plan.partitions,
        )
        return session_id

    def _evict(self, now_ms: int) -> bool:
        """Make room if the session that is unused for longest is so for long enough."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms < EVICTION_MS:
            return False
        del self._sessions[oldest.session_id]
        return True


def requested_partitions(request: FetchRequest) -> dict[Key, CachedPartition]:
    """The partitions that a request names itself, in its order."""
    return {
        (topic.topic, topic.topic_id, partition.partition): CachedPartition(partition)
        for topic in request.topics
        for partition in topic.partitions
    }


def forgotten_partitions(request: FetchRequest) -> Iterator[Key]:
    """The partitions that are to leave the session."""
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield topic.topic, topic.topic_id, index


def _update(session: FetchSession, request: FetchRequest) -> None:
    """What a request both names and forgets is forgotten, as in Kafka."""
    for key, asked in requested_partitions(request).items():
        known = session.partitions.get(key)
        if known is None:
            session.partitions[key] = asked
        else:
            known.request = asked.request
    for key in forgotten_partitions(request):
        session.partitions.pop(key, None)


def move_to_end(session_partitions: dict[Key, CachedPartition], answered: list[Key]) -> None:
    """Move partitions that just sent records behind the others, so that none starves."""
    for key in answered:
        cached = session_partitions.pop(key, None)
        if cached is not None:
            session_partitions[key] = cached
