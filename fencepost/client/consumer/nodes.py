"""The brokers of a cluster: where they are, what they serve, and which of them did not answer."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer.requests import Backoff, Request, Retry, Turn, typed
from fencepost.client.errors import KafkaClientError, NotServed
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

Address: TypeAlias = tuple[str, int]
"""Host and port."""
_API_VERSIONS: Final = BY_NAME["api_versions"]


class Nodes:
    """The brokers, by their ids; those of the bootstrap list have negative ones.

    :param bootstrap: Where the latter are.
    :param fail: Takes an error after which the consumer cannot go on.
    """

    def __init__(
        self,
        bootstrap: Mapping[int, Address],
        config: ConsumerConfig,
        fail: Callable[[Exception], None],
    ) -> None:
        self._bootstrap = dict(bootstrap)
        self._brokers: dict[int, Address] = {}
        self._config = config
        self._fail = fail
        self._versions: dict[int, Mapping[int, tuple[int, int]]] = {}
        self._wanted: dict[int, None] = {}
        """Nodes whose versions are to be asked for, in their order."""
        self._asked: dict[int, int] = {}
        """Nodes that have been asked and did not answer yet, and when in ms."""
        self._retries: dict[int, Retry] = {}
        self._rounds = 0

    def learn(self, addresses: Mapping[int, Address]) -> None:
        """Where brokers are."""
        self._brokers.update(addresses)

    def address(self, node: int) -> Address | None:
        """Where a node is; None where no metadata says so."""
        return self._brokers.get(node) or self._bootstrap.get(node)

    def choose(self, api: Api, turn: Turn) -> tuple[int, int] | None:
        """A node to ask about the cluster, and the version to ask in; None where none is ready.

        Each is chosen in its turn, because one that has lost the controller goes on answering with
        what it last knew. Those of the bootstrap list come after those that metadata names.

        :raises NotServed: When it serves no version that is known here.
        """
        candidates = [*sorted(self._brokers), *sorted(self._bootstrap, reverse=True)]
        for step in range(len(candidates)):
            node = candidates[(self._rounds + step) % len(candidates)]
            if self._is_slow(node, turn) or not self.is_ready(node, turn):
                continue
            version = self.version(node, api)
            if version is None:
                return None
            self._rounds += step + 1
            return node, version
        return None

    def is_ready(self, node: int, turn: Turn) -> bool:
        """Whether a request may be sent there: not shortly after one that was not answered."""
        retry = self._retries.get(node)
        return retry is None or turn.is_due(retry.at)

    def version(self, node: int, api: Api, *, at_most: int | None = None) -> int | None:
        """The highest version that both sides know; None while the node's are not known.

        Then they are asked for, in this turn. With a dialect, it is the version that has schemas of
        the dialect, if any has.

        :raises NotServed: When there is none.
        """
        served = self._versions.get(node)
        if served is None:
            self._wanted[node] = None
            return None
        low, high = served.get(api.key, (0, -1))
        drafted = None if self._config.draft is None else self._config.draft.highest(api)
        if drafted is not None and low <= drafted <= high:
            return drafted
        version = min(high, api.max_version, high if at_most is None else at_most)
        if version < max(low, api.min_version):
            raise NotServed(f"the broker serves no version of {api.title} that is known here")
        return version

    def _is_slow(self, node: int, turn: Turn) -> bool:
        """Whether a node has left the question for its versions open for a while."""
        asked_at = self._asked.get(node)
        patience_ms = self._config.reconnect_backoff_max_ms
        return asked_at is not None and turn.is_due(asked_at + patience_ms)

    def run(self, turn: Turn) -> None:
        """Ask the nodes for their versions whose are wanted."""
        for node in self._wanted:
            if node not in self._asked and self.is_ready(node, turn):
                self._asked[node] = turn.now
                turn.send(self._request(node))

    def failed(self, node: int, now: int) -> None:
        """A node has not answered: it may have ended, and come back with other versions."""
        self._versions.pop(node, None)
        retry = self._retries.setdefault(node, Retry(self._backoff()))
        if retry.at <= now:  # the requests of one connection fail together
            retry.pause(now)

    def _backoff(self) -> Backoff:
        config = self._config
        return Backoff(
            initial_ms=config.reconnect_backoff_ms, max_ms=config.reconnect_backoff_max_ms
        )

    def _request(self, node: int) -> Request:
        def answered(response: ApiVersionsResponse, _now: int) -> None:
            self._asked.pop(node, None)
            self._wanted.pop(node, None)
            self._retries.pop(node, None)
            if response.error_code != ErrorCode.NONE:
                error = error_name(response.error_code)
                self._fail(NotServed(f"the broker answers {error} to ApiVersions"))
                return
            self._versions[node] = {
                each.api_key: (each.min_version, each.max_version) for each in response.api_keys
            }

        def failed(error: KafkaClientError, _now: int) -> None:
            self._asked.pop(node, None)
            self._wanted.pop(node, None)
            if isinstance(error, NotServed):
                self._fail(error)

        return Request(
            node=node,
            api=_API_VERSIONS,
            version=_API_VERSIONS.max_version,
            message=ApiVersionsRequest(
                client_software_name="fencepost",
                client_software_version="0",
                dialect_requested=self._config.draft is not None,
            ),
            timeout_ms=self._config.request_timeout_ms,
            on_answer=typed(ApiVersionsResponse, answered),
            on_failure=failed,
        )
