"""The requests of the journal that selectors match, for a test that verifies how many there were.

Selectors match as those of a fault do, with what the request meant when it came. So the partitions
of a fetch session, which an incremental Fetch does not name (KIP-227), are followed from one Fetch
to the next, and topics that are gone are known by their ids. Where that is no longer possible,
because something fell out of the journal, a request counts as one that may match.
"""

import asyncio
from collections import ChainMap, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from msgspec import Struct, field

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.faults.matching import (
    MatchContext,
    Matcher,
    fetched_partitions,
    matcher_of,
)
from fencepost.broker.faults.rules import selected_apis
from fencepost.broker.faults.selectors import Selectors
from fencepost.broker.fetch.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Key,
    forgotten_partitions,
    requested_partitions,
)
from fencepost.broker.server.journal import AnyExchange, Exchange, Journal
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.codec import MalformedMessage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchRequest, FetchResponse

_PORTION: Final = 8
"""Exchanges that are decoded before the loop serves others."""
_MAX_OTHERS: Final = 200
"""Requests that do not match and are kept, to be shown."""
_FETCH: Final = BY_NAME["fetch"]
_CONTENT: Final = ("topic", "partition", "group", "transactional_id", "record")
"""Selectors of what a request says, which only a request that is decoded can match."""


class PastView(Struct, frozen=True, kw_only=True):
    """The names of topics, also of those that are gone."""

    names: Mapping[UUID, str]


class _PastSessions(Struct, frozen=True, kw_only=True):
    """What a Fetch asked for, named or not."""

    keys: Collection[Key]

    def requested(self, _request: FetchRequest) -> Collection[Key]:
        """All of it."""
        return self.keys


class _PastNode(Struct, frozen=True, kw_only=True):
    """A broker as it was when a request came, as far as selectors look at it."""

    broker_id: int
    view: PastView
    fetch_sessions: _PastSessions


class PastRequest(Struct, frozen=True, kw_only=True):
    """A request of the journal, decoded."""

    exchange: AnyExchange
    request: object
    ctx: MatchContext
    is_incomplete: bool
    """Whether it is a Fetch whose session began before the journal."""

    @property
    def api(self) -> Api:
        """Its API."""
        return self.exchange.api

    def response(self) -> object | None:
        """Its response; None while there is none, and where that does not decode."""
        return _response(self.exchange)


class FoundRequests(Struct, kw_only=True):
    """What a search has found."""

    matching: list[PastRequest] = field(default_factory=list)
    dropped: int = 0
    """Further ones that match, and are no longer in the journal."""
    unknown: int = 0
    """Requests that may match: nothing more is known of them."""
    others: deque[PastRequest] = field(default_factory=lambda: deque(maxlen=_MAX_OTHERS))
    """The last ones of the same APIs that do not match."""

    @property
    def count(self) -> int:
        """How many certainly match."""
        return len(self.matching) + self.dropped


class RequestSearch:
    """Searches a journal for the requests that selectors match.

    :param names: Of topics, by id.
    :param since: Only requests with a higher number.
    :raises ControllerError: INVALID_REQUEST where no request can match.
    """

    def __init__(
        self, selectors: Selectors, journal: Journal, names: Mapping[UUID, str], since: int
    ) -> None:
        self._selectors = selectors
        self._since = since
        self._matches = {
            api.key: request_matcher(selectors, api) for api in selected_apis(selectors)
        }
        self._may_match = request_matcher(replace(selectors, topic=None, partition=None), _FETCH)
        follows = selectors.topic is not None and _FETCH.key in self._matches
        self._history = PastRequests(journal, names, follows_sessions=follows)
        self._found = FoundRequests()
        self._count_dropped(journal)

    async def run(self) -> FoundRequests:
        """Search all that is in the journal now, in portions, between which others are served."""
        for looked_at, exchange in enumerate(self._history.exchanges, start=1):
            if looked_at % _PORTION == 0:
                await asyncio.sleep(0)
            is_wanted = exchange.api.key in self._matches and exchange.number > self._since
            past = self._history.read(exchange, is_wanted=is_wanted)
            if past is not None and is_wanted:
                self._sort(past)
        return self._found

    def _sort(self, past: PastRequest) -> None:
        found, key = self._found, past.api.key
        if self._matches[key](past):
            found.matching.append(past)
        elif past.is_incomplete and self._may_match(past):
            found.unknown += 1
        else:
            found.others.append(past)

    def _count_dropped(self, journal: Journal) -> None:
        """What fell out of the journal: it matches, unless a selector asks for what it said."""
        dropped, wanted = journal.dropped, self._selectors
        if self._since >= dropped.last:
            return
        count = sum(
            count
            for kind, count in dropped.counts()
            if kind.api_key in self._matches
            and (wanted.versions is None or kind.version in wanted.versions)
            and wanted.broker in (None, kind.broker_id)
            and wanted.client_id in (None, kind.client_id)
            and (wanted.source is None or (wanted.source == "brokers") is kind.of_brokers)
        )
        asks_for_content = any(getattr(wanted, name) is not None for name in _CONTENT)
        if asks_for_content or self._since:
            self._found.unknown += count
        else:
            self._found.dropped = count
        self._found.unknown += dropped.uncounted


