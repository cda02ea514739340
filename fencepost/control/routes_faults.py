"""What each verb on faults does."""

from typing import Annotated

from fastapi import Query, Request

from fencepost.broker.refusals import ControllerError
from fencepost.control.faults import fault_state, read_rule, wait_for_hits
from fencepost.control.routing import Served, serves
from fencepost.control.waiting import within
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.base import Done
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.bodies import FaultBody, HitsFilter


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
    if await within(wanted.timeout_ms, request, waiting) is None and found.hits < wanted.hits:
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
