"""The verbs on the journal.

The journal keeps messages as bytes. To decode one takes far longer than to serve it, so exchanges
are decoded in small portions, between which the loop serves the clients.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server.journal import MAX_EXCHANGES, AnyExchange, Exchange, Journal
from fencepost.broker.server.server import Server
from fencepost.control.asgi import Request
from fencepost.control.message_json import SHORT, exchange_state
from fencepost.control.routing import listening, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import find_api, find_error
from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.bodies import TraceFilter, TraceQuery, TraceWait


@serves("trace")
async def trace(server: Server, wanted: TraceQuery) -> list[ExchangeState]:
    return await read_journal(server.journal, server.cluster, wanted)


@serves("wait_for_trace")
async def wait_for_trace(server: Server, request: Request, wanted: TraceWait) -> ExchangeState:
    journal = server.journal
    before = journal.newest
    exchange_filter = ExchangeFilter(wanted, server.cluster)
    waiting = next_exchange(journal, exchange_filter)
    found = await wait_within(wanted.timeout_ms, request, waiting)
    if found is None:
        others = journal.newest - before
        raise ControllerError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"no {str(exchange_filter).removeprefix('a ')} was answered within"
            f" {wanted.timeout_ms} ms; "
            f"of other requests {others} came meanwhile",
        )
    return found


_PORTION: Final = 8
"""How many exchanges are decoded before the loop serves others."""


async def read_journal(
    journal: Journal, cluster: Cluster, wanted: TraceQuery
) -> list[ExchangeState]:
    """The newest exchanges that match, the oldest first.

    :raises ControllerError: INVALID_REQUEST when there is no API or no error of the name.
    """
    exchange_filter = ExchangeFilter(wanted, cluster)
    found: list[ExchangeState] = []
    for looked_at, exchange in enumerate(_newest_first(journal, exchange_filter), start=1):
        if looked_at % _PORTION == 0:
            await asyncio.sleep(0)
        state = exchange_filter.decode(exchange)
        if state is not None:
            found.append(state)
        if len(found) == wanted.limit:
            break
    return found[::-1]


async def next_exchange(journal: Journal, exchange_filter: "ExchangeFilter") -> ExchangeState:
    """The oldest exchange that has ended and matches: one of the journal, or else the next one.

    One that will never be answered has ended too: acks=0, or its connection was closed.
    """
    with listening(journal.listeners, exchange_filter.may_match, MAX_EXCHANGES) as received:
        done = received.items
        done.extendleft(each for each in _newest_first(journal, exchange_filter) if each.done)
        while True:
            for _ in range(min(_PORTION, len(done))):
                state = exchange_filter.decode(done.popleft())
                if state is not None:
                    return state
            if done:
                await asyncio.sleep(0)
            else:
                await received.wait()


def _newest_first(journal: Journal, exchange_filter: "ExchangeFilter") -> Iterator[AnyExchange]:
    """The exchanges that match as far as can be judged without decoding."""
    for exchange in journal.newest_first(
        clients=exchange_filter.clients, brokers=exchange_filter.brokers
    ):
        if exchange.number <= exchange_filter.since:
            return
        if exchange_filter.may_match(exchange):
            yield exchange


class ExchangeFilter:
    """Chooses exchanges of the journal.

    :raises ControllerError: INVALID_REQUEST when there is no API or no error of the name.
    """

    def __init__(self, wanted: TraceFilter, cluster: Cluster) -> None:
        self.since = wanted.since
        source = wanted.source or ("clients" if wanted.client_id is None else "all")
        self.clients = source != "brokers"
        self.brokers = source != "clients"
        self._api = None if wanted.api is None else find_api(wanted.api)
        self._client_id = wanted.client_id
        self._broker = wanted.broker
        self._error = None if wanted.error is None else find_error(wanted.error)
        self._topic = None if wanted.topic is None else _TopicFilter(wanted.topic, cluster)
        self._controller = cluster.controller

    def may_match(self, exchange: AnyExchange) -> bool:
        """Whether an exchange matches, as far as can be judged without decoding."""
        return (
            exchange.number > self.since
            and (self.clients if isinstance(exchange, Exchange) else self.brokers)
            and (self._api is None or exchange.api is self._api)
            and (self._client_id is None or exchange.client_id == self._client_id)
            and (self._broker is None or exchange.broker_id == self._broker)
            and self._may_match_content(exchange)
        )

    def _may_match_content(self, exchange: AnyExchange) -> bool:
        if self._error is not None and self._error not in exchange.errors:
            return False
        return self._topic is None or self._topic.may_occur_in(exchange)

    def decode(self, exchange: AnyExchange) -> ExchangeState | None:
        """An exchange for which `may_match` is true, decoded; None where it does not match."""
        topics: set[str] = set()
        state = exchange_state(exchange, topics, self._name_of, SHORT)
        if self._topic is not None and topics.isdisjoint(self._topic.texts):
            return None
        return state

    def _name_of(self, text: str) -> str | None:
        try:
            return self._controller.image.names.get(UUID(text))
        except ValueError:  # a name
            return None

    def __str__(self) -> str:
        """The filter as text, such as "a Fetch by client x"."""
        request = "a request" if self._api is None else self._api.title
        words: Iterable[tuple[str, object]] = (
            ("by client", self._client_id),
            ("about topic", self._topic and self._topic.name),
            ("to broker", self._broker),
            ("answered with error", self._error),
            ("after number", self.since or None),
        )
        return " ".join(
            (request, *(f"{word} {value}" for word, value in words if value is not None))
        )


class _TopicFilter:
    """A topic to search for in exchanges: its name, and every id that it has had since."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        self.name = name
        self.texts = {name}
        """Its name and ids as they stand in a message as JSON."""
        self._bytes = [name.encode("utf-8", "replace")]
        self._controller = cluster.controller

    def may_occur_in(self, exchange: AnyExchange) -> bool:
        """Whether an exchange may name the topic, by a search of its bytes."""
        found = self._controller.image.topics.get(self.name)
        if found is not None and str(found.topic_id) not in self.texts:
            self.texts.add(str(found.topic_id))
            self._bytes.append(found.topic_id.bytes)
        return exchange.may_contain(self._bytes)
