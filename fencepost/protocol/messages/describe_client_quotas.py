"""DescribeClientQuotas (48), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ComponentData(Struct, frozen=True, kw_only=True, gc=False):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


class DescribeClientQuotasRequest(Struct, frozen=True, kw_only=True, gc=False):
    components: tuple[ComponentData, ...] = ()
    strict: bool = False


class EntityData(Struct, frozen=True, kw_only=True, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(Struct, frozen=True, kw_only=True, gc=False):
    key: str = ""
    value: float = 0.0


class EntryData(Struct, frozen=True, kw_only=True, gc=False):
    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()


class DescribeClientQuotasResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: tuple[EntryData, ...] | None = ()
