"""CreateAcls (30), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class AclCreation(Struct, frozen=True, kw_only=True, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(Struct, frozen=True, kw_only=True, gc=False):
    creations: tuple[AclCreation, ...] = ()


class AclCreationResult(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""


class CreateAclsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...] = ()
