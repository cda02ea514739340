"""DescribeDelegationToken (41), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenOwner:
    principal_type: str = ""
    principal_name: str = ""


@struct(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenRequest:
    owners: tuple[DescribeDelegationTokenOwner, ...] | None = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribedDelegationTokenRenewer:
    principal_type: str = ""
    principal_name: str = ""


@struct(frozen=True, slots=True, kw_only=True)
class DescribedDelegationToken:
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


@struct(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenResponse:
    error_code: int = 0
    tokens: tuple[DescribedDelegationToken, ...] = ()
    throttle_time_ms: int = 0
