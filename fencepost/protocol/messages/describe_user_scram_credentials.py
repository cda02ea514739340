"""DescribeUserScramCredentials (50), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class UserName(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""


class DescribeUserScramCredentialsRequest(Struct, frozen=True, kw_only=True, gc=False):
    users: tuple[UserName, ...] | None = ()


class CredentialInfo(Struct, frozen=True, kw_only=True, gc=False):
    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(Struct, frozen=True, kw_only=True, gc=False):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: tuple[CredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
