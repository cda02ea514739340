"""What a SCRAM credential may be (KIP-554): the checks, their order and their messages.

They are those of Kafka's ``ScramControlManager``, where there is no credential.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
_MECHANISMS: Final = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512."""


class ScramError(NamedTuple):
    """Why a credential is refused, in Kafka's words."""

    code: ErrorCode
    message: str | None


class ScramDeletion(NamedTuple):
    """A credential that is to go."""

    user: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """A credential that is to be stored."""

    user: str
    mechanism: int
    iterations: int
    salted_password: bytes


_TWICE: Final = ScramError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_NO_CREDENTIAL: Final = ScramError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
_EMPTY_KEY: Final = ScramError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
"""Java makes no key of an empty password."""


def check_alterations(
    deletions: Iterable[ScramDeletion], upsertions: Iterable[ScramUpsertion]
) -> dict[str, ScramError | None]:
    """Why a request about each user is refused; None where a credential is to be stored.

    The first error of a user counts. An alteration that failed does not make the next one of its
    user the second.
    """
    found: dict[str, ScramError | None] = {}
    for deletion in deletions:
        if deletion.user not in found:
            found[deletion.user] = _check(deletion.user, deletion.mechanism) or _NO_CREDENTIAL
    for upsertion in upsertions:
        if upsertion.user not in found:
            found[upsertion.user] = _check_upsertion(upsertion)
        elif found[upsertion.user] is None:
            found[upsertion.user] = _TWICE
    for upsertion in upsertions:
        if found[upsertion.user] is None and not upsertion.salted_password:
            found[upsertion.user] = _EMPTY_KEY
    return found


def _check_upsertion(upsertion: ScramUpsertion) -> ScramError | None:
    error = _check(upsertion.user, upsertion.mechanism)
    if error is not None:
        return error
    if upsertion.iterations < MIN_ITERATIONS:
        return ScramError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        return ScramError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _check(user: str, mechanism: int) -> ScramError | None:
    if not user:
        return ScramError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in _MECHANISMS:
        return ScramError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None
