"""CreateAcls (30), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class AclCreation:
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest:
    creations: tuple[AclCreation, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AclCreationResult:
    error_code: int = 0
    error_message: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class CreateAclsResponse:
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...] = ()
