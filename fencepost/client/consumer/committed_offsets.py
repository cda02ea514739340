"""OffsetFetch (9) and OffsetCommit (8): the offsets that the group has committed.

OffsetFetch  OffsetCommit  brings
5            6             the epoch of the record before the offset (KIP-320); in its earlier
                           draft the timestamp of that record too
7                          OffsetFetch is refused while a transaction commits (KIP-447)
             7             the instance of a static member
8                          a list of groups
10           10            topics by their ids
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from msgspec import Struct

from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.coordinator import LOST_ERRORS, Coordinator
from fencepost.client.consumer.errors import CommitFailedError, RequestRefused
from fencepost.client.consumer.group_protocol import GroupProtocol
from fencepost.client.consumer.metadata_refresh import MetadataRefresh
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.offset_messages import (
    Committed,
    Names,
    commit_request,
    committed_partition,
    fetch_request,
    group_by_topic,
    read_fetched,
)
from fencepost.client.consumer.operations import Operation
from fencepost.client.consumer.requests import Backoff, Channel, Request, Retry, Turn, typed
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import ConsumerGroupMetadata, Partition
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

R = TypeVar("R")
MEMBER_ERRORS: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""Errors that say that the member is not, or will not stay, one of the current generation."""
_OFFSET_FETCH: Final = BY_NAME["offset_fetch"]
_OFFSET_COMMIT: Final = BY_NAME["offset_commit"]
_NEWEST_BY_NAME: Final = 9
"""Of both."""


class _Fetch(Struct, kw_only=True, eq=False):
    """An OffsetFetch to be answered."""

    operation: Operation[Committed]
    partitions: frozenset[Partition]
    retry: Retry
    in_flight: bool = False


class _Commit(Struct, kw_only=True, eq=False):
    """An OffsetCommit to be answered."""

    operation: Operation[None]
    offsets: Mapping[Partition, OffsetAndMetadata]
    identity: ConsumerGroupMetadata
    """Of the member that commits: a later generation commits nothing of an earlier one."""
    retry: Retry
    in_flight: bool = False


