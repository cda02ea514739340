"""AlterClientQuotas (49), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class EntityData(Struct, frozen=True, kw_only=True):
    entity_type: str = ""
    entity_name: str | None = ""


class OpData(Struct, frozen=True, kw_only=True):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class EntryData(Struct, frozen=True, kw_only=True):
    entity: tuple[EntityData, ...] = ()
    ops: tuple[OpData, ...] = ()


class AlterClientQuotasRequest(Struct, frozen=True, kw_only=True):
    entries: tuple[EntryData, ...] = ()
    validate_only: bool = False


class ResponseEntryData(Struct, frozen=True, kw_only=True):
    error_code: int = 0
    error_message: str | None = ""
    entity: tuple[EntityData, ...] = ()


class AlterClientQuotasResponse(Struct, frozen=True, kw_only=True):
    throttle_time_ms: int = 0
    entries: tuple[ResponseEntryData, ...] = ()
