"""RemoveRaftVoter (81), version 0: take a controller out of the voters of the quorum (KIP-853).

It observes from then on. Where it was the active one, the next voter is, in the next epoch. The
last voter stays. A reset brings all back, and so does a restart.
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.controller.quorum import (
    ReplicaKey,
    cluster_id_problem,
    in_java,
    voter_change_problem,
    voters,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)


def handle(ctx: ControllerContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Remove one voter."""
    image = ctx.controller.image
    problem = cluster_id_problem(image, request.cluster_id)
    if problem is not None:
        return _answer(ErrorCode.INCONSISTENT_CLUSTER_ID, problem)
    old = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not old.is_voter:
        return _answer(
            ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
        )
    unsupported = voter_change_problem(image, "removing")
    if unsupported is not None:
        return _answer(ErrorCode.UNSUPPORTED_VERSION, unsupported)
    known = voters(image)
    if old not in known or len(known) == 1:
        return _answer(
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {old} from the set of voters {in_java(known)}",
        )
    ctx.controller.remove_voter(old.node_id)
    return RemoveRaftVoterResponse(error_message=None)


def refuse(_request: RemoveRaftVoterRequest, error_code: int) -> RemoveRaftVoterResponse:
    """The error alone."""
    return RemoveRaftVoterResponse(error_code=error_code)


def _answer(code: ErrorCode, message: str) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=code, error_message=message)
