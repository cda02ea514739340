"""AlterClientQuotas (49), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class OpData:
    key: str = ""
    value: float = 0.0
    remove: bool = False


@struct(frozen=True, slots=True, kw_only=True)
class EntryData:
    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest:
    entries: tuple[EntryData, ...] = ()
    validate_only: bool = False


@struct(frozen=True, slots=True, kw_only=True)
class ResponseEntryData:
    error_code: int = 0
    error_message: str | None = ""
    entity: tuple[EntityData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponse:
    throttle_time_ms: int = 0
    entries: tuple[ResponseEntryData, ...] = ()
