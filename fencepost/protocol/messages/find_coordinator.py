"""FindCoordinator (10), versions 0 to 6.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class FindCoordinatorRequest(Struct, frozen=True, kw_only=True, gc=False):
    key: str = ""  # v0-v3
    key_type: int = 0  # v1+
    coordinator_keys: tuple[str, ...] = ()  # v4+


class Coordinator(Struct, frozen=True, kw_only=True, gc=False):
    key: str = ""  # v4+
    node_id: int = 0  # v4+
    host: str = ""  # v4+
    port: int = 0  # v4+
    error_code: int = 0  # v4+
    error_message: str | None = ""  # v4+


class FindCoordinatorResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0  # v0-v3
    node_id: int = 0  # v0-v3
    host: str = ""  # v0-v3
    port: int = 0  # v0-v3
    throttle_time_ms: int = 0  # v1+
    error_message: str | None = ""  # v1-v3
    coordinators: tuple[Coordinator, ...] = ()  # v4+
