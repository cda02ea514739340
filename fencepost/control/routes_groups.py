"""The verbs on groups: look, wait, remove a member, set and delete offsets, move, rebalance.

They act at the coordinator in this process: no fault hits them, and the journal has no trace of
them.
"""

import asyncio
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.node import group_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.group_actions import NewOffset
from fencepost.broker.server.server import Server
from fencepost.control.asgi import Request
from fencepost.control.group_state import group_state, groups_state
from fencepost.control.routing import Unmet, outcome_within, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.groups import GroupNotReady, GroupsState, GroupState
from fencepost.verbs.bodies import DEFAULT_TIMEOUT_MS
from fencepost.verbs.group_bodies import (
    CoordinatorBody,
    GroupWaitBody,
    OffsetsBody,
    TopicsBody,
)

LOOK_S: Final = 0.005
"""Between two looks at a group that is waited for. It changes with requests, timers and elections,
at brokers that change as well, and a look takes some microseconds."""
_WAIT: Final = GroupWaitBody()


@serves("groups")
async def groups(server: Server) -> GroupsState:
    return groups_state(server.cluster)


@serves("group")
async def group(server: Server, group: str) -> GroupState:
    return _state(server.cluster, group)


def _state(cluster: Cluster, group_id: str) -> GroupState:
    return group_state(cluster, group_actions.find_group(cluster, group_id))


@serves("wait_for_group", conflict=(GroupNotReady, "Not ready"))
async def wait_for_group(
    server: Server, request: Request, group: str, body: GroupWaitBody = _WAIT
) -> GroupState:
    looking = _until_ready(server.cluster, group, body)
    found = await wait_within(body.timeout_ms, request, looking)
    if found is None:
        raise Unmet(_not_ready(server.cluster, group, body))
    return found


async def _until_ready(cluster: Cluster, group_id: str, wanted: GroupWaitBody) -> GroupState:
    """Look at a group until it is as wanted; it need not be there yet."""
    while True:
        try:
            found = group_actions.find_group(cluster, group_id)
        except ControllerError:
            pass
        else:
            is_there = found.group.state.value == wanted.wanted_state
            if is_there and wanted.members in (None, len(found.group.members)):
                return group_state(cluster, found)
        await asyncio.sleep(LOOK_S)


def _not_ready(cluster: Cluster, group_id: str, wanted: GroupWaitBody) -> GroupNotReady:
    expected: str = wanted.wanted_state
    if wanted.members is not None:
        expected += f" with {_members(wanted.members)}"
    state: GroupState | None = None
    try:
        state = _state(cluster, group_id)
    except ControllerError as error:
        said = f"{error.message} after {wanted.timeout_ms} ms"
    else:
        said = (
            f"group {group_id!r} is {state.state} with {_members(len(state.members))}"
            f" after {wanted.timeout_ms} ms, and not {expected}"
        )
    return GroupNotReady(error=ErrorCode.REQUEST_TIMED_OUT.name, message=said, group=state)


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"


@serves("remove_member")
async def remove_member(server: Server, request: Request, group: str, member: str) -> GroupState:
    answer = group_actions.remove_member(server.cluster, group, member)
    await outcome_within(DEFAULT_TIMEOUT_MS, request, answer)
    return _state(server.cluster, group)


@serves("rebalance_group")
async def rebalance_group(server: Server, group: str) -> GroupState:
    group_actions.force_rebalance(server.cluster, group)
    return _state(server.cluster, group)


@serves("move_coordinator")
async def move_coordinator(server: Server, group: str, body: CoordinatorBody) -> GroupState:
    group_actions.move_coordinator(server.cluster, group, body.broker)
    return _state(server.cluster, group)


@serves("set_offsets")
async def set_offsets(
    server: Server, request: Request, group: str, body: OffsetsBody
) -> GroupState:
    given = [
        NewOffset(each.topic, each.partition, each.offset, each.leader_epoch)
        for each in body.all_offsets()
    ]
    await _committed(request, group_actions.set_offsets(server.cluster, group, given))
    return _state(server.cluster, group)


@serves("delete_offsets")
async def delete_offsets(
    server: Server, request: Request, group: str, body: TopicsBody
) -> GroupState:
    await _committed(request, group_actions.delete_offsets(server.cluster, group, body.topics))
    return _state(server.cluster, group)


async def _committed(request: Request, answer: ErrorCode | Wait[ErrorCode]) -> None:
    """:raises ControllerError: When the coordinator's records are not replicated in time."""
    code = await outcome_within(DEFAULT_TIMEOUT_MS, request, answer)
    if code is not ErrorCode.NONE:
        error = code or ErrorCode.REQUEST_TIMED_OUT
        raise ControllerError(
            error,
            "the coordinator could not commit it: the ISR of its partition of __consumer_offsets is"
            f" too small, or a replica is held ({error.name})",
        )
