"""CreateDelegationToken (38), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class CreatableRenewers:
    principal_type: str = ""
    principal_name: str = ""


@struct(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenRequest:
    renewers: tuple[CreatableRenewers, ...] = ()
    max_lifetime_ms: int = 0
    owner_principal_type: str | None = ""  # v3+
    owner_principal_name: str | None = ""  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenResponse:
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
    token_requester_principal_type: str = ""  # v3+
    token_requester_principal_name: str = ""  # v3+
