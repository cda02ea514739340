"""AlterClientQuotas (49), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class EntityData(Struct, frozen=True, kw_only=True, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Struct, frozen=True, kw_only=True, gc=False):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Struct, frozen=True, kw_only=True, gc=False):
    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()


class AlterClientQuotasRequest(Struct, frozen=True, kw_only=True, gc=False):
    entries: tuple[EntryData, ...] = ()
    validate_only: bool = False


class ResponseEntryData(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    entity: tuple[EntityData, ...] = ()


class AlterClientQuotasResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    entries: tuple[ResponseEntryData, ...] = ()
