"""AlterUserScramCredentials (51), version 0: SCRAM credentials of users are set or go (KIP-554).

Every check is Kafka's, and there are no credentials: a deletion is RESOURCE_NOT_FOUND. A credential
that is valid and would have to be stored is UNSUPPORTED_VERSION, for no listener knows SASL.
"""

from typing import Final

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.security.scram import (
    ScramDeletion,
    ScramError,
    ScramUpsertion,
    check_alterations,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

NOT_STORED: Final = ScramError(
    ErrorCode.UNSUPPORTED_VERSION,
    "The credential is valid, but no listener of fencepost knows SASL, and so it stores none",
)


def handle(
    _ctx: ControllerContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Check all of them."""
    errors = check_alterations(
        [ScramDeletion(each.name, each.mechanism) for each in request.deletions],
        [
            ScramUpsertion(each.name, each.mechanism, each.iterations, each.salted_password)
            for each in request.upsertions
        ],
    )
    return AlterUserScramCredentialsResponse(
        results=tuple(_result(user, *(error or NOT_STORED)) for user, error in errors.items())
    )


def refuse(
    request: AlterUserScramCredentialsRequest, error_code: int
) -> AlterUserScramCredentialsResponse:
    """The error for each user, once."""
    names = [each.name for each in request.deletions]
    users = dict.fromkeys(names + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=tuple(_result(user, error_code, None) for user in users)
    )


def _result(user: str, code: int, message: str | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
