"""DescribeDelegationToken (41), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribeDelegationTokenOwner(Struct, frozen=True, kw_only=True, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(Struct, frozen=True, kw_only=True, gc=False):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None = ()


class DescribedDelegationTokenRenewer(Struct, frozen=True, kw_only=True, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Struct, frozen=True, kw_only=True, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = ()
    token_requester_principal_type: str = ""  # v3+
    token_requester_principal_name: str = ""  # v3+


class DescribeDelegationTokenResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    tokens: tuple[DescribedDelegationToken, ...] = ()
    throttle_time_ms: int = 0
