"""What each verb on the remote tier does."""

from fencepost.broker.cluster import Cluster
from fencepost.broker.refusals import ControllerError
from fencepost.broker.tiering.faults import Operation, TierFault, TierRule
from fencepost.control import tier as tiers
from fencepost.control.routing import Served, serves
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.base import Done
from fencepost.verbs.answers.faults import TierFaultState
from fencepost.verbs.answers.tier import TierState
from fencepost.verbs.bodies import TierBody, TierFaultBody

_SOME_ERROR = "a test lets it fail"


@serves("tier")
async def tier(server: Served, topic: str, partition: int, body: TierBody) -> TierState:
    return await tiers.carry_out(server.cluster, topic, partition, body.action)


@serves("add_tier_fault")
async def add_tier_fault(server: Served, body: TierFaultBody) -> TierFaultState:
    rule = TierRule(
        operation=Operation(body.operation),
        error=_SOME_ERROR if body.error is True else body.error,
        delay_ms=body.delay_ms or 0,
        count=body.count,
    )
    return _state(server.cluster.tier_faults.add(rule))


@serves("tier_faults")
async def tier_faults(server: Served) -> list[TierFaultState]:
    return [_state(each) for each in server.cluster.tier_faults.all()]


@serves("remove_tier_fault")
async def remove_tier_fault(server: Served, id: int) -> TierFaultState:  # noqa: A002  # in the path
    fault = _find(server.cluster, id)
    server.cluster.tier_faults.remove(id)
    return _state(fault)


@serves("remove_tier_faults")
async def remove_tier_faults(server: Served) -> Done:
    for fault in server.cluster.tier_faults.all():
        server.cluster.tier_faults.remove(fault.id)
    return Done()


def _find(cluster: Cluster, number: int) -> TierFault:
    fault = cluster.tier_faults.get(number)
    if fault is None:
        raise ControllerError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no tier fault {number}")
    return fault


def _state(fault: TierFault) -> TierFaultState:
    rule = fault.rule
    return TierFaultState(
        id=fault.id,
        hits=fault.hits,
        left=fault.left,
        operation=rule.operation.value,
        error=rule.error,
        delay_ms=rule.delay_ms or (0 if rule.error is None else None),
        count=rule.count,
    )
