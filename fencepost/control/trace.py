"""The journal, decoded: what clients asked and what they were answered.

Decoding costs far more than what is decoded did when it was served, so it is done in small portions
between which the loop serves its clients.
"""

import asyncio
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from fencepost.broker.cluster import Cluster
from fencepost.broker.refusals import ControllerError
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.control.decode import decoded_request, decoded_response
from fencepost.protocol.apis import APIS, BY_KEY, Api
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers import ExchangeState
from fencepost.verbs.bodies import TraceQuery

_PORTION: Final = 8
"""Exchanges that are decoded in one go."""


async def read_journal(
    journal: Journal, cluster: Cluster, wanted: TraceQuery
) -> list[ExchangeState]:
    """The newest exchanges that fit the filters, the oldest first.

    :raises ControllerError: INVALID_REQUEST when there is no API of the name that is asked for.
    """
    api = None if wanted.api is None else find_api(wanted.api)
    topic = None if wanted.topic is None else _Topic(wanted.topic, cluster)
    found: list[ExchangeState] = []
    for looked_at, exchange in enumerate(_candidates(journal, api, wanted), start=1):
        if looked_at % _PORTION == 0:
            await asyncio.sleep(0)
        if topic is None or topic.may_be_in(exchange):
            state, topics = _decoded(exchange)
            if topic is None or topic.is_among(topics):
                found.append(state)
        if len(found) == wanted.limit:
            break
    return found[::-1]


def find_api(asked: str) -> Api:
    """An API by its key or by its name, however that is written.

    :raises ControllerError: INVALID_REQUEST when there is none.
    """
    if asked.isascii() and asked.isdigit() and int(asked) in BY_KEY:
        return BY_KEY[int(asked)]
    by_name = {api.title.casefold(): api for api in APIS}
    plain = asked.replace("_", "").casefold()
    if plain in by_name:
        return by_name[plain]
    near = get_close_matches(plain, by_name, n=1)
    hint = f"; did you mean {by_name[near[0]].title}?" if near else ""
    raise ControllerError(ErrorCode.INVALID_REQUEST, f"api: no API {asked!r} is served{hint}")


def _candidates(journal: Journal, api: Api | None, wanted: TraceQuery) -> Iterable[Exchange]:
    """What fits all that can be told without decoding, the newest first."""
    for exchange in reversed(tuple(journal)):
        if exchange.number <= wanted.since:
            return
        if api is not None and exchange.api is not api:
            continue
        if wanted.client_id is None or exchange.client_id == wanted.client_id:
            yield exchange


class _Topic:
    """A topic that exchanges are searched for."""

    def __init__(self, name: str, cluster: Cluster) -> None:
        found = cluster.controller.image.topics.get(name)
        self._texts = {name}
        self._bytes = [name.encode("utf-8", "replace")]
        if found is not None:
            self._texts.add(str(found.topic_id))
            self._bytes.append(found.topic_id.bytes)

    def may_be_in(self, exchange: Exchange) -> bool:
        """Whether the bytes of the topic occur at all, which is quick to tell."""
        return any(
            each in chunk
            for chunk in (exchange.frame, *_heads(exchange.chunks or ()))
            for each in self._bytes
        )

    def is_among(self, topics: set[str]) -> bool:
        """Whether an exchange that names these topics, or their ids, names this one."""
        return not topics.isdisjoint(self._texts)


def _heads(chunks: Sequence[bytes | bytearray | memoryview]) -> Iterable[bytes | bytearray]:
    """The parts of an answer that were encoded; batches stand between them as views."""
    return (chunk for chunk in chunks if not isinstance(chunk, memoryview))


def _decoded(exchange: Exchange) -> tuple[ExchangeState, set[str]]:
    topics: set[str] = set()
    state = ExchangeState(
        number=exchange.number,
        time_ms=exchange.time_ms,
        answered_ms=exchange.answered_ms,
        broker=exchange.broker_id,
        connection=exchange.connection_id,
        client_id=exchange.client_id,
        api=exchange.api.title,
        version=exchange.version,
        correlation_id=exchange.correlation_id,
        request=decoded_request(exchange, topics),
        response=decoded_response(exchange, topics),
    )
    return state, topics