def request_matcher(selectors: Selectors, api: Api) -> Callable[[PastRequest], bool]:
    """Make the function that checks whether a request of the journal matches."""
    matches: Matcher = matcher_of(selectors, api, first_version=0)
    needs_response = selectors.record is not None and api is _FETCH

    def is_match(past: PastRequest) -> bool:
        if not matches(past.ctx, past.request):
            return False
        if not needs_response:
            return True
        response = past.response()
        return isinstance(response, FetchResponse) and bool(
            fetched_partitions(selectors, past.ctx, response)
        )

    return is_match


class PastRequests:
    """Reads the requests of a journal, the oldest first.

    :param follows_sessions: Whether fetch sessions are followed; for nothing else it is needed.
    """

    def __init__(
        self, journal: Journal, names: Mapping[UUID, str], *, follows_sessions: bool
    ) -> None:
        self.exchanges: Final = tuple(journal)
        self._view = PastView(names=ChainMap(dict(names), journal.deleted_topics.names))
        self._follows_sessions = follows_sessions
        self._sessions: dict[tuple[int, int], frozenset[Key]] = {}
        """The partitions of each session, by broker and session id."""

    def read(self, exchange: AnyExchange, *, is_wanted: bool) -> PastRequest | None:
        """A request, decoded; None for one that is not wanted, and not needed for a later one."""
        follows = self._follows_sessions and exchange.api is _FETCH
        if not is_wanted and not follows:
            return None
        request = exchange.request()
        keys: frozenset[Key] | None = frozenset()
        if isinstance(request, FetchRequest):
            keys = self._follow(exchange, request) if follows else _named(request)
        is_broker = not isinstance(exchange, Exchange)
        node = _PastNode(
            broker_id=exchange.broker_id,
            view=self._view,
            fetch_sessions=_PastSessions(keys=_named(request) if keys is None else keys),
        )
        ctx: MatchContext = Context(
            node,
            exchange.version,
            exchange.client_id,
            Peer(connection_id=exchange.connection_id, host="", is_broker=is_broker),
            exchange.time_ms,
            exchange.time_ms,
        )
        return PastRequest(exchange=exchange, request=request, ctx=ctx, is_incomplete=keys is None)

    def _follow(self, exchange: AnyExchange, request: FetchRequest) -> frozenset[Key] | None:
        """What a Fetch asks for; None where its session began before the journal."""
        named, place = _named(request), (exchange.broker_id, request.session_id)
        response = _response(exchange)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(place, None)
            if isinstance(response, FetchResponse) and response.session_id:
                self._sessions[exchange.broker_id, response.session_id] = named
            return named
        if isinstance(response, FetchResponse) and response.error_code != ErrorCode.NONE:
            return named
        known = self._sessions.get(place)
        if known is None:
            return None
        keys = (known | named) - frozenset(forgotten_partitions(request))
        self._sessions[place] = keys
        return keys


def _response(exchange: AnyExchange) -> object | None:
    try:
        return exchange.response()
    except MalformedMessage:
        return None


def _named(request: object) -> frozenset[Key]:
    if not isinstance(request, FetchRequest):
        return frozenset()
    return frozenset(requested_partitions(request))
