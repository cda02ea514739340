"""FindCoordinator (10): the broker that coordinates the group."""

from collections.abc import Callable
from typing import Final

from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.errors import RequestRefused
from fencepost.client.consumer.nodes import Nodes
from fencepost.client.consumer.requests import Backoff, Request, Retry, Turn, typed
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_FIND_COORDINATOR: Final = BY_NAME["find_coordinator"]
_MANY_KEYS: Final = 4
"""From this version on, it asks for a list of keys."""
_GROUP: Final = 0

LOST_ERRORS: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}
)
"""Errors after which the coordinator is looked for again."""


class Coordinator:
    """Knows the coordinator, or looks for it while it is wanted.

    :param group: Whose coordinator.
    :param fail: Takes an error after which the consumer cannot go on.
    """

    def __init__(
        self, group: str, nodes: Nodes, config: ConsumerConfig, fail: Callable[[Exception], None]
    ) -> None:
        self.group = group
        self._nodes = nodes
        self._config = config
        self._fail = fail
        self._node: int | None = None
        self._wanted = False
        self._in_flight = False
        self._retry = Retry(
            Backoff(initial_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms)
        )

    def node(self, turn: Turn) -> int | None:
        """The coordinator's broker id, if a request may be sent there; else it is looked for."""
        if self._node is None:
            self._wanted = True
            return None
        return self._node if self._nodes.is_ready(self._node, turn) else None

    def lost(self) -> None:
        """The broker does not coordinate the group, or does not answer."""
        self._node = None

    def run(self, turn: Turn) -> None:
        """Ask a broker where it is wanted."""
        if not self._wanted or self._in_flight or not turn.is_due(self._retry.at):
            return
        chosen = self._nodes.choose(_FIND_COORDINATOR, turn)
        if chosen is not None:
            turn.send(self._request(*chosen))

    def _request(self, node: int, version: int) -> Request:
        self._in_flight = True
        many = version >= _MANY_KEYS

        def answered(response: FindCoordinatorResponse, now: int) -> None:
            self._in_flight = False
            found = response.coordinators[0] if many and response.coordinators else response
            if found.error_code == ErrorCode.NONE:
                self._nodes.learn({found.node_id: (found.host, found.port)})
                self._node = found.node_id
                self._wanted = False
                self._retry.reset()
                return
            self._retry.pause(now)
            if found.error_code not in RETRIABLE:
                self._wanted = False
                self._fail(RequestRefused(f"FindCoordinator of {self.group}", found.error_code))

        def failed(_error: KafkaClientError, now: int) -> None:
            self._in_flight = False
            self._retry.pause(now)

        return Request(
            node=node,
            api=_FIND_COORDINATOR,
            version=version,
            message=FindCoordinatorRequest(
                key="" if many else self.group,
                key_type=_GROUP,
                coordinator_keys=(self.group,) if many else (),
            ),
            timeout_ms=self._config.request_timeout_ms,
            on_answer=typed(FindCoordinatorResponse, answered),
            on_failure=failed,
        )
