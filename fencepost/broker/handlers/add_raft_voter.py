"""AddRaftVoter (80), versions 0-1: make a controller a voter of the quorum (KIP-853).

A new voter has to be reached at its endpoint first. No controller but this cluster's own is ever
asked, so every request that is right is REQUEST_TIMED_OUT in the words of Apache Kafka for one that
can't be reached. The others are refused as there.

Versions: v1 may be answered before the change is committed (KIP-1186), without effect here.
"""

from typing import Final

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.quorum import (
    ReplicaKey,
    cluster_id_problem,
    in_java,
    voter_change_problem,
    voters,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.listener_text import CONTROLLER
from fencepost.protocol.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)

_UNREACHABLE: Final = (
    "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
)


def handle(ctx: ControllerContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Say why there is no new voter."""
    image = ctx.controller.image
    problem = cluster_id_problem(image, request.cluster_id)
    if problem is not None:
        return _error(ErrorCode.INCONSISTENT_CLUSTER_ID, problem)
    new = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not new.is_voter:
        return _error(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    if all(listener.name != CONTROLLER for listener in request.listeners):
        return _error(
            ErrorCode.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({_endpoints(request.listeners)}) for "
            f"the default listener ListenerName({CONTROLLER})",
        )
    unsupported = voter_change_problem(image, "adding")
    if unsupported is not None:
        return _error(ErrorCode.UNSUPPORTED_VERSION, unsupported)
    if new.node_id in image.voters:
        return _error(
            ErrorCode.DUPLICATE_VOTER,
            f"The voter id for {new} is already part of the set of voters "
            f"{in_java(voters(image))}.",
        )
    return _error(ErrorCode.REQUEST_TIMED_OUT, _UNREACHABLE)


def refuse(_request: AddRaftVoterRequest, error_code: int) -> AddRaftVoterResponse:
    """The error alone."""
    return AddRaftVoterResponse(error_code=error_code)


def _error(code: ErrorCode, message: str) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=code, error_message=message)


def _endpoints(listeners: tuple[Listener, ...]) -> str:
    """The endpoints of a request, the last of each name, as Kafka writes them."""
    named = {
        f"ListenerName({each.name})": f"{each.host}/<unresolved>:{each.port}" for each in listeners
    }
    return f"Endpoints(endpoints={{{', '.join(f'{n}={where}' for n, where in named.items())}}})"
