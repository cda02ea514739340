"""The route of the verb that verifies how many requests came, and what it says where it fails."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.matching import shown_keys, shown_topics
from fencepost.broker.faults.record_matching import shown_records
from fencepost.broker.faults.request_fields import group_fields, transactional_id_fields
from fencepost.broker.faults.selectors import Apis, Selectors
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server.journal import MAX_BYTES, MAX_EXCHANGES
from fencepost.broker.server.server import Server
from fencepost.control.request_search import (
    FoundRequests,
    PastRequest,
    RequestSearch,
    request_matcher,
)
from fencepost.control.routing import Unmet, serves
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.verify import NearRequest, RequestsNotVerified, Verified
from fencepost.verbs.verify_bodies import VerifyBody

NOT_VERIFIED: Final = "REQUESTS_NOT_VERIFIED"
"""The code of a refusal: another number of requests came."""
INCOMPLETE: Final = "TRACE_INCOMPLETE"
"""The code of a refusal: the trace has too little left to tell."""
_MAX_SHOWN: Final = 3
_MAX_TEXT: Final = 100
"""Characters of what a request has, in a message."""


@serves("verify", conflict=(RequestsNotVerified, "Another number came"))
async def verify(server: Server, body: VerifyBody) -> Verified:
    given = body.model_dump(exclude_unset=True, exclude={"count", "since"})
    selectors = Selectors.from_json(given)
    _check_broker(server.cluster, selectors)
    names = server.cluster.controller.image.names
    found = await RequestSearch(selectors, server.journal, names, body.since).run()
    low, high = body.bounds
    is_enough, is_too_many = found.count >= low, high is not None and found.count > high
    if is_too_many or found.count + found.unknown < low:
        raise Unmet(_not_verified(found, selectors, body))
    if not is_enough or (high is not None and found.count + found.unknown > high):
        raise Unmet(_undecided(found, selectors, body))
    return Verified(matched=found.count)


def _check_broker(cluster: Cluster, selectors: Selectors) -> None:
    if selectors.broker is not None and selectors.broker not in cluster.brokers:
        brokers = ", ".join(map(str, cluster.brokers))
        raise ControllerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker: there is no broker {selectors.broker}, only {brokers}",
        )


def _not_verified(
    found: FoundRequests, selectors: Selectors, body: VerifyBody
) -> RequestsNotVerified:
    message = f"{_expected(selectors, body)}, and {found.count} came"
    nearest = _nearest(found, selectors, body)
    if nearest:
        word = "the last" if found.count > body.bounds[0] else "nearest"
        message += f"; {word}: {'; '.join(map(_near_text, nearest))}"
    elif not found.count:
        message += f"; no other request of {_apis_text(selectors.api)} either"
    return RequestsNotVerified(
        error=NOT_VERIFIED,
        message=message,
        matched=found.count,
        unknown=found.unknown,
        nearest=nearest,
    )


def _undecided(found: FoundRequests, selectors: Selectors, body: VerifyBody) -> RequestsNotVerified:
    kept = f"{MAX_EXCHANGES} requests or {MAX_BYTES >> 20} MiB"
    message = (
        f"{_expected(selectors, body)}; {found.count} came for certain, and {found.unknown} more "
        f"may match, of which the trace has too little left: it keeps {kept}. Verify earlier, or "
        'add a fault with the action "observe" before, whose hits are all counted'
    )
    return RequestsNotVerified(
        error=INCOMPLETE,
        message=message,
        matched=found.count,
        unknown=found.unknown,
        nearest=(),
    )


# -- what was expected --------------------------------------------------------------------------


def _expected(selectors: Selectors, body: VerifyBody) -> str:
    """Such as "expected 2 Produce with topic orders, client_id checkout"."""
    given = [
        f"{name} {_selector_text(value)}"
        for name, value in selectors.to_json().items()
        if name != "api" and value is not None
    ]
    if body.since:
        given.append(f"a number above {body.since}")
    which = f" with {', '.join(given)}" if given else ""
    return f"expected {_count_text(*body.bounds)} {_apis_text(selectors.api)}{which}"


def _count_text(low: int, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    if low == high:
        return str(low)
    return f"at most {high}" if low == 0 else f"{low} to {high}"


def _apis_text(apis: Apis) -> str:
    return "requests" if apis.is_every else " or ".join(api.title for api in apis.named)


def _selector_text(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return " and ".join(
        f"{name} {json.dumps(each, ensure_ascii=False)}" for name, each in value.items()
    )


# -- the nearest --------------------------------------------------------------------------------


def _nearest(
    found: FoundRequests, selectors: Selectors, body: VerifyBody
) -> tuple[NearRequest, ...]:
    high = body.bounds[1]
    if high is not None and found.count > high:
        return tuple(_near_request(past, {}) for past in found.matching[: -_MAX_SHOWN - 1 : -1])
    others = [(past, dict(_differences(past, selectors))) for past in reversed(found.others)]
    others.sort(key=lambda other: len(other[1]))  # of those that differ as much, the last first
    return tuple(_near_request(past, differs) for past, differs in others[:_MAX_SHOWN])


def _near_request(past: PastRequest, differs: dict[str, object]) -> NearRequest:
    exchange = past.exchange
    return NearRequest(
        number=exchange.number,
        time_ms=exchange.time_ms,
        broker=exchange.broker_id,
        client_id=exchange.client_id,
        api=past.api.title,
        version=exchange.version,
        differs=differs,
    )


def _near_text(near: NearRequest) -> str:
    """Such as "number 17, Produce v12 by checkout to broker 1: topic payments-0"."""
    by = "" if near.client_id is None else f" by {near.client_id}"
    text = f"number {near.number}, {near.api} v{near.version}{by} to broker {near.broker}"
    if not near.differs:
        return text
    return f"{text}: {', '.join(f'{name} {_shortened(has)}' for name, has in near.differs.items())}"


def _shortened(has: object) -> str:
    text = (", ".join(map(str, has)) or "none") if isinstance(has, list) else str(has)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _differences(past: PastRequest, selectors: Selectors) -> Iterator[tuple[str, object]]:
    """The selectors that a request does not match, each with what it has in its place."""
    nothing = Selectors(api=selectors.api)
    for name, shown in _SHOWN.items():
        wanted = getattr(selectors, name)
        alone = {name: wanted, **({"partition": selectors.partition} if name == "topic" else {})}
        if wanted is None:
            continue
        if not request_matcher(_replace(nothing, alone), past.api)(past):
            yield name, shown(past)


def _replace(selectors: Selectors, fields: Mapping[str, object]) -> Selectors:
    return Selectors(**{"api": selectors.api, **fields})  # type: ignore[arg-type]  # its own fields


def _topics(past: PastRequest) -> object:
    return list(shown_topics(past.api, past.ctx, past.request))


def _groups(past: PastRequest) -> object:
    return shown_keys(past.api, group_fields(past.api), past.ctx, past.request)


def _transactional_ids(past: PastRequest) -> object:
    return shown_keys(past.api, transactional_id_fields(past.api), past.ctx, past.request)


def _records(past: PastRequest) -> object:
    return list(shown_records(past.request, past.response()))


_SHOWN: Final[Mapping[str, Callable[[PastRequest], object]]] = {
    "versions": lambda past: past.exchange.version,
    "broker": lambda past: past.exchange.broker_id,
    "source": lambda past: "brokers" if past.ctx.peer.is_broker else "clients",
    "client_id": lambda past: past.exchange.client_id,
    "topic": _topics,
    "group": _groups,
    "transactional_id": _transactional_ids,
    "record": _records,
}
"""What a request has, by the selector that asks for it."""
