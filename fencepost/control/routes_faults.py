"""The routes of the verbs on faults of requests and connections.

A fault of connections has taken effect on the ports when a verb answers.
"""

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event, Kind
from fencepost.broker.faults.registry import Fault
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server.server import Server
from fencepost.control.asgi import Request
from fencepost.control.routing import listening, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers import Done
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.bodies import HitsFilter
from fencepost.verbs.fault_bodies import FaultBody


def read_rule(cluster: Cluster, body: FaultBody) -> FaultRule:
    """Make the fault that a request describes.

    :raises ControllerError: INVALID_REQUEST where the versions are not a range;
        BROKER_ID_NOT_REGISTERED where there is no such broker.
    :raises UnknownName: Where the API or the error is not one of Kafka's.
    """
    given = body.model_dump(exclude_unset=True)
    broker = given.get("broker")
    if broker is not None and broker not in cluster.brokers:
        brokers = ", ".join(map(str, cluster.brokers))
        raise ControllerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker: there is no broker {broker}, only {brokers}",
        )
    return FaultRule.from_json(given)


def fault_state(fault: Fault) -> FaultState:
    """A fault as it was set, and its hits."""
    return FaultState.model_validate(
        {"id": fault.id, "hits": fault.hits, "left": fault.left, **fault.rule.to_json()}
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


@serves("add_fault")
async def add_fault(server: Server, body: FaultBody) -> FaultState:
    cluster = server.cluster
    added = cluster.faults.add(read_rule(cluster, body))
    await server.apply_faults()
    return fault_state(added)


@serves("faults")
async def faults(server: Server) -> list[FaultState]:
    return [fault_state(each) for each in server.cluster.faults.all()]


@serves("fault")
async def fault(server: Server, id: int) -> FaultState:  # noqa: A002  # its name in the path
    return fault_state(server.cluster.faults.get(id))


@serves("wait_for_fault")
async def wait_for_fault(
    server: Server,
    request: Request,
    id: int,  # noqa: A002  # its name in the path
    wanted: HitsFilter,
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
async def remove_fault(server: Server, id: int) -> FaultState:  # noqa: A002  # its name in the path
    removed = server.cluster.faults.remove(id)
    await server.apply_faults()
    return fault_state(removed)


@serves("remove_faults")
async def remove_faults(server: Server) -> Done:
    server.cluster.faults.remove_all()
    await server.apply_faults()
    return Done()
