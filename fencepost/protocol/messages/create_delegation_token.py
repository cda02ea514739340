"""CreateDelegationToken (38), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class CreatableRenewers(Struct, frozen=True, kw_only=True, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(Struct, frozen=True, kw_only=True, gc=False):
    renewers: tuple[CreatableRenewers, ...] = ()
    max_lifetime_ms: int = 0
    owner_principal_type: str | None = ""  # v3+
    owner_principal_name: str | None = ""  # v3+


class CreateDelegationTokenResponse(Struct, frozen=True, kw_only=True, gc=False):
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
