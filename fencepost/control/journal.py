"""The journal, decoded: what was asked, by clients and between brokers, and what was answered.

Decoding costs far more than what is decoded did when it was served, so it is done in small portions
between which the loop serves its clients.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from uuid import UUID

from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server.journal import MAX_EXCHANGES, AnyExchange, Exchange, Journal
from fencepost.control.message_json import SHORT, Limits, request_json, response_json
from fencepost.protocol.lookup import find_api, find_error
from fencepost.verbs.answers.journal import ExchangeState
from fencepost.verbs.bodies import TraceFilter, TraceQuery

_PORTION: Final = 8
"""Exchanges that are decoded in one go."""


async def read_journal(
    journal: Journal, cluster: Cluster, wanted: TraceQuery
) -> list[ExchangeState]:
    """The newest exchanges that fit the filters, the oldest first.

    :raises ControllerError: INVALID_REQUEST when there is no API or no error of the name.
    """
    sieve = ExchangeFilter(wanted, cluster)
    found: list[ExchangeState] = []
    for looked_at, exchange in enumerate(_newest_first(journal, sieve), start=1):
        if looked_at % _PORTION == 0:
            await asyncio.sleep(0)
        state = sieve.decode(exchange)
        if state is not None:
            found.append(state)
        if len(found) == wanted.limit:
            break
    return found[::-1]


async def next_exchange(journal: Journal, sieve: "ExchangeFilter") -> ExchangeState:
    """The oldest exchange that is over and fits, which may be there already, or the next to come.

    One that will never be answered is over too: acks=0, and one whose connection has ended.
    """
    over: deque[AnyExchange] = deque(maxlen=MAX_EXCHANGES)
    rung = asyncio.Event()

    def note(exchange: AnyExchange) -> None:
        if sieve.may_match(exchange):
            over.append(exchange)
            rung.set()

    over += [each for each in _newest_first(journal, sieve) if each.done]
    over.reverse()
    journal.listeners.append(note)
    try:
        while True:
            for _ in range(min(_PORTION, len(over))):
                state = sieve.decode(over.popleft())
                if state is not None:
                    return state
            if over:
                await asyncio.sleep(0)
            else:
                rung.clear()
                await rung.wait()
    finally:
        journal.listeners.remove(note)


def _newest_first(journal: Journal, sieve: "ExchangeFilter") -> Iterator[AnyExchange]:
    """What fits all that can be told without decoding."""
    for exchange in journal.newest_first(clients=sieve.clients, brokers=sieve.brokers):
        if exchange.number <= sieve.since:
            return
        if sieve.may_match(exchange):
            yield exchange


class ExchangeFilter:
    """What is wanted of the journal.

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
        """Whether it fits, as far as can be told without decoding."""
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
        """An exchange that may pass, if it does."""
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
        """What is wanted, for a reader."""
        asked = "a request" if self._api is None else self._api.title
        words: Iterable[tuple[str, object]] = (
            ("by client", self._client_id),
            ("about topic", self._topic and self._topic.name),
            ("to broker", self._broker),
            ("answered with error", self._error),
            ("after number", self.since or None),
        )
        return " ".join((asked, *(f"{word} {value}" for word, value in words if value is not None)))


class _TopicFilter:
    """A topic that exchanges are searched for: its name, and the ids that it has meanwhile."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        self.name = name
        self.texts = {name}
        """How it may be named in a message as JSON."""
        self._bytes = [name.encode("utf-8", "replace")]
        self._controller = cluster.controller

    def may_occur_in(self, exchange: AnyExchange) -> bool:
        """Whether it may be named in an exchange; quick to tell."""
        found = self._controller.image.topics.get(self.name)
        if found is not None and str(found.topic_id) not in self.texts:
            self.texts.add(str(found.topic_id))
            self._bytes.append(found.topic_id.bytes)
        return exchange.may_contain(self._bytes)


def exchange_state(
    exchange: AnyExchange,
    topics: set[str],
    name_of: Callable[[str], str | None],
    limits: Limits,
) -> ExchangeState:
    """An exchange for a reader.

    :param topics: Receives the names and ids of the topics in it.
    :param name_of: Gives the name that belongs to a topic id, None where it is not known.
    """
    request = request_json(exchange, topics, limits)
    response = response_json(exchange, topics, limits)
    names = ((text, name_of(text)) for text in sorted(topics))
    return ExchangeState(
        number=exchange.number,
        time_ms=exchange.time_ms,
        answered_ms=exchange.answered_ms,
        elapsed_us=exchange.elapsed_us,
        newest=exchange.newest,
        broker=exchange.broker_id,
        connection=exchange.connection_id,
        client_id=exchange.client_id,
        api=exchange.api.title,
        version=exchange.version,
        correlation_id=exchange.correlation_id,
        request=request,
        response=response,
        topic_names={text: name for text, name in names if name is not None},
    )
