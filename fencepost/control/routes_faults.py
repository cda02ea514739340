"""The verbs on faults, and faults as the control API takes and shows them."""

import re
from typing import Annotated, Final, Literal, TypeVar, assert_never

from fastapi import Query, Request

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.faults.registry import Fault
from fencepost.broker.faults.rules import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    FaultRule,
    Refuse,
    StaleMetadata,
    Throttle,
    Versions,
    action_to_dict,
)
from fencepost.broker.node.cluster import Cluster
from fencepost.control.routing import Served, listening, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import find_api, find_error
from fencepost.verbs.answers import Done
from fencepost.verbs.answers.cluster import FaultState
from fencepost.verbs.bodies import FaultAction, FaultBody, HitsFilter

_T = TypeVar("_T")
_VERSIONS: Final = re.compile(r"(?P<one>\d{1,5})|(?P<low>\d{0,5})-(?P<high>\d{0,5})", re.ASCII)


_SOURCES: Final[dict[bool | None, Literal["clients", "brokers"] | None]] = {
    None: None,
    False: "clients",
    True: "brokers",
}


def read_rule(cluster: Cluster, body: FaultBody) -> FaultRule:
    """The rule of a fault.

    :raises ControllerError: INVALID_REQUEST where a name is not one of Kafka's;
        BROKER_ID_NOT_REGISTERED where there is no such broker.
    """
    if body.broker is not None and body.broker not in cluster.brokers:
        brokers = ", ".join(map(str, cluster.brokers))
        raise ControllerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker: there is no broker {body.broker}, only {brokers}",
        )
    return FaultRule(
        api=find_api(str(body.api)),
        action=_read_action(body.action),
        versions=None if body.versions is None else _read_versions(str(body.versions)),
        broker=body.broker,
        client_id=body.client_id,
        brokers_ask=None if body.source is None else body.source == "brokers",
        topic=body.topic,
        partition=body.partition,
        group=body.group,
        transactional_id=body.transactional_id,
        count=body.count,
        after=body.after,
        probability=body.probability,
    )


def fault_state(fault: Fault) -> FaultState:
    """A fault as it was set, and its hits."""
    rule = fault.rule
    return FaultState(
        id=fault.id,
        hits=fault.hits,
        left=fault.left,
        api=rule.api.title,
        versions=None if rule.versions is None else str(rule.versions),
        broker=rule.broker,
        client_id=rule.client_id,
        source=_SOURCES[rule.brokers_ask],
        topic=rule.topic,
        partition=rule.partition,
        group=rule.group,
        transactional_id=rule.transactional_id,
        count=rule.count,
        after=rule.after,
        probability=rule.probability,
        action=action_to_dict(rule.action),
    )


async def wait_for_hits(cluster: Cluster, fault: Fault, hits: int) -> Fault:
    """Wait until a fault has this number of hits, which it may have already.

    :raises ControllerError: RESOURCE_NOT_FOUND when the fault is removed before.
    """
    with listening(cluster.events.listeners, _is_of_faults, most=1) as received:
        while fault.hits < hits:
            cluster.faults.get(fault.id)
            await received.wait()
    return fault


def _is_of_faults(event: Event) -> bool:
    return event.kind in (Kind.FAULT_HIT, Kind.FAULT_REMOVED, Kind.RESET)


def _read_action(body: FaultAction) -> Action:
    match body.kind:
        case "error":
            return Refuse(find_error(str(_given(body.error))))
        case "delay":
            return Delay(_given(body.delay))
        case "disconnect":
            return Disconnect(DisconnectWhen(_given(body.disconnect)))
        case "throttle":
            return Throttle(_given(body.throttle))
        case "drop":
            return Drop()
        case "corrupt":
            return Corrupt()
        case "stale_metadata":
            return StaleMetadata(_given(body.stale_metadata))
        case _:
            assert_never(body.kind)


def _given(value: _T | None) -> _T:
    assert value is not None, "the body has checked it"
    return value


def _read_versions(text: str) -> Versions:
    found = _VERSIONS.fullmatch(text.strip())
    if found is None or text.strip() == "-":
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            f"versions: {text!r} is none: write 9, 4-8, 9- or -8, both ends inclusive",
        )
    if found["one"]:
        return Versions(int(found["one"]), int(found["one"]))
    low, high = (int(end) if end else None for end in (found["low"], found["high"]))
    return Versions(low, high)


@serves("add_fault")
async def add_fault(server: Served, body: FaultBody) -> FaultState:
    cluster = server.cluster
    return fault_state(cluster.faults.add(read_rule(cluster, body)))


@serves("faults")
async def faults(server: Served) -> list[FaultState]:
    return [fault_state(each) for each in server.cluster.faults.all()]


@serves("fault")
async def fault(server: Served, id: int) -> FaultState:  # noqa: A002  # its name in the path
    return fault_state(server.cluster.faults.get(id))


@serves("wait_for_fault")
async def wait_for_fault(
    server: Served,
    request: Request,
    id: int,  # noqa: A002  # its name in the path
    wanted: Annotated[HitsFilter, Query()],
) -> FaultState:
    cluster = server.cluster
    found = cluster.faults.get(id)
    waiting = wait_for_hits(cluster, found, wanted.hits)
    if await wait_within(wanted.timeout_ms, request, waiting) is None and found.hits < wanted.hits:
        raise ControllerError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"fault {id} has hit {found.hits} of {wanted.hits} requests within"
            f" {wanted.timeout_ms} ms",
        )
    return fault_state(found)


@serves("remove_fault")
async def remove_fault(server: Served, id: int) -> FaultState:  # noqa: A002  # its name in the path
    return fault_state(server.cluster.faults.remove(id))


@serves("remove_faults")
async def remove_faults(server: Served) -> Done:
    server.cluster.faults.remove_all()
    return Done()
