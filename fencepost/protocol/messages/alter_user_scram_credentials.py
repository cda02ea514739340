"""AlterUserScramCredentials (51), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ScramCredentialDeletion(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    mechanism: int = 0


class ScramCredentialUpsertion(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Struct, frozen=True, kw_only=True, gc=False):
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


class AlterUserScramCredentialsResult(Struct, frozen=True, kw_only=True, gc=False):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()
