"""When metadata is asked for, and of which broker."""

from collections.abc import Callable
from typing import Final

from fencepost.client.consumer.cluster_metadata import ClusterMetadata
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.requests import Backoff, Request, Retry, Turn, typed
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_METADATA: Final = BY_NAME["metadata"]


class MetadataRefresh:
    """Asks for metadata: of new topics, after errors that show it is stale, and when it is old.

    :param topics: The topics that are of interest now.
    :param fail: Takes an error after which the consumer cannot go on.
    """

    def __init__(
        self,
        metadata: ClusterMetadata,
        nodes: Nodes,
        config: ConsumerConfig,
        topics: Callable[[], set[str]],
        fail: Callable[[Exception], None],
    ) -> None:
        self._metadata = metadata
        self._nodes = nodes
        self._config = config
        self._topics = topics
        self._fail = fail
        self._in_flight = False
        self._requested = True
        self._expires_at = 0
        self._known: frozenset[str] = frozenset()
        """The topics of the last answer."""
        backoff = Backoff(initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms)
        self._retry = Retry(backoff)

    def request(self) -> None:
        """Ask again: something showed that the metadata is stale."""
        self._requested = True

    def run(self, turn: Turn, *, has_leaders: bool) -> None:
        """Ask where it is due.

        :param has_leaders: Whether the metadata has all leaders that are needed now.
        """
        topics = frozenset(self._topics())
        if self._in_flight or not topics:
            return
        is_stale = self._requested or not has_leaders or not topics <= self._known
        if not is_stale and not turn.is_due(self._expires_at):
            return
        if topics <= self._known and not turn.is_due(self._retry.at):
            return
        chosen = self._nodes.choose(_METADATA, turn)
        if chosen is not None:
            turn.send(self._request(*chosen, topics))

    def _request(self, node: int, version: int, topics: frozenset[str]) -> Request:
        self._in_flight = True
        self._requested = False

        def answered(response: MetadataResponse, now: int) -> None:
            self._in_flight = False
            if self._metadata.update(response):
                self._retry.reset()
            self._retry.pause(now)
            self._nodes.learn(self._metadata.brokers)
            self._known = topics
            self._expires_at = now + self._config.metadata_max_age_ms
            for topic, code in self._metadata.refused.items():
                self._requested = True
                if code not in RETRIABLE:
                    self._fail(RequestRefused(f"Metadata of {topic}", code))

        def failed(_error: KafkaClientError, _now: int) -> None:
            self._in_flight = False
            self._requested = True

        return Request(
            node=node,
            api=_METADATA,
            version=version,
            message=MetadataRequest(
                topics=tuple(MetadataRequestTopic(name=each) for each in sorted(topics)),
                allow_auto_topic_creation=False,
            ),
            timeout_ms=self._config.request_timeout_ms,
            on_answer=typed(MetadataResponse, answered),
            on_failure=failed,
        )
