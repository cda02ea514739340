"""DescribeClientQuotas (48), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ComponentData:
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    components: tuple[ComponentData, ...] = ()
    strict: bool = False


@struct(frozen=True, slots=True, kw_only=True)
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class ValueData:
    key: str = ""
    value: float = 0.0


@struct(frozen=True, slots=True, kw_only=True)
class EntryData:
    entity: tuple[EntityData, ...] = ()
    values: tuple[ValueData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: tuple[EntryData, ...] | None = ()
