"""DescribeUserScramCredentials (50), version 0: the SCRAM credentials of users (KIP-554).

The cluster has none: null or an empty list asks for all, of which there are none, and a user who is
named is RESOURCE_NOT_FOUND; one who is named twice is DUPLICATE_RESOURCE, once.
"""

from collections import Counter

from fencepost.broker.core.outcomes import Steps, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import ListenerContext
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    ctx: ListenerContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse | Wait[DescribeUserScramCredentialsResponse]:
    """Find none of them."""
    return take_turns(ctx.broker.scheduler, _describe(request))


def refuse(
    _request: DescribeUserScramCredentialsRequest, error_code: int
) -> DescribeUserScramCredentialsResponse:
    """The error alone."""
    return DescribeUserScramCredentialsResponse(error_code=error_code, error_message=None)


def _describe(
    request: DescribeUserScramCredentialsRequest,
) -> Steps[DescribeUserScramCredentialsResponse]:
    counts: Counter[str] = Counter()
    for user in request.users or ():
        counts[user.name] += 1
        yield
    results = []
    for name, count in counts.items():
        results.append(_missing(name) if count == 1 else _named_twice(name))
        yield
    return DescribeUserScramCredentialsResponse(results=tuple(results))


def _missing(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {user}",
    )


def _named_twice(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.DUPLICATE_RESOURCE,
        error_message="Cannot describe SCRAM credentials for the same user twice in a single "
        f"request: {user}",
    )