class CommittedOffsets:
    """Fetches and commits, until each is answered or nothing waits for it.

    :param member: As what the consumer commits.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        metadata: ClusterMetadata,
        refresh: MetadataRefresh,
        nodes: Nodes,
        config: ConsumerConfig,
        member: GroupProtocol,
    ) -> None:
        self._coordinator = coordinator
        self._metadata = metadata
        self._refresh = refresh
        self._nodes = nodes
        self._config = config
        self._member = member
        self._backoff = Backoff(
            initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms
        )
        self._fetches: list[_Fetch] = []
        self._commits: list[_Commit] = []

    @property
    def topics(self) -> set[str]:
        """Of which metadata is needed: requests name topics by their ids."""
        fetched = {p.topic for each in self._fetches for p in each.partitions}
        return fetched | {p.topic for each in self._commits for p in each.offsets}

    def fetch(self, partitions: Iterable[Partition]) -> Operation[Committed]:
        """The committed offsets."""
        fetch = _Fetch(
            operation=Operation(), partitions=frozenset(partitions), retry=Retry(self._backoff)
        )
        if fetch.partitions:
            self._fetches.append(fetch)
        else:
            fetch.operation.complete({})
        return fetch.operation

    def commit(self, offsets: Mapping[Partition, OffsetAndMetadata]) -> Operation[None]:
        """Commit offsets; one commit may overtake another that has to be repeated."""
        commit = _Commit(
            operation=Operation(),
            offsets=dict(offsets),
            identity=self._member.identity,
            retry=Retry(self._backoff),
        )
        if offsets:
            self._commits.append(commit)
        else:
            commit.operation.complete(None)
        return commit.operation

    def run(self, turn: Turn) -> None:
        """Send what is due to the coordinator."""
        self._fetches = [each for each in self._fetches if not each.operation.done]
        self._commits = [each for each in self._commits if not each.operation.done]
        for fetch in self._fetches:
            if not fetch.in_flight and turn.is_due(fetch.retry.at):
                self._send_fetch(fetch, turn)
        for commit in self._commits:
            if not commit.in_flight and turn.is_due(commit.retry.at):
                self._send_commit(commit, turn)

    def _target(
        self, api: Api, topics: Iterable[str], turn: Turn
    ) -> tuple[int, int, dict[str, UUID | None]] | None:
        """Coordinator, version and topic ids; None while the first two are not known."""
        node = self._coordinator.node(turn)
        if node is None:
            return None
        ids = {topic: self._metadata.topic_id(topic) for topic in topics}
        version = self._nodes.version(
            node, api, at_most=_NEWEST_BY_NAME if None in ids.values() else None
        )
        return None if version is None else (node, version, ids)

    # -- requests -------------------------------------------------------------------------------

    def _send_fetch(self, fetch: _Fetch, turn: Turn) -> None:
        group = self._coordinator.group
        topics = group_by_topic(fetch.partitions)

        def message(version: int, names: Names) -> OffsetFetchRequest:
            return fetch_request(group, version, topics, names)

        def answered(response: OffsetFetchResponse, names: Names, now: int) -> None:
            code, found = read_fetched(response, names)
            if code == ErrorCode.NONE:
                fetch.operation.complete({each: found.get(each) for each in fetch.partitions})
            elif not self._may_retry(code, fetch.operation, fetch.retry, now):
                fetch.operation.fail(RequestRefused(f"OffsetFetch of {group}", code))

        self._send(fetch, turn, _OFFSET_FETCH, topics, message, OffsetFetchResponse, answered)

    def _send_commit(self, commit: _Commit, turn: Turn) -> None:
        if commit.identity != self._member.identity:
            commit.operation.fail(CommitFailedError("the group has rebalanced since the commit"))
            return
        topics = group_by_topic(commit.offsets)
        offsets = {each: committed_partition(each, at) for each, at in commit.offsets.items()}

        def message(_version: int, names: Names) -> OffsetCommitRequest:
            return commit_request(commit.identity, offsets, names)

        def answered(response: OffsetCommitResponse, _names: Names, now: int) -> None:
            codes = {each.error_code for topic in response.topics for each in topic.partitions}
            self._handle_commit(commit, codes - {ErrorCode.NONE}, now)

        self._send(commit, turn, _OFFSET_COMMIT, topics, message, OffsetCommitResponse, answered)

    def _send(
        self,
        waiting: _Fetch | _Commit,
        turn: Turn,
        api: Api,
        topics: Iterable[str],
        message: Callable[[int, Names], object],
        response: type[R],
        answered: Callable[[R, Names, int], None],
    ) -> None:
        """Send a request to the coordinator, where it and its version are known.

        :param message: Makes it, in a version, with what it calls the topics.
        """
        target = self._target(api, topics, turn)
        if target is None:
            return
        node, version, ids = target
        names: Names = {ids[t] if version > _NEWEST_BY_NAME else t: t for t in topics}
        waiting.in_flight = True

        def on_answer(answer: R, now: int) -> None:
            waiting.in_flight = False
            answered(answer, names, now)

        def on_failure(error: KafkaClientError, now: int) -> None:
            waiting.in_flight = False
            self._failed(error, waiting.operation, waiting.retry, now)

        turn.send(
            Request(
                node=node,
                channel=Channel.GROUP,
                api=api,
                version=version,
                message=message(version, names),
                timeout_ms=self._config.request_timeout_ms,
                on_answer=typed(response, on_answer),
                on_failure=on_failure,
            )
        )

    def _handle_commit(self, commit: _Commit, codes: set[int], now: int) -> None:
        if not codes:
            commit.operation.complete(None)
            return
        final = [code for code in codes if code not in RETRIABLE]
        code = min(final or codes)
        if code in MEMBER_ERRORS:
            commit.operation.fail(CommitFailedError(error_name(code)))
            self._member.refused(code)
        elif not self._may_retry(code, commit.operation, commit.retry, now):
            group = self._coordinator.group
            commit.operation.fail(RequestRefused(f"OffsetCommit of {group}", code))

    # -- errors ---------------------------------------------------------------------------------

    def _may_retry(
        self, code: int, operation: Operation[Committed] | Operation[None], retry: Retry, now: int
    ) -> bool:
        """Whether an error passes by itself; then there is another attempt."""
        if code not in RETRIABLE:
            return False
        operation.reason = error_name(code)
        retry.pause(now)
        if code in LOST_ERRORS:
            self._coordinator.lost()
        elif code == ErrorCode.UNKNOWN_TOPIC_ID:
            self._refresh.request()
        return True

    def _failed(
        self,
        error: KafkaClientError,
        operation: Operation[Committed] | Operation[None],
        retry: Retry,
        now: int,
    ) -> None:
        operation.reason = str(error)
        retry.pause(now)
        self._coordinator.lost()
